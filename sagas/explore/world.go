package explore

import (
	"fmt"
	"strings"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/events"
	"berth/sagas"
)

const (
	uid  = events.UID("aaaaaaaaaaaaaaaaaaaaaaaaaa")
	env  = events.EnvironmentID("0191e1a0-0000-7000-8000-000000000001")
	self = events.InstanceID("iiiiiiiiiiiiiiiiiiiiiiiiii")
	life = time.Hour
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Budget bounds what may go wrong or be asked on one path. Everything else is
// explored without a bound.
type Budget struct {
	Faults   int // refusals, lost answers, questions that stay unanswered
	Crashes  int
	Commands int // pause, resume, extend, checkpoint, retire, cancel, write-off
	Changes  int // the seat exits, or its environment vanishes
}

// call is the open operation as the provider has it.
type call struct {
	id     events.OperationID
	verb   events.Verb
	args   events.Arguments
	landed bool // its effect is there
	fenced bool // it can never land
	asking bool // the process that called still waits
}

// world is one state: the records, and the truth.
type world struct {
	kernel Kernel
	seat   aggregates.Seat
	goal   goal.State
	try    sagas.Try
	minted sagas.Minted
	epoch  uint64
	late   bool // the lifetime and every patience are over
	next   int  // numbers operation ids
	left   Budget

	truth   events.ProviderState // empty: never created
	expires time.Time
	call    *call
	ran     bool // the seat has really run
}

// first is a seat that was just claimed for a goal.
func first(k Kernel, b Budget) (world, error) {
	w := world{kernel: k, seat: aggregates.NewSeat(events.SeatBoundary("local", "a")), epoch: 1, left: b, expires: start.Add(life)}
	ready, deadline := start.Add(30*time.Second), start.Add(life)
	es, err := w.seat.Claim(aggregates.Claim{UID: uid, Environment: env, Activation: "activation-0000001", Goal: "goal.local.me.g.1", Holder: self,
		Plan: events.Plan{Provider: "drill", Lifetime: life}, Target: events.TargetRunning, Deadline: &deadline, Ready: ready})
	if err != nil {
		return w, err
	}
	w.goal = w.goal.Apply(w.meta(), events.GoalAccepted{Command: "spawn", Fingerprint: "f", Holder: self, Ready: ready,
		Allocated: events.Allocation{Name: "a", Owner: "local", UID: uid, Environment: env}})
	return w, w.add(es...)
}

func (w *world) now() time.Time {
	if w.late {
		return start.Add(4 * life)
	}
	return start
}

func (w *world) writer() events.Writer { return events.Writer{Instance: self, Epoch: w.epoch} }

func (w *world) meta() events.Meta { return events.Meta{Time: w.now(), Writer: w.writer()} }

func (w *world) fresh() events.OperationID {
	return events.OperationID(fmt.Sprintf("operation-%08d", w.next))
}

func (w *world) view() sagas.View {
	return sagas.View{Seat: w.seat, Goal: w.goal, Self: w.writer(), Now: w.now(), Fresh: w.fresh(), Try: w.try, Minted: w.minted}
}

// add appends events to the seat; the goal follows. It returns the law that
// was broken.
func (w *world) add(es ...events.Event) error {
	if err := w.seat.Check(w.meta(), es...); err != nil {
		return fmt.Errorf("the tables refuse what was appended: %w", err)
	}
	w.seat = w.seat.With(w.meta(), es...)
	w.next++
	if op := w.seat.Environment.Operation; op == nil || w.call != nil && op.ID != w.call.id {
		if c := w.call; c != nil && !c.landed && !c.fenced && !w.seat.Environment.WrittenOff {
			return fmt.Errorf("law 2: %s is settled and may still land", c.verb)
		}
		w.call, w.try.Count, w.try.InFlight = nil, 0, false
	}
	for _, e := range sagas.NextGoal(w.goal, w.seat, "goal.local.me.g.1", w.now()) {
		was := w.goal
		w.goal = w.goal.Apply(w.meta(), e)
		if was.State.Terminal() && w.goal.State != was.State {
			return fmt.Errorf("2.6: a terminal goal went from %s to %s", was.State, w.goal.State)
		}
	}
	return nil
}

// facts is what the provider shows of the truth.
func (w *world) facts() events.Facts {
	f := events.Facts{Ref: "ref-1", Incarnation: "m1", State: w.truth, ObservedAt: w.now()}
	if w.truth == events.StateStopped || w.truth == events.StateAbsent {
		f.StoppedAt = &f.ObservedAt
		return f
	}
	f.ExpiresAt = &w.expires
	return f
}

func (w *world) exists() bool { return w.truth != "" && w.truth != events.StateAbsent }

// key tells states apart by everything that the kernel and the laws look at;
// operation ids are only names.
func (w *world) key() string {
	var b strings.Builder
	s, e := w.seat, w.seat.Environment
	fmt.Fprint(&b, s.Slot.Phase, s.Slot.Cleaned, s.Slot.Epoch, s.Slot.Reason, '|', s.Head.Phase, s.Head.Gate, s.Head.Current, s.Head.Ledger, '|',
		e.Record, e.Ref, e.Provisioned, e.Started, e.Paused, e.Gone, e.WrittenOff, e.Excluded, e.Throttled, e.Refusal != nil, e.ProbedAt.IsZero(), e.Target)
	if e.Deadline != nil && e.ExpiresAt != nil {
		fmt.Fprint(&b, '|', e.Deadline.Unix(), e.ExpiresAt.Unix())
	}
	one := func(o environment.Operation) { fmt.Fprint(&b, '/', o.Verb, o.Phase, o.Stuck, o.Writer.Epoch) }
	if e.Operation != nil {
		one(*e.Operation)
	}
	for _, o := range e.Queue {
		one(o)
		if to := o.Arguments.ExtendTo; to != nil {
			fmt.Fprint(&b, to.Unix())
		}
	}
	stops := 0
	for _, o := range e.Done {
		if o.Verb == events.VerbStop {
			stops++
		}
	}
	fmt.Fprint(&b, '|', stops, w.goal.State, w.goal.Settled != nil, w.try.InFlight, min(w.try.Count, 6+w.try.Count%2), w.try.Observe, w.minted, w.epoch, w.late, w.left, w.truth, w.expires.Unix(), w.ran)
	if c := w.call; c != nil {
		fmt.Fprint(&b, '|', c.verb, c.landed, c.fenced, c.asking)
	}
	return b.String()
}
