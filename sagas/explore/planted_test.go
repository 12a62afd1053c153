package explore

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/sagas"
)

// next is the product with another kernel.
func next(f func(v *sagas.View, a sagas.Action) sagas.Action) Core {
	c := Product()
	c.Next = func(v *sagas.View) sagas.Action { return f(v, sagas.Next(v)) }
	return c
}

// with is the product with one thing changed.
func with(change func(*Core)) Core {
	c := Product()
	change(&c)
	return c
}

// on changes what one step does.
func on(step string, f func(*sagas.View, sagas.Action) sagas.Action) Core {
	return next(func(v *sagas.View, a sagas.Action) sagas.Action {
		if a.Step == step {
			return f(v, a)
		}
		return a
	})
}

// never has steps do nothing.
func never(steps ...string) Core {
	return next(func(v *sagas.View, a sagas.Action) sagas.Action {
		if slices.Contains(steps, a.Step) {
			return sagas.Action{Kind: sagas.Idle, Step: a.Step}
		}
		return a
	})
}

// skip has the kernel answer as if a step did not exist.
func skip(step string) Core {
	return with(func(c *Core) {
		c.Next = func(v *sagas.View) sagas.Action {
			steps := sagas.Steps
			defer func() { sagas.Steps = steps }()
			sagas.Steps = slices.DeleteFunc(slices.Clone(steps), func(s sagas.Step) bool { return s.Name == step })
			return sagas.Next(v)
		}
	})
}

func without(es []events.Event, types ...string) []events.Event {
	return slices.DeleteFunc(slices.Clone(es), func(e events.Event) bool {
		return slices.ContainsFunc(types, func(t string) bool { return strings.Contains(e.EventType(), t) })
	})
}

// goingOut is an action that dispatches verb.
func goingOut(v *sagas.View, verb events.Verb, args events.Arguments) sagas.Action {
	return sagas.Action{Kind: sagas.Dispatch, Step: "planted", Events: []events.Event{
		events.OperationDispatched{Environment: v.Seat.Environment.ID, Operation: v.Fresh, Verb: verb, Arguments: args}}}
}

func add(es ...events.Event) sagas.Action {
	return sagas.Action{Kind: sagas.Append, Step: "planted", Events: es}
}

