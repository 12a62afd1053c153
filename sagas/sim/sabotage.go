package sim

import (
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/events"
	"berth/providers"
	"berth/sagas"
)

// Kernel is the product's decisions as values, so that a test can break one.
type Kernel struct {
	Next     func(*sagas.View) sagas.Action
	Outcome  func(aggregates.Seat, events.OperationID, providers.Outcome, events.OperationID) []events.Event
	Found    func(aggregates.Seat, events.OperationID, providers.Finding, events.OperationID) []events.Event
	Observed func(aggregates.Seat, events.Facts) []events.Event
	NextGoal func(goal.State, aggregates.Seat, events.Boundary, time.Time) []events.Event
	Claim    func(goal.State, events.InstanceID, time.Time) []events.Event
	Lapse    func(goal.State, time.Time) []events.Event
}

// Product is the kernel as it is.
func Product() Kernel {
	return Kernel{Next: sagas.Next, Outcome: sagas.Outcome, Found: sagas.Found, Observed: sagas.Observed, NextGoal: sagas.NextGoal,
		Claim: goal.State.Claim, Lapse: goal.State.Lapse}
}

// Sabotage breaks something on purpose, to show that a law notices. The zero
// value breaks nothing.
type Sabotage struct {
	Kernel          *Kernel // instead of the product's
	ForgetCommands  bool    // a command id is not remembered
	KeepSecrets     bool    // what a provider answers is not scrubbed
	AcceptAny       bool    // an exported file is not compared
	SameEnvironment bool    // an environment id is used again
	LosesRecords    bool    // a projection skips a record
	NoFence         bool    // what a claimer left unmade is expired without a fence
}

func (s Sabotage) kernel() Kernel {
	if s.Kernel != nil {
		return *s.Kernel
	}
	return Product()
}
