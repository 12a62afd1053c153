package sim

import (
	"fmt"
	"time"

	"berth/events"
)

// Every eighth history is a wide one: three hosts instead of two, clients that
// come in crowds under three names and use each other's goal ids, clocks that
// are set while the manager runs, and managers that begin from an old snapshot.
// The others stay as they are, so that a seed that once failed says the same.
const (
	wideOf    = 8
	wideAt    = 3 // the remainder of a wide seed
	crowd     = 4 // clients at a time, at most
	crowdTime = 20 * time.Millisecond
)

func isWide(seed uint64) bool { return seed%wideOf == wideAt }

var (
	wideHost = events.InstanceID("cccccccccccccccccccccccccc")
	askers   = []events.Caller{caller,
		{Owner: "local", Actor: "simulation", UID: "bcdefghijklmnopqrstuvwxyza"},
		{Owner: "local", Actor: "stranger", UID: "cdefghijklmnopqrstuvwxyzab"}}
)

// broaden plans what only a wide history has.
func (s *sim) broaden() {
	if !s.wide {
		return
	}
	for t := s.upTo(4 * time.Minute); t < chaos; t += s.upTo(12 * time.Minute) {
		for range 1 + s.rng.IntN(crowd) {
			s.at(epochZero.Add(t+s.upTo(crowdTime)), s.client)
		}
	}
	for range 2 + s.rng.IntN(4) {
		s.at(epochZero.Add(s.upTo(chaos)), s.stepClock)
	}
}

// stepClock sets the clock of a manager while it runs. The product's managers
// read one that can't be set (package steady); deadlines must hold without it.
func (s *sim) stepClock() {
	m := s.hosts[s.rng.IntN(len(s.hosts))].current
	if s.quiet || m == nil || m.dead {
		return
	}
	m.offset = s.upTo(20*time.Minute) - 10*time.Minute
	s.result.ClockSteps++
	s.say("the clock of %s is set, off by %s", m, m.offset)
}

// fallBack gives a manager that begins an old snapshot to fold from, or takes
// one for the next if there is none.
func (s *sim) fallBack() {
	switch {
	case !s.wide || s.rng.IntN(2) == 0:
	case !s.readers.restore():
		s.readers.save()
	case s.readers.views.Sequence() < uint64(s.result.Records):
		s.result.StaleStarts++
		s.say("the next manager begins from a snapshot at %d of %d", s.readers.views.Sequence(), s.result.Records)
	}
}

// newGoal is the boundary of a goal that nobody has used. In a wide history
// callers use each other's ids: another caller's same id is another goal.
func (s *sim) newGoal() events.Boundary {
	defer func() { s.n++ }()
	if !s.wide {
		return events.GoalBoundary(caller, events.GoalID(fmt.Sprintf("goal-%d", s.n)))
	}
	i := s.rng.IntN(len(askers))
	s.asked[i]++
	return events.GoalBoundary(askers[i], events.GoalID(fmt.Sprintf("goal-%d", s.asked[i])))
}