// planted is one fault for each law, the budget in which it shows, and what it
// must be told with.
var planted = []struct {
	law, name string
	core      Core
	budget    Budget
}{
	{"law 1", "a call is made without its intent", on("reserve", func(v *sagas.View, a sagas.Action) sagas.Action {
		a.Events = []events.Event{events.TargetChanged{Environment: v.Seat.Environment.ID, Target: events.TargetRunning}}
		return a
	}), Budget{}},
	{"law 2", "another mutation goes out while one is uncertain", on("reconcile", func(v *sagas.View, a sagas.Action) sagas.Action {
		return goingOut(v, v.Seat.Environment.Operation.Verb, events.Arguments{})
	}), Budget{Faults: 1}},
	{"law 2", "the name is freed before the proof", on("destroy", func(v *sagas.View, a sagas.Action) sagas.Action {
		es, _ := v.Seat.Head.CompleteRetirement(aggregates.RetirementID(v.Seat.Slot.UID))
		return add(append(es, events.SlotRetired{UID: v.Seat.Slot.UID})...)
	}), Budget{}},
	{"2.6, turns", "a turn waits for ever", skip("lapse"), Budget{Commands: 1, Only: "turn"}},
	{"law 2, E9", "what was reserved is reserved again", on("provision", func(v *sagas.View, a sagas.Action) sagas.Action {
		return goingOut(v, events.VerbReserve, events.Arguments{})
	}), Budget{}},
	{"law 2, H13", "what a list does not show is taken as never made", with(func(c *Core) {
		c.Found = func(s aggregates.Seat, id events.OperationID, f providers.Finding, fresh events.OperationID) []events.Event {
			if f.Verdict == providers.Open {
				f.Verdict = providers.Excluded
			}
			return sagas.Found(s, id, f, fresh)
		}
	}), Budget{Faults: 1}},
	{"law 2, E8", "what has landed is taken as excluded", with(func(c *Core) {
		c.Found = func(s aggregates.Seat, id events.OperationID, f providers.Finding, fresh events.OperationID) []events.Event {
			f.Verdict = providers.Excluded
			if s.Environment.Operation.Phase == environment.Uncertain && f.Facts.State == "" {
				f.Verdict = providers.Open
			}
			return sagas.Found(s, id, f, fresh)
		}
	}), Budget{Faults: 1}},
	{"law 3", "the log takes what was decided on an old view", with(func(c *Core) { c.Takes = func(uint64, uint64) bool { return true } }), Budget{Crashes: 1}},
	{"law 3", "an epoch does not take a seat before it acts", next(func(v *sagas.View, a sagas.Action) sagas.Action {
		a.Events = without(a.Events, "taken-over")
		return a
	}), Budget{Crashes: 1}},
	{"law 3", "an epoch that is over goes on", with(func(c *Core) {
		c.Next = func(v *sagas.View) sagas.Action {
			mine := *v
			if v.Seat.Slot.Held() {
				mine.Seat.Slot.Holder, mine.Seat.Slot.Epoch = v.Self.Instance, min(v.Seat.Slot.Epoch, v.Self.Epoch)
			}
			return sagas.Next(&mine)
		}
	}), Budget{Crashes: 1}},
	{"law 4", "a boundary that can't be read is acted on", with(func(c *Core) {
		c.Next = func(v *sagas.View) sagas.Action {
			readable := *v
			readable.Seat.Quarantine = nil
			return sagas.Next(&readable)
		}
	}), Budget{}},
	{"law 5", "a refusal does not say what was executed", with(func(c *Core) {
		c.Plan = func(s aggregates.Seat, p events.OperationPlanned, now time.Time) ([]events.Event, error) {
			es, err := s.Plan(p, now)
			if err != nil {
				return nil, errors.New("no")
			}
			return es, nil
		}
	}), Budget{Commands: 1}},
	{"2.5", "the barrier is forgotten", on("expire", func(v *sagas.View, a sagas.Action) sagas.Action {
		a.Events = without(a.Events, "gate-frozen", "head-retiring", "gate.", "head.")
		return a
	}), Budget{}},
	{"2.6", "a goal takes a second terminal", with(func(c *Core) {
		c.NextGoal = func(g goal.State, s aggregates.Seat, b events.Boundary, now time.Time) []events.Event {
			if g.State == events.GoalSucceeded && s.Slot.Phase == slot.Retired {
				return []events.Event{events.GoalEnded{State: events.GoalFailed}}
			}
			return sagas.NextGoal(g, s, b, now)
		}
	}), Budget{}},
	{"2.6", "a goal is left without an end", with(func(c *Core) {
		c.NextGoal = func(g goal.State, s aggregates.Seat, b events.Boundary, now time.Time) []events.Event {
			if s.Slot.Phase == slot.Retired {
				return nil
			}
			return sagas.NextGoal(g, s, b, now)
		}
	}), Budget{}},
	{"R7, R8", "a refused probe does not end the life", on("fail", func(v *sagas.View, a sagas.Action) sagas.Action {
		return goingOut(v, events.VerbReserve, events.Arguments{})
	}), Budget{Faults: 1}},
	{"R9, R89", "a verb goes to a provider that can't", with(func(c *Core) {
		c.Plan = func(s aggregates.Seat, p events.OperationPlanned, now time.Time) ([]events.Event, error) {
			s.Environment.Capabilities.PauseKeepsMemory = true
			return s.Plan(p, now)
		}
	}), Budget{Commands: 1, Poor: true}},
	{"R26", "a lifetime that is over ends nothing", skip("expire"), Budget{}},
	{"R28", "an extension is asked for at once", on("extend", func(v *sagas.View, a sagas.Action) sagas.Action {
		q := v.Seat.Environment.Queue[0]
		return sagas.Action{Kind: sagas.Dispatch, Step: a.Step, Events: []events.Event{events.OperationDispatched{
			Environment: v.Seat.Environment.ID, Operation: q.ID, Verb: q.Verb, Arguments: events.Arguments{ExtendTo: q.Arguments.ExtendTo, Wanted: q.Arguments.ExtendTo}}}}
	}), Budget{Commands: 1}},
	{"R30, E8", "a refusal is taken as done", with(func(c *Core) {
		c.Outcome = func(s aggregates.Seat, id events.OperationID, o providers.Outcome, fresh events.OperationID) []events.Event {
			if o.Kind == providers.Refused {
				o = providers.DoneWith(events.Facts{Ref: "ref-1", State: events.StateReserved})
			}
			return sagas.Outcome(s, id, o, fresh)
		}
	}), Budget{Faults: 1}},
	{"R32, E8", "a lost answer is taken as a refusal", with(func(c *Core) {
		c.Outcome = func(s aggregates.Seat, id events.OperationID, o providers.Outcome, fresh events.OperationID) []events.Event {
			if o.Kind == providers.Unknown {
				o = providers.RefusedWith(fault.New(fault.Unavailable, "no answer"))
			}
			return sagas.Outcome(s, id, o, fresh)
		}
	}), Budget{Faults: 1}},
	{"R37", "any file is accepted", with(func(c *Core) { c.Accepts = func(bool) bool { return true } }), Budget{Commands: 1, Faults: 1}},
	{"R52", "a credential is made before the reservation", on("reserve", func(v *sagas.View, a sagas.Action) sagas.Action {
		if len(v.Seat.Head.Ledger) > 0 {
			return a
		}
		open, _ := v.Seat.Head.Open(v.Seat.Head.Gate.Operation)
		return add(append(open, events.CredentialMinted{UID: v.Seat.Head.UID, Credential: "c", Holder: "U", Generation: 1})...)
	}), Budget{}},
	{"R56", "the guest is built without its credential", on("provision", func(v *sagas.View, a sagas.Action) sagas.Action {
		a.Events = without(a.Events, "minted")
		return a
	}), Budget{}},
	{"R61", "a lifecycle comes back", with(func(c *Core) {
		c.Claim = func(s aggregates.Seat, l aggregates.Claim) ([]events.Event, error) {
			if s.Slot.Phase == slot.Retired && s.Slot.UID == l.UID {
				return []events.Event{events.SlotClaimed{UID: l.UID}}, nil
			}
			return s.Claim(l)
		}
	}), Budget{}},
	{"R63, R64", "a restore is taken as done by the machine that was there", with(func(c *Core) {
		c.Fold = func(s aggregates.Seat, m events.Meta, e events.Event) aggregates.Seat {
			was := s.Environment.Incarnation
			if s = s.With(m, e); s.Environment.Restores > 0 {
				s.Environment.Incarnation = was
			}
			return s
		}
	}), Budget{Commands: 2, Prompt: true, Only: "checkpoint, restore"}},
	{"R67", "a seat is taken as stopped when stop was asked", with(func(c *Core) {
		c.Observed = func(s aggregates.Seat, f events.Facts) []events.Event {
			f.State = events.StateStopped
			return sagas.Observed(s, f)
		}
	}), Budget{Changes: 1}},
	{"R92", "a reference is bound that nobody answered", on("reserve", func(v *sagas.View, a sagas.Action) sagas.Action {
		return add(events.EnvironmentObserved{Environment: v.Seat.Environment.ID, Facts: events.Facts{Ref: "ref-1", State: events.StateReserved}})
	}), Budget{}},
	{"H11", "a goal leads the fact", with(func(c *Core) {
		c.NextGoal = func(g goal.State, s aggregates.Seat, b events.Boundary, now time.Time) []events.Event {
			if g.State == events.GoalStateRunning && s.Environment.Provisioned {
				return g.End(events.GoalSucceeded, nil, nil)
			}
			return sagas.NextGoal(g, s, b, now)
		}
	}), Budget{}},
	{"H12", "something else is asked about than what is uncertain", on("reconcile", func(v *sagas.View, a sagas.Action) sagas.Action {
		a.Operation = v.Fresh
		return a
	}), Budget{Faults: 1}},
	{"H16", "destroy goes out before the stop", on("stop", func(v *sagas.View, a sagas.Action) sagas.Action {
		return goingOut(v, events.VerbDestroy, events.Arguments{})
	}), Budget{}},
	{"H16", "destroy goes out before the credentials are revoked", skip("revoke"), Budget{}},
	{"scenario 6", "a second answer counts", with(func(c *Core) {
		c.Outcome = func(s aggregates.Seat, id events.OperationID, o providers.Outcome, fresh events.OperationID) []events.Event {
			if op := s.Environment.Operation; op == nil {
				return []events.Event{events.EnvironmentObserved{Environment: s.Environment.ID, Facts: o.Facts}}
			}
			return sagas.Outcome(s, id, o, fresh)
		}
	}), Budget{}},
	{"scenario 13", "a held name is given away", with(func(c *Core) {
		c.Claim = func(s aggregates.Seat, l aggregates.Claim) ([]events.Event, error) {
			if es, err := s.Claim(l); s.Slot.Phase != slot.Provisioning || s.Slot.UID == l.UID {
				return es, err
			}
			return []events.Event{events.SlotClaimed{UID: l.UID}}, nil
		}
	}), Budget{}},
	{"scenario 31", "an extension is asked for a life that is longer already", on("extend", func(v *sagas.View, a sagas.Action) sagas.Action {
		q, to := v.Seat.Environment.Queue[0], v.Seat.Environment.ExpiresAt.Add(-time.Minute)
		return sagas.Action{Kind: sagas.Dispatch, Step: a.Step, Events: []events.Event{events.OperationDispatched{
			Environment: v.Seat.Environment.ID, Operation: q.ID, Verb: q.Verb, Arguments: events.Arguments{ExtendTo: &to, Wanted: q.Arguments.ExtendTo}}}}
	}), Budget{Commands: 1}},
	{"decision 13", "what was written off is forgotten", next(func(v *sagas.View, a sagas.Action) sagas.Action {
		if op := v.Seat.Environment.Operation; v.Seat.Environment.Target == events.TargetRetired && op != nil && a.Kind == sagas.Reconcile {
			return add(events.EnvironmentObserved{Environment: v.Seat.Environment.ID, Facts: events.Facts{State: events.StateAbsent}})
		}
		if v.Seat.Environment.Target == events.TargetRetired && a.Step == "destroy" {
			return add(events.EnvironmentObserved{Environment: v.Seat.Environment.ID, Facts: events.Facts{State: events.StateAbsent}})
		}
		return a
	}), Budget{Faults: 1, Commands: 1}},
	{"decision 14", "a goal is uncertain before its time", with(func(c *Core) {
		c.NextGoal = func(g goal.State, s aggregates.Seat, b events.Boundary, now time.Time) []events.Event {
			if s.Environment.Operation != nil && g.Command == "spawn" {
				return g.End(events.GoalUncertain, nil, nil)
			}
			return sagas.NextGoal(g, s, b, now)
		}
	}), Budget{}},
	{"decision 14", "an uncertain goal is not settled", with(func(c *Core) {
		c.NextGoal = func(g goal.State, s aggregates.Seat, b events.Boundary, now time.Time) []events.Event {
			if g.State == events.GoalUncertain {
				return nil
			}
			return sagas.NextGoal(g, s, b, now)
		}
	}), Budget{}},
	{"D7, D11", "a launch is enrolled by the run that found it begun", with(func(c *Core) {
		c.Next = func(v *sagas.View) sagas.Action {
			a := sagas.Next(v)
			if i, ok := v.Seat.Holding(); ok && a.Step != "" && v.Seat.Slot.Activated && i.Kind == events.IntentLaunch {
				return add(events.IntentEnded{Intent: i.ID, Outcome: events.IntentEnrolled})
			}
			switch a.Step {
			case "activate":
				a.Events = without(a.Events, "intent.")
			case "sweep":
				steps := sagas.Steps
				defer func() { sagas.Steps = steps }()
				sagas.Steps = slices.DeleteFunc(slices.Clone(steps), func(s sagas.Step) bool { return s.Name == "sweep" })
				return sagas.Next(v)
			}
			return a
		}
	}), Budget{Crashes: 1, Intent: true, Prompt: true}},
	{"D8, D10", "an intent is aborted when it is swept", on("sweep", func(v *sagas.View, a sagas.Action) sagas.Action {
		i, _ := v.Seat.Holding()
		a.Events = append(slices.Clip(a.Events), events.IntentEnded{Intent: i.ID, Outcome: events.IntentAborted})
		return a
	}), Budget{Crashes: 1, Intent: true, Prompt: true}},
	{"D16, D17", "the name is freed and its intent has no outcome", on("release", func(v *sagas.View, a sagas.Action) sagas.Action {
		a.Events = without(a.Events, "intent.")
		return a
	}), Budget{Crashes: 1, Intent: true, Prompt: true}},
	{"D20", "a seat outlives the run that launched it", skip("end"), Budget{Crashes: 1, Commands: 1, Intent: true, Prompt: true, Only: "pause"}},
	{"deadlock", "nobody asks what became of it", never("reconcile", "exclude"), Budget{Faults: 1}},
	{"deadlock", "nobody gives up waiting after a crash", never("lose"), Budget{Crashes: 1}},
	{"livelock", "a stop is asked for again and again", with(func(c *Core) {
		c.Next = func(v *sagas.View) sagas.Action {
			if a := sagas.Next(v); a.Step != "destroy" {
				return a
			}
			return add(events.OperationPlanned{Environment: v.Seat.Environment.ID, Operation: v.Fresh, Verb: events.VerbPause})
		}
	}), Budget{}},
	{"scenario 21", "a reservation outlives its name", with(func(c *Core) {
		c.Fold = func(s aggregates.Seat, m events.Meta, e events.Event) aggregates.Seat {
			after := s.With(m, e)
			if _, ok := e.(events.SlotRetired); ok && after.Environment.Ref == "" {
				after.Environment.Gone = false
			}
			return after
		}
	}), Budget{}},
}

