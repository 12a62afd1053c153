package aggregates_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/intent"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
)

var (
	self   = events.Writer{Instance: inst, Epoch: 2} // the writer of the fixtures
	later  = events.Writer{Instance: inst, Epoch: 3}
	afar   = events.Writer{Instance: "jjjjjjjjjjjjjjjjjjjjjjjjjj", Epoch: 7}
	launch = events.IntentAdmitted{Intent: "launch-1", Kind: events.IntentLaunch, By: caller, Instance: inst, Epoch: 2, Request: []byte(`{"name":"demo"}`), ExpiresAt: at(5 * time.Minute)}
	retire = events.IntentAdmitted{Intent: "retire-1", Kind: events.IntentRetire, By: caller, Instance: inst, Epoch: 2, UID: uid1, ExpiresAt: at(5 * time.Minute)}
)

func use(id events.GoalID) intent.Use {
	return intent.Use{Intent: id, Request: "request-1", Instance: inst, Epoch: 2}
}

func claim1() aggregates.Claim {
	return aggregates.Claim{UID: uid1, Environment: env1, Activation: "activation-0000001", Goal: events.GoalBoundary(caller, "launch-1"), Holder: inst, Plan: plan,
		Target: events.TargetRunning, Deadline: ptr(at(time.Hour)), Ready: at(30 * time.Second)}
}

