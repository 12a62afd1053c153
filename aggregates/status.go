package aggregates

import (
	"berth/aggregates/environment"
	"berth/aggregates/slot"
	"berth/events"
)

// Status is the one word for a seat, beside the record's four states
// (decision 15). It is computed here and nowhere else.
type Status string

// The statuses.
const (
	StatusNone       Status = "none"
	StatusReserved   Status = "reserved" // held, nothing more was asked
	StatusStarting   Status = "starting" // on its way to running
	StatusRunning    Status = "running"
	StatusPaused     Status = "paused"
	StatusStopped    Status = "stopped" // the process ended; kept until retired
	StatusFailed     Status = "failed"
	StatusUncertain  Status = "uncertain" // an operation's answer was lost
	StatusHeld       Status = "held"      // quarantined: nothing is done
	StatusStopping   Status = "stopping"  // a stop is in progress
	StatusRetiring   Status = "retiring"
	StatusRetired    Status = "retired"
	StatusWrittenOff Status = "written-off"
)

// Statuses lists every status, for documentation and completion.
var Statuses = []Status{StatusNone, StatusReserved, StatusStarting, StatusRunning, StatusPaused, StatusStopped, StatusFailed, StatusUncertain, StatusHeld, StatusStopping, StatusRetiring, StatusRetired, StatusWrittenOff}

// Status computes the seat's status. The order of the cases is the order of
// what a person must know first.
func (s Seat) Status() Status {
	env := s.Environment
	op := env.Operation
	switch {
	case s.Quarantine != nil:
		return StatusHeld
	case s.Slot.Phase == slot.None:
		return StatusNone
	case env.WrittenOff:
		return StatusWrittenOff
	case s.Slot.Phase == slot.Retired:
		return StatusRetired
	case op != nil && op.Phase == environment.Uncertain:
		return StatusUncertain
	case s.Slot.Phase == slot.Terminalizing && op != nil && op.Verb == events.VerbStop:
		return StatusStopping
	case s.Slot.Phase == slot.Terminalizing:
		return StatusRetiring
	case env.Record == environment.Failed:
		return StatusFailed
	case env.Record == environment.Stopped:
		return StatusStopped
	case env.Paused:
		return StatusPaused
	case env.Record == environment.Running && s.Slot.Phase == slot.Provisioning && env.AwaitsSign():
		return StatusStarting // its process runs, and it has not said that it is ready
	case env.Record == environment.Running:
		return StatusRunning
	case reached(env) && op == nil:
		return StatusReserved
	}
	return StatusStarting
}

// reached says that the seat stands where it was asked to stand, short of running.
func reached(e environment.State) bool {
	switch e.Target {
	case events.TargetReserved:
		return e.Ref != ""
	case events.TargetProvisioned:
		return e.Provisioned
	}
	return false
}

// Live says that a process runs for the seat as far as is known.
func (s Seat) Live() bool {
	return s.Slot.Held() && s.Environment.Record == environment.Running && !s.Environment.Gone
}

// Stuck says that an open operation has outlasted its patience.
func (s Seat) Stuck() bool {
	return s.Environment.Operation != nil && s.Environment.Operation.Stuck
}
