package sagas

import (
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/aggregates/slot"
	"berth/events"
)

//house:pure

// Kind is what the runner must do next for a seat.
type Kind string

// The kinds of action.
const (
	// Idle: nothing until Wake, or until something is appended.
	Idle Kind = "idle"
	// Append: add Events to the seat's boundary; then ask again.
	Append Kind = "append"
	// Probe: describe the image and preflight the plan; read-only.
	Probe Kind = "probe"
	// Mint: make a credential and stage its bytes; then ask again with it.
	Mint Kind = "mint"
	// Dispatch: append Events, which end with the operation's intent, and only
	// then call the driver.
	Dispatch Kind = "dispatch"
	// Reconcile and Exclude: ask the driver about the open operation.
	Reconcile Kind = "reconcile"
	Exclude   Kind = "exclude"
	// Observe: inspect the environment (or adopt it, after a restart).
	Observe Kind = "observe"
	// Accept: copy an exported file and verify it (R37).
	Accept Kind = "accept"
	// Clean: remove what this host keeps for the lifecycle.
	Clean Kind = "clean"
)

// Action is one answer of the kernel.
type Action struct {
	Kind      Kind
	Step      string // the row that spoke
	Events    []events.Event
	Operation events.OperationID // dispatch, reconcile, exclude, accept
	Wake      time.Time          // idle: zero for "only when something happens"
}

// Try is what the runner remembers of its own attempts. It is volatile: a
// restart begins at zero, which is always safe.
type Try struct {
	InFlight bool      // a call for this seat is running
	Count    int       // how often the open operation was asked about, or the step failed
	Next     time.Time // not before
	Observe  bool      // the environment may have changed by itself, or must be adopted
}

// Minted is a credential whose bytes are staged.
type Minted struct {
	ID     events.CredentialID
	Holder string // public nkey
	// Source is where its guest gets bearers, bound with it (R46); nil: none.
	Source *events.BearerSource
}

// View is everything that a decision depends on, as values.
type View struct {
	Seat  aggregates.Seat
	Goal  goal.State // of the seat's spawn, zero if it has none
	Self  events.Writer
	Now   time.Time
	Fresh events.OperationID // for the next operation; unused if none is dispatched
	Try   Try
	// Minted is set when the runner asks again after a Mint.
	Minted Minted
}

func (v *View) env() *environment.State { return &v.Seat.Environment }

// terminal says that the lifecycle is on its way out.
func (v *View) terminal() bool { return v.Seat.Slot.Phase == slot.Terminalizing }

// Next is the one decision of the kernel: the first row of Steps whose When
// holds speaks. It is a pure function of what v points to, which it reads and
// never changes: a view is two kilobytes, and a turn asks some twenty rows.
func Next(v *View) Action {
	switch {
	case v.Seat.Quarantine != nil, !v.Seat.Slot.Held(), v.Seat.Slot.Holder != v.Self.Instance, v.Seat.Slot.Epoch > v.Self.Epoch:
		return Action{Kind: Idle}
	}
	for i := range Steps {
		if s := &Steps[i]; s.When(v) {
			a := s.Do(v)
			a.Step = s.Name
			return fenced(v, a)
		}
	}
	return Action{Kind: Idle, Step: "rest", Wake: wake(v)}
}

// fenced puts the takeover of the seat before the first thing that this epoch
// appends to it, in the same commit: from there on an older epoch's append
// loses its compare (decision 1).
func fenced(v *View, a Action) Action {
	switch a.Kind {
	case Append, Dispatch:
	default:
		return a
	}
	if len(a.Events) == 0 {
		return Action{Kind: Idle, Step: a.Step, Wake: wake(v)}
	}
	taken, err := v.Seat.TakeOver(v.Self.Instance, v.Self.Epoch)
	if err == nil {
		a.Events = append(taken, a.Events...)
	}
	return a
}

// wake is the next moment at which time alone changes the answer.
func wake(v *View) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if t.After(v.Now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if d := v.env().Deadline; d != nil && !v.terminal() {
		sooner(*d)
	}
	if g := &v.Goal; g.State != goal.None && !g.State.Terminal() {
		sooner(g.Ready)
	}
	sooner(v.Seat.NextLapse())
	if !v.Try.Next.IsZero() {
		sooner(v.Try.Next)
	}
	if op := v.env().Operation; op != nil && !op.Stuck {
		sooner(op.Begun.Add(PatienceOf(op.Verb).Alarm))
	}
	return at
}
