package explore

import (
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/events"
	"berth/providers"
	"berth/sagas"
)

// Core is the part of the product that is explored. A test puts a defect in.
type Core struct {
	Next     func(*sagas.View) sagas.Action
	NextGoal func(goal.State, aggregates.Seat, events.Boundary, time.Time) []events.Event
	Outcome  func(aggregates.Seat, events.OperationID, providers.Outcome, events.OperationID) []events.Event
	Found    func(aggregates.Seat, events.OperationID, providers.Finding, events.OperationID) []events.Event
	Observed func(aggregates.Seat, events.Facts) []events.Event
	Plan     func(aggregates.Seat, events.OperationPlanned, time.Time) ([]events.Event, error)
	Claim    func(aggregates.Seat, aggregates.Claim) ([]events.Event, error)
	Fold     func(aggregates.Seat, events.Meta, events.Event) aggregates.Seat
	// Takes says whether the log takes an append of who saw one sequence while
	// another is the last.
	Takes func(seen, last uint64) bool
	// Accepts says whether a copied file is accepted that is, or is not, what
	// the provider answered.
	Accepts func(matches bool) bool
}

// Product is the core as it is.
func Product() Core {
	return Core{
		Next: sagas.Next, NextGoal: sagas.NextGoal, Outcome: sagas.Outcome, Found: sagas.Found, Observed: sagas.Observed,
		Plan: aggregates.Seat.Plan, Claim: aggregates.Seat.Claim,
		Fold:    func(s aggregates.Seat, m events.Meta, e events.Event) aggregates.Seat { return s.With(m, e) },
		Takes:   func(seen, last uint64) bool { return seen == last },
		Accepts: func(matches bool) bool { return matches },
	}
}

// rules is what a walk goes by and what it has seen; not part of a state.
type rules struct {
	Core
	capabilities events.Capabilities
	edges        map[Edge]bool
	steps        map[string]bool
	checks       map[string]int   // how often each law was asserted
	stranger     *aggregates.Seat // another name's seat, in a walk of two
}

func newRules(c Core, poor bool) *rules {
	r := &rules{Core: c, edges: map[Edge]bool{}, steps: map[string]bool{}, checks: map[string]int{}}
	if !poor {
		r.capabilities = events.Capabilities{PauseKeepsMemory: true, ColdCheckpoint: true, Snapshot: true, Export: true, Extend: events.ExtendLimit{StepMs: stepMost.Milliseconds()}}
	}
	return r
}
