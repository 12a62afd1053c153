package commands

import (
	"encoding/json"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/events"
	"berth/events/fault"
	"berth/internal/connector"
	"berth/projections"
	"berth/terminal"
)

// SpawnResult is the acceptance of a spawn or a reserve. State is the goal's;
// how the goal ended is in Fault, never in the outcome of the request (E10).
type SpawnResult struct {
	Name        events.Alias         `json:"name"`
	Owner       events.Owner         `json:"owner"`
	Actor       events.Actor         `json:"actor"`
	UID         events.UID           `json:"uid"`
	GoalID      events.GoalID        `json:"goalId"`
	Fingerprint string               `json:"fingerprint"`
	Environment events.EnvironmentID `json:"environment"`
	State       events.GoalState     `json:"state"`
	ReadyBy     string               `json:"readyBy"` // RFC 3339
	// ReadinessDeadlineMs is the window from the acceptance to ReadyBy, which
	// the spawn asked for or its connector declares (2.6).
	ReadinessDeadlineMs int64             `json:"readinessDeadlineMs"`
	InstanceID          events.InstanceID `json:"instanceId"`
	Sequence            uint64            `json:"sequence"` // to read from: minSequence
	Fault               *fault.Error      `json:"fault,omitempty"`
}

// Err is how the goal ended if it ended badly already, such as by losing the
// name to another; nil while it goes on and when it succeeded.
func (r SpawnResult) Err() error { return goalErr(r.State, r.Fault) }

// OperationResult is the acceptance of a checkpoint, a restore or an export.
type OperationResult struct {
	Name        events.Alias         `json:"name"`
	Owner       events.Owner         `json:"owner"`
	UID         events.UID           `json:"uid"`
	GoalID      events.GoalID        `json:"goalId"`
	Fingerprint string               `json:"fingerprint"`
	Environment events.EnvironmentID `json:"environment"`
	Operation   events.OperationID   `json:"operation"`
	Verb        events.Verb          `json:"verb"`
	State       events.GoalState     `json:"state"`
	InstanceID  events.InstanceID    `json:"instanceId"`
	Sequence    uint64               `json:"sequence"`
	Fault       *fault.Error         `json:"fault,omitempty"`
}

// Err is how the goal ended if it ended badly already.
func (r OperationResult) Err() error { return goalErr(r.State, r.Fault) }

// Err is how the goal ended if it ended badly.
func (r GoalResult) Err() error { return goalErr(r.State, r.Fault) }

func goalErr(state events.GoalState, why *fault.Error) error {
	switch {
	case !state.Terminal() || state == events.GoalSucceeded:
		return nil
	case why != nil:
		return why
	}
	return fault.New(fault.FailedPrecondition, "the goal ended: %s", state).WithOutcome(fault.Unknown)
}

// WriteResult is the answer of a write: what the name's boundary said when it
// was done. A repeated id gets the same one.
type WriteResult struct {
	Name        events.Alias         `json:"name"`
	Owner       events.Owner         `json:"owner"`
	UID         events.UID           `json:"uid"`
	Environment events.EnvironmentID `json:"environment"`
	Status      aggregates.Status    `json:"status"`
	Operation   events.OperationID   `json:"operation,omitempty"` // that was queued, or of the retirement
	Verb        events.Verb          `json:"verb,omitempty"`
	Deadline    string               `json:"deadline,omitempty"` // extend: what was asked for, RFC 3339
	Changed     bool                 `json:"changed"`            // false: it was so already
	Command     events.CommandID     `json:"command"`
	Fingerprint string               `json:"fingerprint"`
	Sequence    uint64               `json:"sequence"`
}

// TakeOverResult is what an instance holds now of another one.
type TakeOverResult struct {
	From       events.InstanceID `json:"from"`
	InstanceID events.InstanceID `json:"instanceId"` // that holds it now
	Taken      []TakenSeat       `json:"taken"`
	Refused    []RefusedSeat     `json:"refused"` // these stay with From
	Left       int               `json:"left"`    // for another request
}

// TakenSeat is a seat that was taken over, at a sequence of the log.
type TakenSeat struct {
	Name        events.Alias         `json:"name"`
	UID         events.UID           `json:"uid"`
	Environment events.EnvironmentID `json:"environment"`
	Provider    string               `json:"provider"`
	Sequence    uint64               `json:"sequence"`
}

