package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/aggregates/environment"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
	"berth/internal/handoff"
	"berth/providers/drill"
	"berth/sagas"
	"berth/sagas/sagastest"
)

// delegation is a profile as a manager has one.
func delegation(t testing.TB) *handoff.Profile {
	p, err := handoff.ParseProfile([]byte(`{"kind":"berth-delegation/v1","server":"nats://127.0.0.1:4222","tlsRequired":false,"authProvider":"oidc",
		"idp":{"url":"https://idp.example","issuer":"https://idp.example/","audience":"berth"},"exchangeUrl":"https://exchange.example",
		"sentinelFile":"/etc/berth/sentinel","subscribe":[],"allowSubscribe":["team.>"],"allowPublish":[]}`))
	if err == nil {
		p, err = p.WithSentinel("sentinel", "default")
	}
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

// delegated runs f in a world whose every spawn is of a delegated seat.
func delegated(t *testing.T, f func(w *sagastest.World), rules ...drill.Rule) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := sagastest.Prepare(t, rules...)
		w.Alter = func(p *events.Plan) { p.Delegated = true }
		profile := delegation(t)
		w.Options = func(o *sagas.Options) { o.Delegation = profile }
		w.Start()
		defer w.End()
		f(w)
	})
}

// once holds that one uid was handed over at most once, and that nothing was
// created under a second operation id after one was lost.
func once(w *sagastest.World) {
	w.T.Helper()
	if n := len(w.Provider.Handed()); n > 1 {
		w.T.Errorf("%d operations brought a hand-off\n%s", n, w.Story())
	}
	if n := w.Creations(); n > 1 {
		w.T.Errorf("%d environments were made\n%s", n, w.Story())
	}
	made := map[drill.Verb][]events.OperationID{}
	for _, c := range w.Provider.Status().Calls {
		switch c.Verb {
		case "reserve", "provision", "start":
			if !slices.Contains(made[c.Verb], c.Operation) {
				made[c.Verb] = append(made[c.Verb], c.Operation)
			}
		}
	}
	for v, ids := range made {
		if len(ids) > 1 {
			w.T.Errorf("%s was dispatched under %d ids\n%s", v, len(ids), w.Story())
		}
	}
}

// staged is what this host keeps of credentials.
func staged(w *sagastest.World) []string {
	files, err := filepath.Glob(filepath.Join(w.Dir, "material", "*", "*"))
	if err != nil {
		w.T.Fatal(err)
	}
	return files
}

// H1, H3, H6, H7, H11: the document goes to the provider with the start, once,
// for this lifecycle; its token is the one credential of the ledger. Then the
// manager has it no more, and neither the log nor an answer ever had it.
func TestDelegatedSeatIsHandedOverOnce(t *testing.T) {
	delegated(t, func(w *sagastest.World) {
		running(w, "web")
		once(w)
		handed := w.Provider.Handed()
		s := w.Seat("web")
		for id, raw := range handed {
			d, err := handoff.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			want := handoff.Target{Space: "default", Owner: s.Owner, Actor: "web", UID: s.Slot.UID}
			if d.Target != want || !strings.HasPrefix(d.Token.Reveal(), "SU") {
				t.Errorf("it is for %+v", d.Target)
			}
			if op, ok := s.Environment.Find(id); !ok || op.Verb != events.VerbStart {
				t.Errorf("%s brought it", op.Verb)
			}
			if strings.Contains(w.Story(), d.Token.Reveal()) || strings.Contains(string(raw), w.Dir) {
				t.Error("the token is in the log, or a path of the manager in the hand-off")
			}
		}
		if len(handed) != 1 || len(s.Head.Ledger) != 1 {
			t.Errorf("%d hand-offs, %d credentials", len(handed), len(s.Head.Ledger))
		}
		if left := staged(w); len(left) != 0 {
			t.Errorf("the manager still has %v", left)
		}
		w.Retire("web")
		gone(w, "web")
		once(w)
	})
}

// H6, H12, H13, H17: whatever goes wrong with a call, nothing is created under
// a second id, the hand-off is given once, and the end is proved.
func TestDelegatedSeatIsNeverCreatedAgain(t *testing.T) {
	for _, verb := range []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart} {
		for _, f := range []drill.Fault{drill.AcceptThenDrop, drill.ErrorAfterAccept, drill.NeverAnswer, drill.Refuse, drill.Throttle} {
			for name, delay := range map[string]int64{"now": 0, "a day later": 86_400_000} {
				r := drill.Rule{Verb: drill.Verb(verb), Nth: 1, Fault: f, DelayMs: delay}
				if (drill.Script{Rules: []drill.Rule{r}}).Check() != nil {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", verb, f, name), func(t *testing.T) {
					delegated(t, func(w *sagastest.World) {
						goal := w.Spawn("web")
						w.Until("the goal's end", 3*time.Hour, w.Ended(goal))
						w.Until("its settlement", 3*time.Hour, func() bool {
							g := w.Goal(goal)
							return g.State != events.GoalUncertain || g.Settled != nil
						})
						if w.Seat("web").Slot.Held() {
							w.Retire("web")
						}
						gone(w, "web")
						once(w)
						if left := staged(w); len(left) != 0 {
							t.Errorf("the manager still has %v", left)
						}
					}, r)
				})
			}
		}
	}
}

