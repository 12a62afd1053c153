package explore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/events"
	"berth/sagas"
)

// Budget bounds what may go wrong or be asked on one path. Everything else is
// explored without a bound.
type Budget struct {
	Faults   int // refusals, lost answers, questions that stay unanswered, files that do not match
	Crashes  int // the manager dies or stalls; the next epoch or another instance goes on
	Commands int // pause, resume, extend, checkpoint, export, retire, cancel, write-off
	Changes  int // the environment exits, fails, vanishes, starts or is replaced by itself
	Lives    int // further lives of the name
	// Prompt has goals follow at once and waits end at once: fewer
	// interleavings, for a look further ahead.
	Prompt bool
	// Brief walks a further life only up to its claim.
	Brief bool
	// Only names what may be asked, if not everything.
	Only string
	// Reserved has the first command ask for a reservation only: the rest of
	// the way is asked for in parts.
	Reserved bool
	// Intent has the spawn be a launch that a user admitted, for the run that
	// acts first (D1-D20).
	Intent bool
	// Poor says that the provider has no capability at all.
	Poor bool
}

// String says the bound: what there is of each on one path.
func (b Budget) String() string {
	var out []string
	for _, n := range []struct {
		of   string
		most int
	}{{"faults", b.Faults}, {"crashes", b.Crashes}, {"commands", b.Commands}, {"changes", b.Changes}, {"further lives", b.Lives}} {
		if n.most > 0 {
			out = append(out, fmt.Sprintf("%s %d", n.of, n.most))
		}
	}
	for _, f := range []struct {
		of string
		is bool
	}{{"prompt", b.Prompt}, {"brief", b.Brief}, {"reserved", b.Reserved}, {"intent", b.Intent}, {"poor", b.Poor}, {"only " + b.Only, b.Only != ""}} {
		if f.is {
			out = append(out, f.of)
		}
	}
	if len(out) == 0 {
		return "{nothing goes wrong}"
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// instances are the two whose managers act.
var instances = [2]events.InstanceID{"iiiiiiiiiiiiiiiiiiiiiiiiii", "jjjjjjjjjjjjjjjjjjjjjjjjjj"}

const (
	lifetime = time.Hour
	longer   = lifetime + 15*time.Minute // what an extension asks for
	stepMost = 10 * time.Minute          // what one call may extend by (R28)
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// moments are what the clock may show: the beginning of a life; its readiness
// and most patience over; its lifetime over, which is where a next life may
// begin and has the same again.
var moments = [5]time.Time{
	start, start.Add(20 * time.Minute), start.Add(4 * time.Hour),
	start.Add(4*time.Hour + 20*time.Minute), start.Add(8 * time.Hour),
}

// perLife is how many moments a life goes through.
const perLife = 2

// world is one state: the records, what the managers remember, and the truth.
type world struct {
	r     *rules
	name  events.Alias
	seat  *aggregates.Seat // never changed in place
	lives [2]*life         // nil: not asked for yet; changed by edit only
	self  events.Writer    // who acts
	try   sagas.Try
	mint  sagas.Minted
	sleep *sleeper
	clock int // which moment it is
	base  int // at which the newest life began
	next  int // numbers operation ids
	left  Budget
}

// life is one lifecycle of the name: its goals, its environment's own
// boundary if it was written off, and what really exists of it.
type life struct {
	names
	goal    goal.State
	file    goal.State // of the export that was asked for
	turn    goal.State // of the turn that was asked for
	claimed bool
	seat    *aggregates.Seat // as the life left it, once the name was claimed again
	heir    *aggregates.Seat // environment.<id>, after a write-off (decision 13)
	heirTry sagas.Try

	truth   events.ProviderState // empty: never created
	expires time.Time
	machine int // which one it is, from 1
	ran     bool
	broken  bool // the exported file is not what the provider answered
	call    *call
}

// names are the ids of one life.
type names struct {
	uid              events.UID
	environment      events.EnvironmentID
	boundary, export events.Boundary // of the goals
	asked            events.Boundary // of the turn's
}

func namesOf(name events.Alias, n int) names {
	return names{
		uid:         events.UID(fmt.Sprintf("%c%025d", name[0], n)),
		environment: events.EnvironmentID(fmt.Sprintf("0191e1a0-%04x-7000-8000-%012d", name[0], n)),
		boundary:    events.Boundary(fmt.Sprintf("goal.local.me.g.%s%d", name, n)),
		export:      events.Boundary(fmt.Sprintf("goal.local.me.g.%s%dx", name, n)),
		asked:       events.Boundary(fmt.Sprintf("goal.local.me.g.%s%dt", name, n)),
	}
}

// call is an operation that may still have an effect, as the provider has it.
type call struct {
	id     events.OperationID
	verb   events.Verb
	args   events.Arguments
	landed bool // its effect is there
	fenced bool // it can never land
	asker  asker
}

// asker is who waits for the answer of a call.
type asker uint8

const (
	nobody asker = iota
	actor
	sleeps
)

// sleeper is a manager that stalled and may wake up: what it saw last.
type sleeper struct {
	self  events.Writer
	seen  *aggregates.Seat
	try   sagas.Try
	mint  sagas.Minted
	clock int
}

func first(r *rules, name events.Alias, b Budget) (world, error) {
	w := world{r: r, name: name, left: b, self: events.Writer{Instance: instances[0], Epoch: 1}}
	s := aggregates.NewSeat(events.SeatBoundary("local", name))
	w.seat = &s
	if err := w.accept(0); err != nil || !b.Intent {
		return w, err
	}
	return w, w.admit()
}

// accept begins the goal of a life: the first of the two commits of a spawn.
func (w *world) accept(n int) error {
	l := &life{names: namesOf(w.name, n), expires: w.now().Add(lifetime)}
	w.lives[n], w.base = l, w.clock
	ready := w.now().Add(30 * time.Second)
	return w.tell(l, &l.goal, events.GoalAccepted{Command: "spawn", Fingerprint: "f", Holder: w.self.Instance, Ready: ready,
		Allocated: events.Allocation{Name: w.name, Owner: "local", UID: l.uid, Environment: l.environment}})
}

// claimOf is the second commit of a spawn.
func (w *world) claimOf(l *life) aggregates.Claim {
	deadline, target := l.goal.AcceptedAt.Add(lifetime), events.TargetRunning
	if w.left.Reserved {
		target = events.TargetReserved
	}
	return aggregates.Claim{
		UID: l.uid, Environment: l.environment, Activation: events.OperationID("activate-" + string(l.uid)),
		Goal: l.boundary, Holder: w.self.Instance, Plan: events.Plan{Provider: "drill", Lifetime: lifetime},
		Target: target, Deadline: &deadline, Ready: l.goal.Ready,
	}
}

func (l *life) exists() bool { return l.truth != "" && l.truth != events.StateAbsent }

func (w *world) now() time.Time { return moments[w.clock] }

func (w *world) meta() events.Meta { return events.Meta{Time: w.now(), Writer: w.self} }

func (w *world) fresh() events.OperationID {
	return events.OperationID("operation-" + string(w.name) + "-0000" + strconv.Itoa(w.next))
}

// edit is a life that may be changed in this world and in no other.
func (w *world) edit(n int) *life {
	l := *w.lives[n]
	if l.call != nil {
		c := *l.call
		l.call = &c
	}
	w.lives[n] = &l
	return &l
}

// current is the life that holds or held the name last, -1 if none did.
func (w *world) current() int {
	for n := len(w.lives) - 1; n >= 0; n-- {
		if l := w.lives[n]; l != nil && l.claimed {
			return n
		}
	}
	return -1
}

// record is the boundary on which a life's environment is now.
func (w *world) record(n int) *aggregates.Seat {
	switch l := w.lives[n]; {
	case l.heir != nil:
		return l.heir
	case l.seat != nil:
		return l.seat
	}
	return w.seat
}

// seatOf is what a goal of the life sees of its seat (the runner's seatOf).
func (w *world) seatOf(l *life) aggregates.Seat {
	if l.seat != nil {
		return *l.seat
	}
	return *w.seat
}

// view is what the kernel decides on: the name's boundary, or with heir that
// of a written-off environment.
func (w *world) view(n int, heir bool) sagas.View {
	v := sagas.View{Seat: *w.seat, Self: w.self, Now: w.now(), Fresh: w.fresh(), Try: w.try, Minted: w.mint}
	switch {
	case heir:
		v.Seat, v.Try, v.Minted = *w.lives[n].heir, w.lives[n].heirTry, sagas.Minted{}
	case n >= 0:
		v.Goal = w.lives[n].goal
	}
	return v
}

// settled says that nothing is left to do for a written-off environment.
func settled(e environment.State) bool { return e.Operation == nil && (e.Gone || e.Ref == "") }

// facts is what the provider shows of the truth.
func (w *world) facts(l *life) events.Facts {
	f := events.Facts{Ref: "ref-1", Incarnation: fmt.Sprintf("m%d", l.machine), State: l.truth, ObservedAt: w.now()}
	if l.truth == events.StateStopped || l.truth == events.StateAbsent {
		code := 1
		f.StoppedAt, f.ExitCode = &f.ObservedAt, &code
		return f
	}
	expires := l.expires
	f.ExpiresAt = &expires
	return f
}
