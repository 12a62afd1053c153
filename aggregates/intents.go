package aggregates

import (
	"slices"
	"time"

	"berth/aggregates/intent"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
)

// MaxIntents is how many delegated intents one name remembers. One that is over
// makes room; the launch of the current lifecycle stays.
const MaxIntents = 8

// DetailIntentHeld is the kind of the detail that says which intent holds a name.
const DetailIntentHeld = "berth.intent-held"

// foldIntent takes in one event of an intent. What is not in the table, and an
// intent that was never admitted, leaves the list as it is.
func (s *Seat) foldIntent(m *events.Meta, e events.Event) {
	id, on, ok := intent.Meaning(e)
	if !ok {
		return
	}
	i := slices.IndexFunc(s.Intents, func(x intent.State) bool { return x.ID == id })
	if on == intent.OnAdmit {
		if i < 0 && s.room(m.Time) {
			kept := slices.Clone(s.Intents)
			if len(kept) >= MaxIntents {
				kept = slices.DeleteFunc(kept, func(x intent.State) bool { return s.forgettable(x, m.Time) })
			}
			s.Intents = append(kept, intent.State{}.Apply(m, e))
		}
		return
	}
	if i < 0 {
		return
	}
	next := s.Intents[i].Apply(m, e)
	s.Intents = slices.Clone(s.Intents)
	s.Intents[i] = next
}

// checkIntent refuses an event that the table of intents does not allow now.
func (s Seat) checkIntent(m *events.Meta, e events.Event) error {
	id, on, ok := intent.Meaning(e)
	if !ok {
		return nil
	}
	i, _ := s.Intent(id)
	if _, ok := intent.Table.Next(i.Phase, on); !ok {
		return intent.Table.Refuse(i.Phase, on)
	}
	if on == intent.OnAdmit && !s.room(m.Time) {
		return fault.New(fault.ResourceExhausted, "%s has %d intents, which is the limit", s.Alias, MaxIntents)
	}
	return nil
}

// forgettable is an intent that is over, but for the launch of the lifecycle
// that the name is at: its retirement asks for it (D2).
func (s Seat) forgettable(i intent.State, now time.Time) bool {
	return i.Over(now) && (i.Outcome != events.IntentEnrolled || i.UID != s.Slot.UID || !s.Slot.Held())
}

func (s Seat) room(now time.Time) bool {
	return len(s.Intents) < MaxIntents || slices.ContainsFunc(s.Intents, func(i intent.State) bool { return s.forgettable(i, now) })
}

// Intent is what is remembered of one intent.
func (s Seat) Intent(id events.GoalID) (intent.State, bool) {
	for _, i := range s.Intents {
		if i.ID == id {
			return i, true
		}
	}
	return intent.State{}, false
}

// Holding is the intent that holds the name, if one does (D16).
func (s Seat) Holding() (intent.State, bool) {
	for _, i := range s.Intents {
		if i.Holds() {
			return i, true
		}
	}
	return intent.State{}, false
}

// unheld refuses a name that another intent than id holds, by whichever door
// one comes (D17).
func (s Seat) unheld(id events.GoalID) error {
	i, ok := s.Holding()
	if !ok || i.ID == id {
		return nil
	}
	e := fault.New(fault.FailedPrecondition, "the name %s is held by intent %s, which is %s", s.Alias, i.ID, i.Phase).
		WithDetail(DetailIntentHeld, "intent", string(i.ID), "phase", string(i.Phase), "uid", string(i.UID), "executor", string(i.Executor.Instance))
	if i.Phase == intent.Held {
		return e.WithHint("once the run that executed it is known to be over: `berth intent release %s %s --reason ...`", s.Alias, i.ID)
	}
	return e.WithHint("it ends with its seat: `berth inspect %s`", s.Alias)
}

