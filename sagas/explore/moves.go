package explore

import (
	"errors"
	"fmt"
	"time"

	"berth/aggregates/environment"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/sagas"
)

// move is one thing that may happen next.
type move struct {
	name string
	to   world
	err  error // a law that it broke
}

// moves lists everything that may happen next.
func moves(w world) []move {
	var out []move
	try := func(name string, f func(*world) error) {
		to := w
		if w.call != nil {
			c := *w.call
			to.call = &c
		}
		err := f(&to)
		if errors.Is(err, errNotNow) {
			return
		}
		out = append(out, move{name, to, err})
	}
	act(w, try)
	provider(w, try)
	operator(w, try)
	if w.left.Crashes > 0 {
		try("the manager is killed and starts again", crash)
	}
	if !w.late {
		try("time passes", func(w *world) error { w.late = true; return w.add() })
	}
	return out
}

var errNotNow = errors.New("not now")

func crash(w *world) error {
	w.left.Crashes--
	w.epoch++
	w.try, w.minted = sagas.Try{Observe: true}, sagas.Minted{}
	if w.call != nil {
		w.call.asking = false
	}
	return nil
}

// act is the one action that the kernel asks for, with every answer to it.
func act(w world, try func(string, func(*world) error)) {
	a := w.kernel(w.view())
	step := string(a.Kind) + " (" + a.Step + ")"
	switch a.Kind {
	case sagas.Append:
		try(step, func(w *world) error { return w.add(a.Events...) })
	case sagas.Mint:
		try(step, func(w *world) error { w.minted = sagas.Minted{ID: "cred-1", Holder: "U1"}; return nil })
	case sagas.Clean:
		try(step, func(w *world) error { return w.add(events.SlotCleaned{UID: uid}) })
	case sagas.Probe:
		pre := providers.Preflight{ProbedAt: start, Capabilities: events.Capabilities{PauseKeepsMemory: true, ColdCheckpoint: true, Extend: events.ExtendLimit{StepMs: 600_000}}}
		try(step, func(w *world) error {
			return w.add(sagas.Probed(w.seat, events.ImageDescription{}, pre, events.HostFacts{})...)
		})
		try(step+", refused", faulty(func(w *world) error {
			return w.add(sagas.NotProbed(w.seat, fault.New(fault.Unimplemented, "no"))...)
		}))
	case sagas.Dispatch:
		intent := a.Events[len(a.Events)-1].(events.OperationDispatched)
		begin := func(w *world) error {
			if c := w.call; c != nil {
				return fmt.Errorf("law 2: %s is dispatched while %s is open", intent.Verb, c.verb)
			}
			if err := w.add(a.Events...); err != nil {
				return err
			}
			w.call = &call{id: intent.Operation, verb: intent.Verb, args: intent.Arguments, asking: true}
			w.try.InFlight = true
			return nil
		}
		try(step+" "+string(intent.Verb), begin)
	case sagas.Reconcile, sagas.Exclude:
		question(w, a, step, try)
	case sagas.Observe:
		try(step, func(w *world) error {
			w.try.Observe = false
			return w.add(sagas.Observed(w.seat, w.facts())...)
		})
	}
}

// question is a reconciliation or an exclusion and its answers.
func question(w world, a sagas.Action, step string, try func(string, func(*world) error)) {
	found := func(w *world, f providers.Finding) error {
		f.Evidence = "the provider says so"
		return w.add(sagas.Found(w.seat, a.Operation, f, w.fresh())...)
	}
	try(step+": landed", func(w *world) error {
		if w.call == nil || !w.call.landed {
			return errNotNow
		}
		return found(w, providers.Finding{Verdict: providers.Landed, Facts: w.facts()})
	})
	try(step+": excluded", func(w *world) error {
		if w.call == nil || w.call.landed || (a.Kind == sagas.Reconcile && !w.call.fenced) {
			return errNotNow
		}
		w.call.fenced = true
		return found(w, providers.Finding{Verdict: providers.Excluded})
	})
	unknown := func(w *world) error { w.try.Count++; return nil }
	if a.Kind == sagas.Reconcile && w.call != nil && !w.call.landed && !w.call.fenced {
		try(step+": not there yet", unknown) // the only true answer
		return
	}
	try(step+": unknown", faulty(unknown))
}

