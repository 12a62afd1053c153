package projections

import (
	"berth/aggregates"
	"berth/aggregates/head"
	"berth/aggregates/instance"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
)

// Inspection is everything about one name at one sequence: one boundary, so
// nothing in it is torn.
type Inspection struct {
	Alias       events.Alias              `json:"alias"`
	Owner       events.Owner              `json:"owner"`
	Live        bool                      `json:"live"` // a process runs, as far as is known
	Status      aggregates.Status         `json:"status"`
	Slot        Slot                      `json:"slot"`
	Head        Head                      `json:"head"`
	Environment *ManagedEnvironmentRecord `json:"environment"` // null: a quarantined name without one
	Operation   *OperationView            `json:"operation"`
	Operations  []OperationView           `json:"operations"` // the last done, oldest first
	Queue       []OperationView           `json:"queue"`
	Checkpoints []events.Checkpoint       `json:"checkpoints"`
	Plan        events.Plan               `json:"plan"`
	Target      events.Target             `json:"target,omitempty"`
	Deadline    *int64                    `json:"deadline,omitempty"`
	Custody     *events.Custody           `json:"custody,omitempty"`
	ExitCode    *int                      `json:"exitCode,omitempty"`
	Ready       *events.Readiness         `json:"ready,omitempty"`        // since when and by what, of a seat that was to show it
	Machines    int                       `json:"machines,omitempty"`     // how many incarnations the provider showed
	Restores    int                       `json:"restores,omitempty"`     // how many of them by a restore that was asked for
	Drift       string                    `json:"networkDrift,omitempty"` // the network that was observed, where it is not the recorded one (R25)
	Fault       *fault.Error              `json:"fault,omitempty"`
	Lives       int                       `json:"lives"`                // lifecycles of this name that have ended
	HolderAway  bool                      `json:"holderAway,omitempty"` // its instance recorded its end, and nothing is carried out until it is started
	Boundary    uint64                    `json:"boundarySequence"`
	Consistency string                    `json:"consistency"` // always snapshot
	AsOf        uint64                    `json:"asOf"`
}

// Head is the head and its gate as readers see it: no credential, only how many.
type Head struct {
	State       head.Phase         `json:"state"`
	UID         events.UID         `json:"uid,omitempty"`
	Epoch       uint64             `json:"epoch,omitempty"` // absent once retired
	Gate        head.GatePhase     `json:"gate"`
	Generation  uint64             `json:"generation"`
	Kind        string             `json:"kind,omitempty"`      // of what froze the gate
	Operation   events.OperationID `json:"operation,omitempty"` // that froze it
	Credentials int                `json:"credentials"`         // not revoked
	// BearerSource is where the guest of this launch fetches bearers (R43); absent: nowhere.
	BearerSource *events.BearerSource `json:"bearerSource,omitempty"`
}

// Inspect answers for a name that is held, quarantined or was retired; false
// if nothing ever held it. A name that is quarantined after its lifecycle ended
// shows that lifecycle, with the fault that names the record.
func (v *Views) Inspect(o events.Owner, a events.Alias) (Inspection, bool) {
	past := v.RetiredOf(o, a, 0)
	s, ok := v.Seat(o, a)
	if !ok {
		if len(past) == 0 {
			return Inspection{}, false
		}
		return v.inspectRetired(past), true
	}
	if unread(s) && len(past) > 0 {
		out := v.inspectRetired(past)
		out.Status, out.Slot.Status, out.Fault, out.Boundary = s.Status(), s.Status(), s.Quarantine, s.Sequence
		return out, true
	}
	e := s.Environment
	out := Inspection{
		Alias: a, Owner: o, Live: s.Live(), Status: s.Status(), Slot: SlotOf(s), Head: headOf(s.Head),
		Operation: operationOf(e), Operations: []OperationView{}, Queue: []OperationView{}, Checkpoints: e.Checkpoints,
		Plan: e.Plan, Target: e.Target, Deadline: millis(e.Deadline), Custody: e.Custody, ExitCode: e.ExitCode, Ready: e.Ready,
		Machines: e.Incarnations, Restores: e.Restores, Drift: e.Drift, Fault: e.Refusal, Lives: len(past), Boundary: s.Sequence, Consistency: "snapshot", AsOf: v.sequence,
	}
	if h := v.instances[s.Slot.Holder]; h != nil {
		out.HolderAway = s.Slot.Held() && h.state.Phase == instance.Stopped
	}
	if e.ID != "" {
		r := RecordOf(s, v.space)
		out.Environment = &r
	}
	if s.Quarantine != nil {
		out.Fault = s.Quarantine
	}
	if out.Checkpoints == nil {
		out.Checkpoints = []events.Checkpoint{}
	}
	for _, op := range e.Done {
		out.Operations = append(out.Operations, OperationView{ID: op.ID, Verb: op.Verb, State: op.Phase, At: op.At.UnixMilli(), Stuck: op.Stuck, Fault: op.Fault})
	}
	for _, op := range e.Queue {
		out.Queue = append(out.Queue, OperationView{ID: op.ID, Verb: op.Verb, State: op.Phase, At: op.At.UnixMilli()})
	}
	return out, true
}

func (v *Views) inspectRetired(past []Retired) Inspection {
	r := past[0]
	row := r.Row()
	record := r.Record
	return Inspection{
		Alias: r.Alias, Owner: r.Owner, Status: row.Status,
		Slot: Slot{Alias: r.Alias, Owner: r.Owner, UID: r.UID, Phase: slot.Retired, Holder: r.Holder, Environment: record.ID,
			Status: row.Status, ClaimedAt: r.ClaimedAt, Reason: r.Reason, Cleaned: !r.WrittenOff},
		Head:        Head{State: head.Retired, UID: r.UID, Gate: head.GateRetired},
		Environment: &record, Operations: []OperationView{}, Queue: []OperationView{}, Checkpoints: []events.Checkpoint{},
		Plan:   events.Plan{Provider: record.Provider, Image: events.Image{Kind: record.Image.Kind, Reference: record.Image.Reference}, Resources: r.Resources},
		Target: events.TargetRetired, ExitCode: r.ExitCode, Lives: len(past), Consistency: "snapshot", AsOf: v.sequence,
	}
}

func headOf(s head.State) Head {
	out := Head{State: s.Phase, UID: s.UID, Epoch: s.Epoch, Gate: s.Gate.Phase, Generation: s.Gate.Generation, Kind: s.Gate.Kind, Operation: s.Gate.Operation}
	for _, c := range s.Ledger {
		if !c.Revoked {
			out.Credentials++
			out.BearerSource = c.Source
		}
	}
	return out
}
