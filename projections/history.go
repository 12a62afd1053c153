package projections

import (
	"context"
	"time"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
)

// Line is one event of a boundary's story.
type Line struct {
	Sequence  uint64             `json:"sequence"`
	ID        events.EventID     `json:"id"`
	Time      time.Time          `json:"time"`
	Who       string             `json:"who"`      // owner.actor of the caller
	Instance  events.InstanceID  `json:"instance"` // that wrote it
	Epoch     uint64             `json:"epoch"`
	Type      string             `json:"type"`
	What      string             `json:"what"` // in words
	Operation events.OperationID `json:"operation,omitempty"`
	Command   events.CommandID   `json:"command,omitempty"`
	// Cause is what made it so: the goal of a claim or an operation, the
	// evidence of a proof.
	Cause string `json:"cause,omitempty"`
	// Fault is why a record can't be read, or what an event reports.
	Fault *fault.Error `json:"fault,omitempty"`
}

// History is the story of a boundary, oldest first, read from the log. A
// boundary on which nothing happened gives no line.
func History(ctx context.Context, log eventlog.Log, b events.Boundary) ([]Line, error) {
	rs, err := log.Load(ctx, b, 0)
	if err != nil {
		return nil, err
	}
	out := make([]Line, 0, 2*len(rs))
	for _, r := range rs {
		out = append(out, Lines(r)...)
	}
	return out, nil
}

// Lines is what one record says, a line for each event; a record that can't
// be read is one line that says so.
func Lines(r events.Record) []Line {
	base := Line{
		Sequence: r.Sequence, ID: r.Meta.ID, Time: r.Meta.Time, Who: string(r.Meta.Caller.Owner) + "." + string(r.Meta.Caller.Actor),
		Instance: r.Meta.Writer.Instance, Epoch: r.Meta.Writer.Epoch, Operation: r.Meta.Operation, Command: r.Meta.Command,
	}
	var out []Line
	for i, e := range r.Events {
		l := base
		l.ID = r.Meta.ID.At(i)
		l.Type, l.What = e.EventType(), Phrase(e)
		l.explain(e)
		out = append(out, l)
	}
	if r.Torn {
		l := base
		l.What = "ignored: the rest of its atomic publish was never stored"
		out = append(out, l)
	}
	if r.Broken != nil {
		l := base
		l.Fault = fault.From(r.Broken)
		l.What = "can't be read: " + l.Fault.Message
		out = append(out, l)
	}
	return out
}

// Phrase says in words what an event says.
func Phrase(e events.Event) string {
	if f := phrases[e.EventType()]; f != nil {
		return f(e)
	}
	return e.EventType()
}

// explain fills in operation, cause and fault from what the event carries.
func (l *Line) explain(e events.Event) {
	switch e := e.(type) {
	case events.SlotClaimed:
		l.Cause = e.Goal
	case events.TurnRelayed:
		l.Cause = e.Goal
	case events.EnvironmentRefused:
		l.Fault = e.Fault
	case events.OperationPlanned:
		l.Operation, l.Cause = e.Operation, e.Goal
	case events.OperationDispatched:
		l.Operation, l.Cause = e.Operation, e.Goal
	case events.OperationConfirmed:
		l.Operation = e.Operation
	case events.OperationRefused:
		l.Operation, l.Fault = e.Operation, e.Fault
	case events.OperationUncertain:
		l.Operation, l.Fault = e.Operation, e.Fault
	case events.OperationLanded:
		l.Operation, l.Cause = e.Operation, e.Evidence
	case events.OperationExcluded:
		l.Operation, l.Cause = e.Operation, e.Evidence
	case events.OperationStuck:
		l.Operation = e.Operation
	case events.OperationCancelled:
		l.Operation, l.Cause = e.Operation, e.Reason
	case events.FileAccepted:
		l.Operation = e.Operation
	case events.FileRejected:
		l.Operation, l.Fault = e.Operation, e.Fault
	case events.EnvironmentWrittenOff:
		l.Cause = e.Reason
	case events.SlotTerminalizing:
		l.Cause = e.Reason
	case events.GoalEnded:
		l.Fault = e.Fault
	case events.GoalSettled:
		l.Fault = e.Fault
	}
}
