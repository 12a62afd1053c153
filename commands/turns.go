package commands

import (
	"time"

	"berth/events"
	"berth/events/fault"
)

// Limits of turns (rules.md 2.6).
const (
	MaxPayload  = 64 << 10 // of what a turn asks, in bytes
	MaxNote     = 4 << 10  // of what comes back with it, in bytes
	MaxHandoff  = 256      // of who handed it off, in bytes
	MaxDeadline = 30 * 24 * time.Hour
)

// TurnInput asks a running seat to take a turn. What the payload means is
// between who asks and the seat.
type TurnInput struct {
	Named
	Goal        string `json:"goal,omitzero" doc:"id of the goal; the request's id if absent" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Payload     string `json:"payload" doc:"what is asked: public text of several lines, which only the seat reads" maxLength:"65536"`
	DeadlineMs  int64  `json:"deadlineMs" doc:"how long the seat has from now, in milliseconds" min:"1" max:"2592000000"`
	HandoffFrom string `json:"handoffFrom,omitzero" doc:"who handed the turn off to this seat" maxLength:"256"`
}

// Check implements Input.
func (in TurnInput) Check() error {
	if err := first(in.Named.Check(), checkGoal(in.Goal), checkText("handoffFrom", in.HandoffFrom, MaxHandoff)); err != nil {
		return err
	}
	if err := checkDocument("payload", in.Payload, MaxPayload); err != nil {
		return err
	}
	if in.DeadlineMs < 1 || in.DeadlineMs > MaxDeadline.Milliseconds() {
		return bad("deadlineMs", "%d is not between 1 and %d", in.DeadlineMs, MaxDeadline.Milliseconds())
	}
	return nil
}

// TurnYieldInput gives a turn back.
type TurnYieldInput struct {
	GoalID string            `json:"goalId" doc:"of the turn, as it was shown" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Status events.TurnStatus `json:"status" doc:"done, blocked, or handoff" enum:"done,blocked,handoff"`
	To     string            `json:"to,omitzero" doc:"handoff: the name whose turn it is next" pattern:"^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$"`
	Note   string            `json:"note,omitzero" doc:"what is to be said about it: public text of several lines" maxLength:"4096"`
}

// Check implements Input.
func (in TurnYieldInput) Check() error {
	if err := (GoalRef{in.GoalID}).Check(); err != nil {
		return named("goalId", err)
	}
	switch in.Status {
	case events.TurnDone, events.TurnBlocked, events.TurnHandoff:
	default:
		return bad("status", "%q is neither done, blocked nor handoff", clip(string(in.Status)))
	}
	if in.To != "" {
		if in.Status != events.TurnHandoff {
			return bad("to", "a turn goes to another only with the status handoff")
		}
		if err := (Named{Name: in.To}).Check(); err != nil {
			return named("to", err)
		}
	}
	if in.Note == "" {
		return nil
	}
	return checkDocument("note", in.Note, MaxNote)
}

// StopInput ends the life of the seat that asks.
type StopInput struct {
	Grace string `json:"grace,omitzero" doc:"how long the seat may take to stop before it is killed, such as 10s"`
}

// Check implements Input.
func (in StopInput) Check() error {
	_, err := RetireInput{Grace: in.Grace}.GraceFor()
	return err
}

func checkDocument(field, s string, most int) error {
	if err := events.CheckDocument(field, s, most); err != nil {
		f := fault.From(err)
		return bad(field, "%s", f.Message).WithHint("%s", f.Hint)
	}
	return nil
}

// TurnResult is the acceptance of a turn. State is the goal's; how it ended is
// in Fault, never in the outcome of the request (E10).
type TurnResult struct {
	Name        events.Alias      `json:"name"`
	Owner       events.Owner      `json:"owner"`
	Actor       events.Actor      `json:"actor"`
	UID         events.UID        `json:"uid"`
	GoalID      events.GoalID     `json:"goalId"`
	Fingerprint string            `json:"fingerprint"`
	State       events.GoalState  `json:"state"`
	DeadlineAt  string            `json:"deadlineAt"` // RFC 3339
	Executor    events.InstanceID `json:"executor"`   // that holds the seat and ends the turn at its deadline
	Sequence    uint64            `json:"sequence"`   // to read from: minSequence
	Fault       *fault.Error      `json:"fault,omitempty"`
}

// Err is how the goal ended if it ended badly already.
func (r TurnResult) Err() error { return goalErr(r.State, r.Fault) }

// PendingTurn is the turn that a seat is to take.
type PendingTurn struct {
	GoalID     events.GoalID `json:"goalId"`
	Payload    string        `json:"payload"`
	AcceptedAt string        `json:"acceptedAt"` // RFC 3339
	DeadlineAt string        `json:"deadlineAt"` // RFC 3339
}

// TurnPendingResult is the oldest turn that waits for the seat that asks, if any.
type TurnPendingResult struct {
	Turns []PendingTurn `json:"turns"`
	AsOf  uint64        `json:"asOf"`
}

// TurnYieldResult is what the goal of a turn became that was given back.
type TurnYieldResult struct {
	GoalID events.GoalID    `json:"goalId"`
	State  events.GoalState `json:"state"`
}

// The commands about turns, and the one that a seat ends itself with. The last
// three are asked by the seat itself, as its owner, its name and its lifecycle.
var (
	Turn = command[TurnInput, TurnResult](Contract{
		Name: "turn", Kind: Goal, Target: TargetAny, Modes: aboutOwner, Capability: CanManage,
		Doc:     "Ask a running seat to take a turn until a deadline; turns of one seat are shown one at a time, the oldest first.",
		Example: `{"name":"demo","payload":"Review the open changes.","deadlineMs":600000}`, Refusals: lifeRefusals,
	})
	TurnPending = command[Empty, TurnPendingResult](Contract{
		Name: "turn-pending", Kind: Read, Target: TargetAny, Modes: aboutCaller, Capability: CanSelf,
		Doc: "The turn that the calling seat is to take, or none.", Example: `{}`, Refusals: []fault.Code{fault.Expired, fault.FailedPrecondition},
	})
	TurnYield = command[TurnYieldInput, TurnYieldResult](Contract{
		Name: "turn-yield", Kind: Write, Keyed: true, Target: TargetAny, Modes: aboutCaller, Capability: CanSelf,
		Doc:     "Give back a turn of the calling seat; a repeat is answered alike for ever.",
		Example: `{"goalId":"g-1","status":"done","note":"All of it is reviewed."}`, Refusals: []fault.Code{fault.NotFound, fault.Expired, fault.FailedPrecondition},
	})
	Stop = command[StopInput, WriteResult](Contract{
		Name: "stop", Kind: Write, Target: TargetAny, Modes: aboutCaller, Capability: CanSelf,
		Doc: "End the life of the calling seat, as `retire` does.", Example: `{"grace":"10s"}`,
		Refusals: lifeRefusals,
	})
)