// Admit lets an instance do one thing once for the user (D1, D2). The same
// intent again decides nothing; another under its id is a conflict.
func (s Seat) Admit(a events.IntentAdmitted, now time.Time) ([]events.Event, error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	if i, ok := s.Intent(a.Intent); ok {
		if i.Kind != a.Kind || i.By != a.By || i.Instance != a.Instance || i.Phase == intent.Admitted && i.Request != string(a.Request) || a.Kind == events.IntentRetire && i.UID != a.UID {
			return nil, fault.New(fault.Conflict, "intent %s was admitted for something else", a.Intent).WithHint("use a new intent id")
		}
		return nil, nil
	}
	if left := a.ExpiresAt.Sub(now); left <= 0 || left > intent.MaxLife {
		return nil, fault.New(fault.BadRequest, "an intent has to be used within %s", intent.MaxLife)
	}
	if err := s.unheld(""); err != nil {
		return nil, err
	}
	if !s.room(now) {
		return nil, fault.New(fault.ResourceExhausted, "%s has %d intents, which is the limit", s.Alias, MaxIntents).WithHint("each ends by itself after at most %s", intent.MaxLife)
	}
	switch a.Kind {
	case events.IntentLaunch:
		if a.Epoch == 0 {
			return nil, fault.New(fault.FailedPrecondition, "instance %s does not run: nobody could launch %s there", a.Instance, s.Alias)
		}
		if s.Slot.Held() {
			return nil, s.taken()
		}
	case events.IntentRetire:
		return s.admitRetire(a)
	default:
		return nil, fault.New(fault.BadRequest, "%q is not a kind of intent: launch or retire", a.Kind)
	}
	return []events.Event{a}, nil
}

// admitRetire keeps D2: what is retired for a user was launched for the same
// owner, by an intent that enrolled on that instance.
func (s Seat) admitRetire(a events.IntentAdmitted) ([]events.Event, error) {
	if err := s.held(); err != nil {
		return nil, err
	}
	if err := s.Slot.Is(a.UID); err != nil {
		return nil, err
	}
	l, ok := s.launched()
	if !ok || l.Instance != a.Instance || l.By.Owner != a.By.Owner {
		return nil, fault.New(fault.FailedPrecondition, "%s was not launched by an intent of owner %s on instance %s", s.Alias, a.By.Owner, a.Instance).
			WithHint("`berth retire %s` ends one's own seats", s.Alias)
	}
	return []events.Event{a}, nil
}

// launched is the launch that enrolled the current lifecycle.
func (s Seat) launched() (intent.State, bool) {
	for _, i := range s.Intents {
		if i.Kind == events.IntentLaunch && i.Outcome == events.IntentEnrolled && i.UID == s.Slot.UID {
			return i, true
		}
	}
	return intent.State{}, false
}

// MayUse is the intent of a use, or its refusal; done is true for a repeat of
// the request that used it (D12).
func (s Seat) MayUse(u intent.Use, self events.Writer, now time.Time) (i intent.State, done bool, err error) {
	if err := s.readable(); err != nil {
		return i, false, err
	}
	i, ok := s.Intent(u.Intent)
	if !ok {
		return i, false, fault.New(fault.NotFound, "%s has no intent %s", s.Alias, u.Intent)
	}
	if done, err = i.Usable(u, self, s.Slot.Holder, now); done || err != nil {
		return i, done, err
	}
	return i, false, s.unheld(i.ID)
}

// Launch uses an intent up and claims the name for it, in one commit: who
// executes it and which lifecycle it is for are pinned before any effect (D4,
// D7). A repeat of the same request decides nothing (D12).
func (s Seat) Launch(u intent.Use, c Claim, self events.Writer, now time.Time) ([]events.Event, error) {
	u.Kind = events.IntentLaunch
	i, done, err := s.MayUse(u, self, now)
	if done || err != nil {
		return nil, err
	}
	if g, _, ok := c.Goal.Goal(); !ok || g != i.By || g.Owner != s.Owner {
		return nil, fault.New(fault.PermissionDenied, "intent %s launches under its user, not under another", i.ID) // D18
	}
	used := events.IntentConsumed{Intent: i.ID, Request: u.Request, UID: c.UID, Operation: c.Activation, Executor: self}
	claimed, err := s.With(events.Meta{Time: now}, used).claim(c, i.ID)
	if err != nil {
		return nil, err
	}
	if len(claimed) == 0 { // another claim of that uid was before it
		return nil, fault.New(fault.Conflict, "lifecycle %s was claimed without intent %s", c.UID, i.ID)
	}
	return append([]events.Event{used}, claimed...), nil
}

// RetireFor uses an intent up and begins the end of exactly the lifecycle that
// it names (D10). At another one there is no outcome, and nothing is used (D9).
func (s Seat) RetireFor(u intent.Use, self events.Writer, now time.Time, grace time.Duration) ([]events.Event, error) {
	u.Kind = events.IntentRetire
	i, done, err := s.MayUse(u, self, now)
	if done || err != nil {
		return nil, err
	}
	if err := s.Slot.Is(i.UID); err != nil {
		return nil, err
	}
	used := events.IntentConsumed{Intent: i.ID, Request: u.Request, UID: i.UID, Operation: RetirementID(i.UID), Executor: self}
	if s.Slot.Phase == slot.Retired {
		return []events.Event{used, events.IntentEnded{Intent: i.ID, Outcome: events.IntentAlreadyRetired}}, nil
	}
	es, err := s.Retire(i.UID, "retired", grace)
	return append([]events.Event{used}, es...), err
}

