package projections

import (
	"berth/aggregates/intent"
	"berth/events"
)

// Intent is a delegated intent as readers see it (D1-D20).
type Intent struct {
	ID         events.GoalID        `json:"intent"`
	Kind       events.IntentKind    `json:"kind"`
	Phase      intent.Phase         `json:"phase"`
	Outcome    events.IntentOutcome `json:"outcome,omitempty"`
	By         events.Caller        `json:"by"` // the user
	InstanceID events.InstanceID    `json:"instanceId"`
	Epoch      uint64               `json:"epoch"` // zero: the instance is gone, whoever holds the seat may use it
	UID        events.UID           `json:"uid,omitempty"`
	ExpiresAt  int64                `json:"expiresAt"`           // epoch ms
	Request    events.CommandID     `json:"request,omitempty"`   // that used it
	Operation  events.OperationID   `json:"operation,omitempty"` // of its effect
	Executor   *events.Writer       `json:"executor,omitempty"`
	SweptBy    *events.Writer       `json:"sweptBy,omitempty"`
	Reason     string               `json:"reason,omitempty"` // of its release
}

// IntentOf is the row of one intent.
func IntentOf(i intent.State) Intent {
	out := Intent{ID: i.ID, Kind: i.Kind, Phase: i.Phase, Outcome: i.Outcome, By: i.By, InstanceID: i.Instance, Epoch: i.Epoch, UID: i.UID,
		ExpiresAt: i.ExpiresAt.UnixMilli(), Request: i.Used, Operation: i.Operation, Reason: i.Reason}
	if i.Executor != (events.Writer{}) {
		out.Executor = &i.Executor
	}
	if i.SweptBy != (events.Writer{}) {
		out.SweptBy = &i.SweptBy
	}
	return out
}
