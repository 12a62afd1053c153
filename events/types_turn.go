package events

import (
	"time"

	"berth/events/fault"
)

// Turns are folded on a seat boundary (rules.md 2.6): what order they have and
// how each ends is fenced by the same compare-and-append as the rest of the
// seat. What a turn asks is in its goal's request.

// TurnRelayed queues a turn at a seat, behind those that wait there. Its id is
// the operation id that was allocated to its goal.
type TurnRelayed struct {
	UID      UID         `json:"uid"`
	Turn     OperationID `json:"turn"`
	Goal     string      `json:"goal"` // boundary of the goal that asked
	Deadline time.Time   `json:"deadline"`
	From     string      `json:"from,omitempty"` // who handed it off, public text
}

// TurnYielded is the seat's own answer, and the end of the turn.
type TurnYielded struct {
	UID    UID         `json:"uid"`
	Turn   OperationID `json:"turn"`
	Status TurnStatus  `json:"status"`
	To     Alias       `json:"to,omitempty"`   // handoff: whose turn it is next
	Note   string      `json:"note,omitempty"` // public text of several lines
}

// TurnStatus is how a seat gives a turn back.
type TurnStatus string

// The ways to give a turn back.
const (
	TurnDone    TurnStatus = "done"
	TurnBlocked TurnStatus = "blocked"
	TurnHandoff TurnStatus = "handoff"
)

// TurnDropped ends a turn that the seat did not give back.
type TurnDropped struct {
	UID    UID         `json:"uid"`
	Turn   OperationID `json:"turn"`
	Reason string      `json:"reason"` // deadline, cancelled, or why the seat ends
	// Outcome is not-executed for a turn that was never shown to the seat, and
	// unknown for one that may have been.
	Outcome fault.Outcome `json:"outcome"`
	// DownAt is when the agent was seen to have stopped; null: it was not.
	DownAt *time.Time `json:"downAt,omitempty"`
}