// A walk that finds nothing proves something only if it finds what is wrong:
// each law has a fault that breaks it, and is told with its number and the
// conversation that leads there.
func TestPlantedFaultsAreFound(t *testing.T) {
	covered := map[string]bool{"independence": true} // TestNamesThatMeddleAreFound
	for _, p := range planted {
		covered[p.law] = true
		_, err := Walk(p.core, p.budget, 60_000)
		switch {
		case err == nil:
			t.Errorf("%s: %s: nothing was found", p.law, p.name)
		case !strings.HasPrefix(err.Error(), p.law+":") || !strings.Contains(err.Error(), "1. a spawn is accepted"):
			t.Errorf("%s: %s: found another: %v", p.law, p.name, err)
		default:
			t.Logf("%s: %s: %d lines", p.law, p.name, strings.Count(err.Error(), "\n"))
		}
	}
	for _, l := range Laws {
		if !covered[l.Number] {
			t.Errorf("no fault is planted for %s: %s", l.Number, l.Text)
		}
	}
}

// A walk of two names finds an event of one that changes the other.
func TestNamesThatMeddleAreFound(t *testing.T) {
	c := with(func(c *Core) {
		c.Fold = func(s aggregates.Seat, m events.Meta, e events.Event) aggregates.Seat {
			if _, ok := e.(events.SlotTerminalizing); ok && s.Slot.Held() {
				e = events.SlotTerminalizing{UID: s.Slot.UID, Reason: "expired"}
			}
			return s.With(m, e)
		}
	})
	_, err := Pair(c, Budget{}, 20_000)
	if err == nil || !strings.HasPrefix(err.Error(), "independence:") {
		t.Errorf("found %v", err)
	}
}