// Enrolled is the outcome of a launch whose seat is active now, by the run that
// executes it (D7); nothing for any other seat, and after a sweep (D11, D15).
func (s Seat) Enrolled(self events.Writer) []events.Event {
	i, ok := s.Holding()
	if !ok || i.Phase != intent.Consumed || i.Kind != events.IntentLaunch || i.UID != s.Slot.UID || i.Executor != self {
		return nil
	}
	return []events.Event{events.IntentEnded{Intent: i.ID, Outcome: events.IntentEnrolled}}
}

// Sweep takes over an intent whose executor is gone: an earlier run of the
// instance that holds the seat, or another one that it was taken from. The
// first wins; what is left of a launch is its end (D11).
func (s Seat) Sweep(self events.Writer) []events.Event {
	i, ok := s.Holding()
	if !ok || i.Phase != intent.Consumed || i.UID != s.Slot.UID || i.Executor == self ||
		i.Executor.Instance == self.Instance && i.Executor.Epoch > self.Epoch {
		return nil
	}
	es := []events.Event{events.IntentSwept{Intent: i.ID, By: self}}
	if i.Kind == events.IntentLaunch {
		end, err := s.Retire(s.Slot.UID, ReasonSwept, 0)
		if err != nil {
			return nil
		}
		es = append(es, end...)
	}
	return es
}

// The reasons of ends that intents cause.
const (
	ReasonSwept        = "swept"         // its executor was gone before it ran (D11)
	ReasonNotPreserved = "not-preserved" // the run that launched it is over (D20)
)

// Unpreserved says that the seat was launched by an intent whose executor is
// gone: such a seat is neither kept nor started again (D20).
func (s Seat) Unpreserved(self events.Writer) bool {
	i, ok := s.launched()
	return ok && s.Slot.Phase == slot.Active && i.Executor != self && (i.Executor.Instance != self.Instance || i.Executor.Epoch < self.Epoch)
}

// finished is the outcome that the end of a lifecycle has for the intent that
// holds the name (D8, D10), and the release where the executor's own instance
// brought it there: that it runs again is the proof that its earlier run does
// not (D16).
func (s Seat) finished() []events.Event {
	i, ok := s.Holding()
	if !ok || i.UID != s.Slot.UID || i.Phase == intent.Held {
		return nil
	}
	out := events.IntentEnded{Intent: i.ID, Outcome: events.IntentAborted}
	if i.Kind == events.IntentRetire {
		out.Outcome = events.IntentRetired
	}
	es := []events.Event{out}
	if i.Phase == intent.Swept && i.SweptBy.Instance == i.Executor.Instance {
		es = append(es, events.IntentReleased{Intent: i.ID, Reason: "the executor's instance has started again"})
	}
	return es
}

// ReleaseIntent lets go of a name whose intent has ended after a sweep, by an
// operator who vouches that the run that executed it is over (D16).
func (s Seat) ReleaseIntent(id events.GoalID, by events.Caller, reason string) ([]events.Event, error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	i, ok := s.Intent(id)
	switch {
	case !ok:
		return nil, fault.New(fault.NotFound, "%s has no intent %s", s.Alias, id)
	case reason == "":
		return nil, fault.New(fault.BadRequest, "letting go of %s needs a reason: history shows it for ever", s.Alias)
	case i.Phase == intent.Released:
		return nil, nil
	case i.Phase != intent.Held:
		return nil, fault.New(fault.FailedPrecondition, "intent %s is %s: only one that ended after a sweep is released", id, i.Phase).
			WithHint("its seat ends first: `berth retire %s`", s.Alias)
	}
	return []events.Event{events.IntentReleased{Intent: id, By: &by, Reason: reason}}, nil
}

// writtenOff lets go of the name with the environment: the operator's word
// stands for both (decision 13).
func (s Seat) writtenOff(by events.Caller, reason string) []events.Event {
	i, ok := s.Holding()
	if !ok || i.UID != s.Slot.UID {
		return nil
	}
	return []events.Event{events.IntentReleased{Intent: i.ID, By: &by, Reason: reason}}
}