// RefusedSeat is a seat that was not, and why.
type RefusedSeat struct {
	Name  events.Alias `json:"name"`
	Fault *fault.Error `json:"fault"`
}

// LsResult is one page of the fleet.
type LsResult = projections.Page

// InspectResult is everything about one name at one sequence.
type InspectResult = projections.Inspection

// SlotRow is a slot with its head: what `slots` shows (2.1).
type SlotRow struct {
	projections.Slot
	Head projections.Head `json:"head"`
	Live bool             `json:"live"`
	// OwnerInstanceID is Holder by the name that the contract has for it.
	OwnerInstanceID events.InstanceID `json:"ownerInstanceId"`
	Fault           *fault.Error      `json:"fault,omitempty"` // names the record that can't be read
	Consistency     string            `json:"consistency"`
	ReadOrder       []string          `json:"readOrder"` // for clients of the older shape
}

// SlotsResult is one page of slots.
type SlotsResult struct {
	Items []SlotRow `json:"items"`
	AsOf  uint64    `json:"asOf"`
	Next  string    `json:"next,omitempty"`
}

// GoalResult is a goal as it stands. Result is of its end: the allocation of a
// spawn, the checkpoint, the file.
type GoalResult struct {
	GoalID      events.GoalID       `json:"goalId"`
	Command     string              `json:"command"`
	State       events.GoalState    `json:"state"`
	Ended       bool                `json:"ended"`
	Phase       string              `json:"phase,omitempty"`
	Allocated   events.Allocation   `json:"allocated"`
	Fingerprint string              `json:"fingerprint"`
	InstanceID  events.InstanceID   `json:"instanceId"`
	AcceptedAt  string              `json:"acceptedAt"`
	ReadyBy     string              `json:"readyBy,omitempty"`
	OfferedTill string              `json:"offeredTill,omitempty"` // RFC 3339: another instance may claim it until then (decision 11)
	Declined    []goal.Decline      `json:"declined,omitempty"`    // which instances can't run it, and why
	EndedAt     string              `json:"endedAt,omitempty"`
	Fault       *fault.Error        `json:"fault,omitempty"`
	Result      json.RawMessage     `json:"result,omitempty"`
	Settled     *events.GoalSettled `json:"settled,omitempty"` // of an uncertain one (decision 14)
	AsOf        uint64              `json:"asOf"`
}

// GoalsResult is one page of goals.
type GoalsResult struct {
	Items []GoalResult `json:"items"`
	AsOf  uint64       `json:"asOf"`
	Next  string       `json:"next,omitempty"`
}

// ExportReadResult is one chunk of an accepted file; the file's length and
// digest are in every chunk, for the client to verify (R37).
type ExportReadResult struct {
	Data       []byte `json:"data"` // base64
	Offset     int64  `json:"offset"`
	Next       int64  `json:"next"`
	ByteLength int64  `json:"byteLength"`
	SHA256     string `json:"sha256"`
	EOF        bool   `json:"eof"`
}

// LogsResult is one page of a seat's output.
type LogsResult struct {
	Data    []byte `json:"data"` // base64: output is bytes
	From    int64  `json:"from"` // offset of the first byte
	Next    int64  `json:"next"`
	Dropped int64  `json:"dropped,omitempty"` // bytes between what was asked for and From
	Ended   bool   `json:"ended"`             // the seat does not run: nothing more comes
}

// EventsResult is one page of the log, as structured CloudEvents.
type EventsResult struct {
	Items []CloudEvent `json:"items"`
	Next  uint64       `json:"next"` // sequence to go on from
	Tip   uint64       `json:"tip"`
}

// UsageResult is what was used up to Now (epoch ms); one of the lists is set.
type UsageResult struct {
	Now          int64                          `json:"now"`
	Currency     string                         `json:"currency,omitempty"`
	Owners       []projections.OwnerUsage       `json:"owners,omitempty"`
	Environments []projections.EnvironmentUsage `json:"environments,omitempty"`
	Next         int                            `json:"next,omitempty"` // offset of the next page
	AsOf         uint64                         `json:"asOf"`
}