func refusedAs(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if e := fault.From(err); err == nil || e.Code != want || e.Outcome != fault.NotExecuted {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

func admitted(t testing.TB) *life { l := fresh(t); return l.do(l.Admit(launch, t0)) }

func consumed(t testing.TB) *life {
	l := admitted(t)
	return l.do(l.Launch(use("launch-1"), claim1(), self, t0))
}

// enrolled is a seat that a user had launched, running.
func enrolled(t testing.TB) *life {
	l := consumed(t).add(events.EnvironmentProbed{Environment: env1, Capabilities: capable, ProbedAt: t0, Host: "h", Architecture: "amd64", Engine: "drill"}).
		call("operation-reserve-1", events.VerbReserve, seen(events.StateReserved))
	l.do(l.Head.Open("activation-0000001"))
	l.do(l.Head.Mint("cred-1", "U1", nil, nil))
	l.do(l.Head.Release("cred-1"))
	l.call("operation-provision", events.VerbProvision, seen(events.StateCreating)).
		call("operation-start-001", events.VerbStart, seen(events.StateRunning))
	return l.add(append([]events.Event{events.SlotActivated{UID: uid1}}, l.Enrolled(self)...)...)
}

// gone takes a seat that is ending to the proof that nothing is left of it.
func (l *life) gone() *life {
	if l.Environment.Ref != "" {
		l.call("operation-stop-0001", events.VerbStop, seen(events.StateStopped))
	}
	l.add(l.Head.Revoke()...).add(events.SlotCleaned{UID: uid1})
	if l.Environment.Ref != "" {
		l.call("operation-destroy-1", events.VerbDestroy, seen(events.StateAbsent))
	}
	return l.do(l.Release())
}

func (l *life) phase(id events.GoalID) string {
	i, ok := l.Intent(id)
	if !ok {
		return "forgotten"
	}
	return fmt.Sprintf("%s %s", i.Phase, i.Outcome)
}

// The table of intents is what the fold does, in every phase with every event.
func TestIntentTable(t *testing.T) {
	byOn := map[intent.On]events.Event{
		intent.OnAdmit: launch, intent.OnConsume: events.IntentConsumed{Intent: "launch-1", Request: "r", UID: uid1, Executor: self},
		intent.OnSweep: events.IntentSwept{Intent: "launch-1", By: later}, intent.OnEnroll: events.IntentEnded{Intent: "launch-1", Outcome: events.IntentEnrolled},
		intent.OnFinish:  events.IntentEnded{Intent: "launch-1", Outcome: events.IntentAborted},
		intent.OnRelease: events.IntentReleased{Intent: "launch-1", Reason: "its host is off"},
	}
	agree(t, intent.Table, func(from intent.Phase, on intent.On) (intent.Phase, bool) {
		s := intent.State{Phase: from}
		after := s.Apply(&events.Meta{Time: t0}, byOn[on])
		return after.Phase, after != s
	})
}

// D1: an intent is for at most 300 seconds and a free name, and is admitted
// once; D19: nobody launches where the instance is gone.
func TestIntentIsAdmitted(t *testing.T) {
	l := admitted(t)
	if again, err := l.Admit(launch, at(time.Minute)); len(again) > 0 || err != nil {
		t.Errorf("the same again: %v %v", again, err)
	}
	other := launch
	other.Request = []byte(`{"name":"demo","cpus":"64"}`)
	_, err := l.Admit(other, t0)
	refusedAs(t, "another launch under the same id", err, fault.Conflict)
	for name, c := range map[string]struct {
		on     *life
		change func(*events.IntentAdmitted)
		want   fault.Code
	}{
		"301 s":                    {fresh(t), func(a *events.IntentAdmitted) { a.ExpiresAt = at(301 * time.Second) }, fault.BadRequest},
		"over already":             {fresh(t), func(a *events.IntentAdmitted) { a.ExpiresAt = t0 }, fault.BadRequest},
		"no such kind":             {fresh(t), func(a *events.IntentAdmitted) { a.Kind = "pause" }, fault.BadRequest},
		"an instance that is gone": {fresh(t), func(a *events.IntentAdmitted) { a.Epoch = 0 }, fault.FailedPrecondition},
		"a name that is held":      {running(t), func(*events.IntentAdmitted) {}, fault.FailedPrecondition},
	} {
		a := launch
		c.change(&a)
		_, err := c.on.Admit(a, t0)
		refusedAs(t, name, err, c.want)
	}
}

// D2: a retirement is admitted for the lifecycle that an intent of the same
// owner enrolled on that instance, and for no other seat.
func TestIntentToRetireNeedsItsLaunch(t *testing.T) {
	if _, err := enrolled(t).Admit(retire, t0); err != nil {
		t.Errorf("its own launch: %v", err)
	}
	for name, c := range map[string]struct {
		on     *life
		change func(*events.IntentAdmitted)
		want   fault.Code
	}{
		"no seat":                   {fresh(t), func(*events.IntentAdmitted) {}, fault.NotFound},
		"a seat of the manager":     {running(t), func(*events.IntentAdmitted) {}, fault.FailedPrecondition},
		"one that is not there yet": {consumed(t), func(*events.IntentAdmitted) {}, fault.FailedPrecondition},
		"another lifecycle":         {enrolled(t), func(a *events.IntentAdmitted) { a.UID = uid2 }, fault.Expired},
		"another owner":             {enrolled(t), func(a *events.IntentAdmitted) { a.By.Owner = "other" }, fault.FailedPrecondition},
		"another instance":          {enrolled(t), func(a *events.IntentAdmitted) { a.Instance = afar.Instance }, fault.FailedPrecondition},
	} {
		a := retire
		c.change(&a)
		_, err := c.on.Admit(a, t0)
		refusedAs(t, name, err, c.want)
	}
}

// D3, D6: only the run that was allowed executes exactly what was allowed, in
// time. The gate's epoch is compared first, then the record's.
func TestIntentIsUsedAsAdmitted(t *testing.T) {
	for name, c := range map[string]struct {
		use  func(*intent.Use)
		self events.Writer
		now  time.Duration
		want fault.Code
	}{
		"no such intent":         {func(u *intent.Use) { u.Intent = "launch-2" }, self, 0, fault.NotFound},
		"another instance":       {func(u *intent.Use) { u.Instance = afar.Instance }, self, 0, fault.PermissionDenied},
		"asked of another":       {func(*intent.Use) {}, afar, 0, fault.PermissionDenied},
		"an epoch that is over":  {func(*intent.Use) {}, later, 0, fault.Conflict},
		"a later epoch than its": {func(u *intent.Use) { u.Epoch = 3 }, later, 0, fault.PermissionDenied},
		"too late":               {func(*intent.Use) {}, self, 5*time.Minute + time.Millisecond, fault.FailedPrecondition},
	} {
		l, u := admitted(t), use("launch-1")
		c.use(&u)
		_, err := l.Launch(u, claim1(), c.self, at(c.now))
		refusedAs(t, name, err, c.want)
		if got := l.phase("launch-1"); got != "admitted " {
			t.Errorf("%s: it is %s", name, got)
		}
	}
	l := enrolled(t)
	l.do(l.Admit(retire, t0))
	_, err := l.Launch(use("retire-1"), claim1(), self, t0)
	refusedAs(t, "a launch by a retirement", err, fault.PermissionDenied)
	if _, err := admitted(t).Launch(use("launch-1"), claim1(), self, at(5*time.Minute)); err != nil {
		t.Errorf("at its last moment: %v", err)
	}
}

// D4, D7: one commit uses the intent up, pins request, lifecycle, operation and
// executor, and claims the name at that lifecycle, before any effect; D5: the
// one that loses is a conflict; D12: a repeat of the same request decides
// nothing.
func TestIntentIsUsedOnce(t *testing.T) {
	l := consumed(t)
	i, _ := l.Intent("launch-1")
	if i.Phase != intent.Consumed || i.Used != "request-1" || i.UID != uid1 || i.Executor != self || i.Operation != l.Head.Gate.Operation {
		t.Errorf("it pins %+v", i)
	}
	if l.Slot.UID != uid1 || l.Slot.Phase != slot.Provisioning || l.Environment.Operation != nil || len(l.Head.Ledger) != 0 {
		t.Errorf("the name is %s at %s, with something done already", l.Slot.Phase, l.Slot.UID)
	}
	again, err := l.Launch(use("launch-1"), claim1(), self, at(time.Hour))
	if len(again) > 0 || err != nil {
		t.Errorf("the same request again: %v %v", again, err)
	}
	u := use("launch-1")
	u.Request = "request-2"
	_, err = l.Launch(u, claim1(), self, t0)
	refusedAs(t, "another request", err, fault.Conflict)
	for name, change := range map[string]func(*intent.Use){
		"another epoch":    func(u *intent.Use) { u.Epoch++ },
		"another instance": func(u *intent.Use) { u.Instance = afar.Instance },
	} {
		u := use("launch-1")
		change(&u)
		_, err := l.Launch(u, claim1(), self, t0)
		refusedAs(t, name+" under the id that used it", err, fault.Conflict)
	}
}

// D18: what is launched is the user's: under no other caller, and no other owner.
func TestIntentLaunchesUnderItsUser(t *testing.T) {
	for name, by := range map[string]events.Caller{
		"another agent": {Owner: "local", Actor: "other", UID: uid2}, "another owner": {Owner: "other", Actor: "me", UID: uid2},
	} {
		c := claim1()
		c.Goal = events.GoalBoundary(by, "launch-1")
		_, err := admitted(t).Launch(use("launch-1"), c, self, t0)
		refusedAs(t, name, err, fault.PermissionDenied)
	}
	foreign := launch
	foreign.By.Owner = "other" // the seat is local's
	l := fresh(t).add(foreign)
	c := claim1()
	c.Goal = events.GoalBoundary(foreign.By, "launch-1")
	_, err := l.Launch(use("launch-1"), c, self, t0)
	refusedAs(t, "an intent of another owner", err, fault.PermissionDenied)
}

// D8: a launch that does not come about ends with the whole barrier at its
// lifecycle, and then only has an outcome; D16, D17: until then the name is
// refused at every door.
func TestIntentThatFailsIsCompensated(t *testing.T) {
	l := consumed(t).add(events.EnvironmentRefused{Environment: env1, Fault: fault.New(fault.FailedPrecondition, "no room")})
	l.do(l.Retire(uid1, "failed", 0))
	if got := l.phase("launch-1"); got != "consumed " {
		t.Errorf("before the proof it is %s", got)
	}
	other := launch
	other.Intent = "launch-2"
	_, err := l.Admit(other, t0)
	refusedAs(t, "another intent", err, fault.FailedPrecondition)
	if e := fault.From(err); len(e.Details) == 0 || e.Details[0].Kind != aggregates.DetailIntentHeld {
		t.Errorf("it does not say what holds the name: %+v", e)
	}
	_, err = l.Claim(aggregates.Claim{UID: uid2, Environment: env2})
	refusedAs(t, "a spawn", err, fault.FailedPrecondition)
	l.gone()
	if got := l.phase("launch-1"); got != "ended aborted" {
		t.Errorf("after the proof it is %s", got)
	}
	if _, err := l.Claim(aggregates.Claim{UID: uid2, Environment: env2}); err != nil {
		t.Errorf("the name is not free: %v", err)
	}
}

// D7, D10: a launch is enrolled when its seat is active; its retirement ends
// exactly that lifecycle, and says what it found.
func TestIntentRetires(t *testing.T) {
	l := enrolled(t)
	if got := l.phase("launch-1"); got != "ended enrolled" {
		t.Errorf("the launch is %s", got)
	}
	l.do(l.Admit(retire, t0))
	l.do(l.RetireFor(use("retire-1"), self, t0, 0))
	if i, _ := l.Intent("retire-1"); i.Phase != intent.Consumed || i.Operation != aggregates.RetirementID(uid1) || l.Slot.Phase != slot.Terminalizing {
		t.Errorf("%+v, the seat is %s", i, l.Slot.Phase)
	}
	if again, err := l.RetireFor(use("retire-1"), self, t0, 0); len(again) > 0 || err != nil {
		t.Errorf("the same again: %v %v", again, err)
	}
	if l.gone(); l.phase("retire-1") != "ended retired" {
		t.Errorf("the retirement is %s", l.phase("retire-1"))
	}
	l = enrolled(t)
	l.do(l.Admit(retire, t0))
	l.do(l.Retire(uid1, "retired", 0)).gone()
	if l.do(l.RetireFor(use("retire-1"), self, t0, 0)); l.phase("retire-1") != "ended already-retired" {
		t.Errorf("of a lifecycle that has ended it is %s", l.phase("retire-1"))
	}
}

// D9: where the name is at another lifecycle there is no outcome, and the intent
// is not used up; it is asked again, until it expires.
func TestIntentAtAnotherLifecycleHasNoOutcome(t *testing.T) {
	l := enrolled(t)
	l.do(l.Admit(retire, t0))
	l.do(l.Retire(uid1, "retired", 0)).gone()
	l.do(l.Claim(aggregates.Claim{UID: uid2, Environment: env2, Activation: "activation-0000002", Holder: inst, Plan: plan, Target: events.TargetRunning}))
	_, err := l.RetireFor(use("retire-1"), self, t0, 0)
	refusedAs(t, "another lifecycle", err, fault.Expired)
	if got := l.phase("retire-1"); got != "admitted " {
		t.Errorf("it is %s", got)
	}
}

// D11, D15, D16: where the executor is gone, its instance sweeps the intent when
// it has started again: nothing is enrolled any more, the launch is undone to
// the proof, and the name is free, because that run is known to be over.
func TestIntentIsSweptByItsInstance(t *testing.T) {
	l := consumed(t)
	if es := l.Sweep(self); len(es) > 0 {
		t.Errorf("the executor sweeps itself: %v", es)
	}
	if es := l.Sweep(events.Writer{Instance: inst, Epoch: 1}); len(es) > 0 {
		t.Errorf("an earlier run sweeps a later one: %v", es)
	}
	l.add(events.SlotTakenOver{UID: uid1, Holder: inst, Epoch: 3}).add(l.Sweep(later)...)
	if got := l.phase("launch-1"); got != "swept " || l.Slot.Phase != slot.Terminalizing || l.Slot.Reason != aggregates.ReasonSwept {
		t.Errorf("it is %s, the seat %s", got, l.Slot.Phase)
	}
	if es := l.Sweep(afar); len(es) > 0 {
		t.Errorf("it is swept twice: %v", es)
	}
	if es := append(l.Enrolled(self), l.Enrolled(later)...); len(es) > 0 {
		t.Errorf("it is enrolled after the sweep: %v", es)
	}
	if l.gone(); l.phase("launch-1") != "released aborted" {
		t.Errorf("at the end it is %s", l.phase("launch-1"))
	}
	if _, err := l.Claim(aggregates.Claim{UID: uid2, Environment: env2}); err != nil {
		t.Errorf("the name is not free: %v", err)
	}
}

// D16, D17: swept by another instance, the name is held on after the end, until
// an operator vouches that the executor is over.
func TestIntentSweptByAnotherHoldsTheName(t *testing.T) {
	l := consumed(t).add(events.SlotTakenOver{UID: uid1, Holder: afar.Instance, Epoch: afar.Epoch})
	l.add(l.Sweep(afar)...)
	_, err := l.ReleaseIntent("launch-1", caller, "its host is off")
	refusedAs(t, "before the end", err, fault.FailedPrecondition)
	l.gone()
	if got := l.phase("launch-1"); got != "held aborted" || l.Slot.Held() {
		t.Errorf("it is %s, the slot %s", got, l.Slot.Phase)
	}
	_, err = l.Claim(aggregates.Claim{UID: uid2, Environment: env2})
	refusedAs(t, "a spawn", err, fault.FailedPrecondition)
	_, err = l.Admit(events.IntentAdmitted{Intent: "launch-2", Kind: events.IntentLaunch, By: caller, Instance: inst, Epoch: 2, ExpiresAt: at(time.Minute)}, t0)
	refusedAs(t, "another intent", err, fault.FailedPrecondition)
	_, err = l.ReleaseIntent("launch-1", caller, "")
	refusedAs(t, "without a reason", err, fault.BadRequest)
	_, err = l.ReleaseIntent("launch-2", caller, "x")
	refusedAs(t, "no such intent", err, fault.NotFound)
	l.do(l.ReleaseIntent("launch-1", caller, "its host is off"))
	if again, err := l.ReleaseIntent("launch-1", caller, "its host is off"); len(again) > 0 || err != nil {
		t.Errorf("again: %v %v", again, err)
	}
	if _, err := l.Claim(aggregates.Claim{UID: uid2, Environment: env2}); err != nil {
		t.Errorf("the name is not free: %v", err)
	}
}

// D16: a write-off is an operator's word for environment and name: both are let go.
func TestIntentIsWrittenOff(t *testing.T) {
	l := consumed(t).dispatch("operation-reserve-1", events.VerbReserve).lose("operation-reserve-1")
	es, _, err := l.WriteOff(caller, "the account is closed")
	if l.do(es, err); l.phase("launch-1") != "released " {
		t.Errorf("it is %s", l.phase("launch-1"))
	}
}

// D19: where the instance is gone, a retirement is for whoever holds the seat.
func TestIntentOfAnInstanceThatIsGone(t *testing.T) {
	l := enrolled(t)
	a := retire
	a.Epoch = 0
	l.do(l.Admit(a, t0))
	l.add(events.SlotTakenOver{UID: uid1, Holder: afar.Instance, Epoch: afar.Epoch})
	_, err := l.RetireFor(use("retire-1"), self, t0, 0)
	refusedAs(t, "the one that is gone", err, fault.PermissionDenied)
	u := use("retire-1")
	u.Instance, u.Epoch = afar.Instance, afar.Epoch
	l.do(l.RetireFor(u, afar, t0, 0))
	if l.gone(); l.phase("retire-1") != "ended retired" {
		t.Errorf("it is %s", l.phase("retire-1"))
	}
}

// D20: a seat that a user had launched does not outlive the run that launched it.
func TestIntentsSeatIsNotPreserved(t *testing.T) {
	l := enrolled(t)
	for name, c := range map[string]struct {
		by   events.Writer
		want bool
	}{"its executor": {self, false}, "the next run": {later, true}, "another instance": {afar, true}} {
		if got := l.Unpreserved(c.by); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if running(t).Unpreserved(later) {
		t.Error("a seat of the manager itself is not kept")
	}
}

// A name remembers a bounded number of intents; what is over makes room, but for
// the launch of the lifecycle that it is at (D2).
func TestIntentsAreBounded(t *testing.T) {
	l := fresh(t)
	for n := range aggregates.MaxIntents {
		a := launch
		a.Intent = events.GoalID(fmt.Sprintf("launch-%d", n+1))
		l.do(l.Admit(a, t0))
	}
	more := launch
	more.Intent = "launch-9"
	_, err := l.Admit(more, t0)
	refusedAs(t, "one more", err, fault.ResourceExhausted)
	l.do(l.Launch(use("launch-1"), claim1(), self, t0))
	if len(l.Intents) != aggregates.MaxIntents {
		t.Errorf("%d are kept", len(l.Intents))
	}
	l = enrolled(t)
	m := events.Meta{Time: at(time.Hour), Writer: self}
	for n := range 2 * aggregates.MaxIntents {
		a := retire
		a.Intent, a.ExpiresAt = events.GoalID(fmt.Sprintf("retire-%d", n+1)), at(time.Duration(n)*time.Hour)
		m.Time = at(time.Duration(n) * time.Hour)
		l.Seat = l.With(m, a)
	}
	if !slices.ContainsFunc(l.Intents, func(i intent.State) bool { return i.ID == "launch-1" }) || len(l.Intents) > aggregates.MaxIntents {
		t.Errorf("kept are %d, the first of them %s", len(l.Intents), l.Intents[0].ID)
	}
}