// provider is what a call may come to, and what an environment does by itself.
func provider(w world, try func(string, func(*world) error)) {
	if c := w.call; c != nil {
		try(string(c.verb)+" lands", land)
		answer := func(o providers.Outcome) func(*world) error {
			return func(w *world) error {
				if !w.call.asking {
					return errNotNow
				}
				w.try.InFlight, w.call.asking = false, o.Kind == providers.Unknown
				return w.add(sagas.Outcome(w.seat, w.call.id, o, w.fresh())...)
			}
		}
		if c.landed {
			try("the answer: done", answer(providers.DoneWith(w.facts())))
		} else {
			refuse := func(why *fault.Error) func(*world) error {
				return func(w *world) error { w.call.fenced = true; return answer(providers.RefusedWith(why))(w) }
			}
			if to, _ := effect(&w); to == "" {
				try("the answer: refused, it is not possible", refuse(fault.New(fault.FailedPrecondition, "not possible"))) // the only true answer
			}
			try("the answer: refused for good", faulty(refuse(fault.New(fault.Unimplemented, "no"))))
			try("the answer: refused for now", faulty(refuse(fault.New(fault.ResourceExhausted, "busy").WithDetail(environment.DetailThrottled))))
		}
		if w.try.InFlight {
			try("the answer is lost", faulty(answer(providers.UnknownWith(fault.New(fault.DeadlineExceeded, "no answer")))))
		}
	}
	if w.left.Changes == 0 || !w.exists() {
		return
	}
	change := func(to events.ProviderState) func(*world) error {
		return func(w *world) error { w.left.Changes--; w.truth, w.try.Observe = to, true; return nil }
	}
	if w.truth == events.StateRunning || w.truth == events.StatePaused {
		try("the seat exits", change(events.StateStopped))
	}
	try("the environment vanishes", change(events.StateAbsent))
}

func faulty(f func(*world) error) func(*world) error {
	return func(w *world) error {
		if w.left.Faults == 0 {
			return errNotNow
		}
		w.left.Faults--
		return f(w)
	}
}

// land is the effect of the open call, once.
func land(w *world) error {
	c := w.call
	if c.landed || c.fenced {
		return errNotNow
	}
	to, err := effect(w)
	if err != nil {
		return err
	}
	if to == "" {
		return errNotNow
	}
	if c.verb == events.VerbExtend {
		w.expires = *c.args.ExtendTo
	}
	w.truth, c.landed = to, true
	w.ran = w.ran || to == events.StateRunning
	return nil
}

// effect is what the truth becomes by the open call; empty if the call is not
// possible, so that it can only be refused.
func effect(w *world) (events.ProviderState, error) {
	is := w.truth
	live := is == events.StateRunning || is == events.StatePaused
	switch w.call.verb {
	case events.VerbReserve:
		if w.exists() {
			return "", errors.New("law 2: a second environment was created where one was asked for")
		}
		return events.StateReserved, nil
	case events.VerbProvision:
		return only(is == events.StateReserved, events.StateCreating), nil
	case events.VerbStart:
		return only(is == events.StateCreating, events.StateRunning), nil
	case events.VerbPause:
		return only(is == events.StateRunning, events.StatePaused), nil
	case events.VerbResume:
		return only(is == events.StatePaused, events.StateRunning), nil
	case events.VerbStop:
		return only(w.exists(), events.StateStopped), nil
	case events.VerbDestroy:
		return events.StateAbsent, nil
	case events.VerbExtend:
		return only(live, is), nil
	}
	return only(w.exists(), is), nil
}

func only(ok bool, to events.ProviderState) events.ProviderState {
	if ok {
		return to
	}
	return ""
}

// operator is what people ask.
func operator(w world, try func(string, func(*world) error)) {
	if w.left.Commands == 0 || !w.seat.Slot.Held() {
		return
	}
	ask := func(name string, decide func(*world) ([]events.Event, error)) {
		try("asked: "+name, func(w *world) error {
			es, err := decide(w)
			if err != nil || len(es) == 0 {
				return errNotNow
			}
			w.left.Commands--
			return w.add(es...)
		})
	}
	ask("retire", func(w *world) ([]events.Event, error) { return w.seat.Retire(uid, "retired", 0) })
	ask("write off", func(w *world) ([]events.Event, error) {
		es, _, err := w.seat.WriteOff(events.Caller{Owner: "local"}, "lost")
		return es, err
	})
	to := start.Add(life + 15*time.Minute)
	for _, v := range []events.Verb{events.VerbPause, events.VerbResume, events.VerbExtend, events.VerbCheckpoint} {
		ask(string(v), func(w *world) ([]events.Event, error) {
			p := events.OperationPlanned{Operation: w.fresh(), Verb: v}
			if v == events.VerbExtend {
				p.Arguments.ExtendTo = &to
			}
			return w.seat.Plan(p, w.now())
		})
	}
	try("asked: cancel the goal", func(w *world) error {
		es, err := w.goal.Cancel("graceful")
		if err != nil || len(es) == 0 {
			return errNotNow
		}
		w.left.Commands--
		w.goal = w.goal.Apply(w.meta(), es[0])
		return nil
	})
}

// open says that an operation may still have an effect.
func open(w world) bool {
	op := w.seat.Environment.Operation
	return op != nil && (op.Phase == environment.Dispatched || op.Phase == environment.Uncertain)
}