// H12, H13, H14: a start whose answer is lost, at a provider that shows nothing
// and proves nothing, keeps the seat uncertain and its name held, under the
// one operation id, for as long as that lasts. Only the fence ends it, and then
// nothing is started again.
func TestDelegatedLostStartIsHeld(t *testing.T) {
	delegated(t, func(w *sagastest.World) {
		goal := w.Spawn("web")
		w.Until("the goal's end", time.Hour, w.Ended(goal))
		if g := w.Goal(goal); g.State != events.GoalUncertain {
			t.Fatalf("the goal is %s", g.State)
		}
		id := w.Seat("web").Environment.Operation.ID
		time.Sleep(20 * time.Minute)
		s := w.Seat("web")
		if op := s.Environment.Operation; op == nil || op.ID != id || op.Phase != environment.Uncertain || !s.Slot.Held() {
			t.Fatalf("it is not held: %s\n%s", s.Status(), w.Story())
		}
		once(w)
		w.Restart() // V5: the name is held from the log before any goal is gone on with
		time.Sleep(20 * time.Minute)
		if s := w.Seat("web"); s.Environment.Operation == nil || s.Environment.Operation.ID != id || !s.Slot.Held() {
			t.Fatalf("it is not held by the next manager: %s\n%s", s.Status(), w.Story())
		}
		once(w)
		w.Provider.SetScript(drill.Script{})
		gone(w, "web")
		once(w)
		if g := w.Goal(goal); g.Settled == nil || g.Settled.State != events.GoalFailed {
			t.Errorf("the goal is settled as %+v", g.Settled)
		}
	}, drill.Rule{Verb: "start", Nth: 1, Fault: drill.AcceptThenDrop, DelayMs: 86_400_000},
		drill.Rule{Verb: "reconcile", Fault: drill.NeverAnswer}, drill.Rule{Verb: "exclude", Fault: drill.NeverAnswer})
}

// H6, H16, H17: the manager dies at every point of a delegated life and is
// started again: the hand-off is given at most once, nothing is made twice, and
// the end is proved.
func TestDelegatedCrashAtEveryPoint(t *testing.T) {
	life := func(w *sagastest.World) {
		goal := w.Spawn("web")
		w.Until("the goal's end", 3*time.Hour, w.Ended(goal))
		w.Until("rest", 3*time.Hour, func() bool {
			return w.Seat("web").Environment.Operation == nil && w.Seat("web").Slot.Phase != slot.Provisioning
		})
		if w.Seat("web").Slot.Held() {
			w.Retire("web")
		}
		gone(w, "web")
		once(w)
		if left := staged(w); len(left) != 0 {
			w.T.Errorf("the manager still has %v", left)
		}
	}
	var all []string
	delegated(t, func(w *sagastest.World) { life(w); all = slices.Clone(w.Passed) })
	if len(all) < 20 {
		t.Fatalf("a delegated life passes only %d points", len(all))
	}
	for n, point := range all {
		t.Run(fmt.Sprintf("%d-%s", n+1, point), func(t *testing.T) {
			delegated(t, func(w *sagastest.World) { w.CrashAt(n + 1); life(w) })
		})
	}
}

// H5: a manager that has lost its profile starts no delegated seat: it is
// refused before the call, and taken down.
func TestDelegatedSeatWithoutAProfile(t *testing.T) {
	delegated(t, func(w *sagastest.World) {
		w.Stop()
		w.Options = nil
		w.Start()
		goal := w.Spawn("web")
		gone(w, "web")
		w.Until("the goal's end", time.Hour, w.Ended(goal))
		if g := w.Goal(goal); g.State != events.GoalFailed || g.Fault.Code != fault.FailedPrecondition {
			t.Errorf("%s: %v", g.State, g.Fault)
		}
		if n := len(w.Provider.Handed()); n != 0 {
			t.Errorf("%d hand-offs", n)
		}
		if _, err := os.Stat(filepath.Join(w.Dir, "material", string(w.Seat("web").Slot.UID))); !os.IsNotExist(err) {
			t.Error("the credential is left")
		}
	})
}