// HostsResult is the fresh probe of this instance's providers and every
// instance that the log knows (R76-R84).
type HostsResult struct {
	InstanceID events.InstanceID              `json:"instanceId"`
	Providers  map[string]events.HostFacts    `json:"providers"`
	Headroom   map[string]events.HostCapacity `json:"headroom"` // by provider (R80)
	Unprobed   map[string]*fault.Error        `json:"unprobed"` // providers whose host could not be asked, and why (R82)
	Instances  []projections.Host             `json:"instances"`
	AsOf       uint64                         `json:"asOf"`
}

// StatusResult is how an instance is. It says nothing of inventory (R84).
type StatusResult struct {
	InstanceID events.InstanceID  `json:"instanceId"`
	Epoch      uint64             `json:"epoch"`
	Space      events.Space       `json:"space"`
	Caller     events.Caller      `json:"caller"` // the one caller of open mode (decision 21)
	Version    string             `json:"version"`
	Durability string             `json:"durability,omitempty"`
	Providers  []string           `json:"providers"`
	Connectors []connector.Report `json:"connectors"`
	// ClassSpawn says that the instance takes spawns that are sent to any; one
	// without a usable connector takes only those that are sent to it.
	ClassSpawn bool               `json:"classSpawn"`
	StartedAt  string             `json:"startedAt"`
	UptimeMs   int64              `json:"uptimeMs"`
	AsOf       uint64             `json:"asOf"`
	Tip        uint64             `json:"tip"`
	Counts     projections.Counts `json:"counts"`
	Engine     map[string]int64   `json:"engine"` // open, uncertain, stuck, in flight
	Requests   map[string]uint64  `json:"requests"`
}

// HealthResult is what a person should look at.
type HealthResult struct {
	Quarantined []projections.Quarantine `json:"quarantined"`
	Uncertain   []Concern                `json:"uncertain"`
	Stuck       []Concern                `json:"stuck"`
	Failed      []Concern                `json:"failed"`
	WrittenOff  []events.EnvironmentID   `json:"writtenOff"` // and not yet proved gone
	Losses      []projections.Loss       `json:"losses"`     // of history, accepted
	Truncated   bool                     `json:"truncated"`  // there is more than is listed
	AsOf        uint64                   `json:"asOf"`
}

// Concern is one environment that a person should look at.
type Concern struct {
	Name        events.Alias         `json:"name"`
	Owner       events.Owner         `json:"owner"`
	Environment events.EnvironmentID `json:"environment"`
	Status      aggregates.Status    `json:"status"`
	Operation   events.OperationID   `json:"operation,omitempty"`
	Verb        events.Verb          `json:"verb,omitempty"`
	Phase       environment.Phase    `json:"phase,omitempty"`
	Since       string               `json:"since,omitempty"`
	Fault       *fault.Error         `json:"fault,omitempty"`
}

// WaitResult is where the wait ended: Met, or the time was over.
type WaitResult struct {
	Met       bool                       `json:"met"`
	Status    aggregates.Status          `json:"status,omitempty"` // of a name
	Operation *projections.OperationView `json:"operation,omitempty"`
	Deadline  string                     `json:"deadline,omitempty"` // of the name's life as it stands, RFC 3339
	Goal      *GoalResult                `json:"goal,omitempty"`
	AsOf      uint64                     `json:"asOf"`
}

// HistoryResult is one page of a boundary's story, oldest first.
type HistoryResult struct {
	Items []projections.Line `json:"items"`
	Next  uint64             `json:"next,omitempty"` // sequence to go on after; absent: there is no more
}

// DescribeResult is the contract as a document: what this instance serves.
type DescribeResult struct {
	Name     string        `json:"name"`
	Version  string        `json:"version"`
	Space    events.Space  `json:"space"`
	Digest   string        `json:"digest"` // sha256 of the commands' canonical form
	Commands []Description `json:"commands"`
}

// InputResult says what a seat's terminal took.
type InputResult struct {
	Name  events.Alias `json:"name"`
	UID   events.UID   `json:"uid"`
	Bytes int          `json:"bytes"` // delivered, Enter included
}

// AttachResult is the offer of a session, for its holder alone to redeem.
type AttachResult struct {
	Offer terminal.Offer `json:"offer"`
}
