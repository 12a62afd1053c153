package sim

import (
	"slices"

	"berth/aggregates/goal"
	"berth/events"
	"berth/providers/drill"
)

// converged holds the end of a history against the laws.
func (s *sim) converged() {
	if len(s.broken) > 0 {
		return
	}
	for _, b := range s.books.order {
		switch b.Kind() {
		case events.KindSeat, events.KindEnvironment:
			s.books.final(b)
		case events.KindGoal:
			s.truth(b)
		}
	}
	status := s.machine.Status(s.now)
	for _, e := range status.Environments {
		s.broke("the provider still holds %s (%s), which nobody owns", e.ID, e.Alias)
	}
	for _, e := range slices.Concat(status.Environments, status.Tombstones) {
		s.made(e)
	}
	s.readers.final()
}

// made holds what a provider knows of one environment against the journal.
func (s *sim) made(e drill.EnvironmentStatus) {
	made := 0
	if s.books.lives[e.ID] == nil {
		s.broke("law 1: the provider has %s, which no record names", e.ID)
	}
	for _, o := range e.Operations {
		if o.Verb == "reserve" && o.State == "landed" {
			made++
		}
		landed, known := s.books.proved[o.ID]
		switch {
		case !s.books.dispatched[o.ID]:
			s.broke("law 1: the provider was asked for %s %s, which is not in the log", o.Verb, o.ID)
		case known && !landed && o.State == "landed":
			s.broke("law 2: %s %s is recorded as never executed, and it was", o.Verb, o.ID)
		case known && landed && o.State != "landed":
			s.broke("law 2: %s %s is recorded as executed, and it is %s", o.Verb, o.ID, o.State)
		}
	}
	if made > 1 {
		s.broke("%s was made %d times", e.ID, made)
	}
}

// truth compares a goal's end with what the log says of what it was about.
func (s *sim) truth(b events.Boundary) {
	g := *s.books.goals[b]
	switch g.Command {
	case goal.CommandTurn:
		s.turnTruth(b)
		return
	case "export":
		s.exportTruth(b)
		return
	}
	if !over(g) {
		s.broke("%s is %s at the end", b, g.State)
		return
	}
	l := s.books.uids[g.Allocated.UID]
	ran := l != nil && l.ran
	end := g.State
	if g.Settled != nil {
		end = g.Settled.State
	}
	cancelled := end == events.GoalCancelled && l != nil && l.seat.Slot.Reason == "cancelled"
	if (end == events.GoalSucceeded) != ran && !cancelled {
		s.broke("%s ended %s, and ran=%v", b, end, ran)
	}
}

func (s *sim) exportTruth(b events.Boundary) {
	g := *s.books.goals[b]
	if !g.State.Terminal() {
		s.broke("%s is %s at the end", b, g.State)
		return
	}
	end := g.State
	if g.Settled != nil {
		end = g.Settled.State
	}
	if done := s.books.exported[g.Allocated.Operation]; (end == events.GoalSucceeded) != done && end != events.GoalUncertain {
		s.broke("%s ended %s, and its file was accepted: %v", b, end, done)
	}
}
