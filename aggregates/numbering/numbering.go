// Package numbering hands out the numbers of names that nobody chose: `agent`,
// `agent_2`, `agent_3`. A number is issued once for ever, by an event, so that
// no restart and no other instance hands it out again (rules.md 3).
package numbering

import (
	"strconv"

	"berth/events"
	"berth/events/fault"
)

// Limits of numbering.
const (
	// First is the first number that is written out: the one before it is the
	// base alone.
	First = 2
	// MaxNumber is the last one of a base.
	MaxNumber = 9_999_999
	// MaxBase is how long a base may be, in bytes, so that every number fits
	// behind it.
	MaxBase = events.MaxName - len("_9999999")
)

// State is the numbers of one base of one owner, as folded. The zero value has
// issued none.
type State struct {
	Last uint64 // highest that was issued, zero if none was
}

// Apply folds one event. A number that is not higher changes nothing.
func (s State) Apply(e events.Event) State {
	if n, ok := e.(events.NumberIssued); ok && n.Number > s.Last {
		s.Last = n.Number
	}
	return s
}

// Next is the lowest number that was never issued.
func (s State) Next() uint64 { return max(s.Last+1, First) }

// Issue hands out a number for a goal, or the next one if it is gone already.
// When none is left it refuses with resource-exhausted.
func (s State) Issue(number uint64, goal events.Boundary) ([]events.Event, error) {
	number = max(number, s.Next())
	if number > MaxNumber {
		return nil, fault.New(fault.ResourceExhausted, "every number up to %d was issued", MaxNumber).
			WithOutcome(fault.NotExecuted).WithHint("give the environment a name of its own")
	}
	return []events.Event{events.NumberIssued{Number: number, Goal: goal}}, nil
}

// Name is the base with its number.
func Name(base events.Alias, number uint64) events.Alias {
	if number < First {
		return base
	}
	return base + "_" + events.Alias(strconv.FormatUint(number, 10))
}
