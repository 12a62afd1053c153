package drill

import (
	"strconv"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// Limits of the provider. What exceeds them is refused with
// resource-exhausted, or the oldest is forgotten where it says so.
const (
	MaxEnvironments = 50_000 // that are not tombstones
	MaxTombstones   = 10_000 // the oldest is forgotten, and with it its operation ids
	MaxOperations   = 10_000 // of one environment
	MaxCalls        = 10_000 // the oldest are forgotten
	MaxCheckpoints  = 1_000  // of one environment
	MaxFiles        = 1_000  // exported and not deleted, of one environment

	// ExtendStepMs is the largest growth of one extend: ten minutes (R28).
	ExtendStepMs = 10 * 60 * 1000
)

// phase is what became of an operation at the provider.
type phase string

const (
	pending  phase = "pending"
	landed   phase = "landed"
	refused  phase = "refused"
	excluded phase = "excluded"
)

// op is one operation id that the provider has seen; it is kept as long as
// its environment or the environment's tombstone.
type op struct {
	ID    events.OperationID   `json:"id"`
	Print string               `json:"print"`
	Call  *Call                `json:"call,omitempty"` // while it is pending
	Verb  Verb                 `json:"verb"`
	Phase phase                `json:"phase"`
	At    time.Time            `json:"at"` // of acceptance, then of the end
	Lands *time.Time           `json:"lands,omitempty"`
	Was   events.ProviderState `json:"was,omitempty"` // the state to go back to if it never lands
	Facts *events.Facts        `json:"facts,omitempty"`
	Fault *fault.Error         `json:"fault,omitempty"`
}

type checkpoint struct {
	ID   string    `json:"id"`
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
}

type file struct {
	ID         string `json:"id"`
	Checkpoint string `json:"checkpoint"`
}

// env is one environment, or the tombstone or fence of one. State is empty
// for an id that was only fenced or whose reserve has not landed.
type env struct {
	ID          events.EnvironmentID         `json:"id"`
	Alias       events.Alias                 `json:"alias,omitempty"`
	State       events.ProviderState         `json:"state,omitempty"`
	Provisioned bool                         `json:"provisioned,omitempty"`
	Vanished    bool                         `json:"vanished,omitempty"`
	Incarnation int                          `json:"incarnation"`
	Network     string                       `json:"network,omitempty"`
	Expires     *time.Time                   `json:"expires,omitempty"`
	StoppedAt   *time.Time                   `json:"stoppedAt,omitempty"`
	ExitCode    *int                         `json:"exitCode,omitempty"`
	Sign        events.SignKind              `json:"sign,omitempty"` // that the seat shows when it is ready
	Ready       *events.Readiness            `json:"ready,omitempty"`
	ReadyDue    *time.Time                   `json:"readyDue,omitempty"` // when it will show it
	Holder      events.InstanceID            `json:"holder,omitempty"`
	Epochs      map[events.InstanceID]uint64 `json:"epochs,omitempty"`
	Ops         []*op                        `json:"ops,omitempty"`
	Checkpoints []checkpoint                 `json:"checkpoints,omitempty"`
	Files       []file                       `json:"files,omitempty"`
}

func (e *env) ref() string { return "drill-" + string(e.ID) }

func (e *env) op(id events.OperationID) *op {
	for i := len(e.Ops) - 1; i >= 0; i-- {
		if e.Ops[i].ID == id {
			return e.Ops[i]
		}
	}
	return nil
}

// held says that the provider really has something there.
func (e *env) held() bool {
	return e.State != "" && e.State != events.StateAbsent && !e.Vanished
}

func (e *env) expired(t time.Time) bool { return e.Expires != nil && !t.Before(*e.Expires) }

// facts is what the provider observes at t.
func (e *env) facts(t time.Time) events.Facts {
	f := events.Facts{Ref: e.ref(), State: e.State, ObservedAt: events.MillisUTC(t)}
	if e.State == events.StateAbsent {
		return f
	}
	f.VolumeID = "volume-" + string(e.ID)
	f.Incarnation = strconv.Itoa(e.Incarnation)
	f.Network = e.Network
	f.ExpiresAt = copyOf(e.Expires)
	f.StoppedAt = copyOf(e.StoppedAt)
	f.ExitCode = copyOf(e.ExitCode)
	f.Ready = copyOf(e.Ready)
	return f
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// outcome is the answer of an operation that has been seen.
func (o *op) outcome(e *env, t time.Time) providers.Outcome {
	switch o.Phase {
	case landed:
		return providers.DoneWith(o.result(e, t))
	case refused:
		return providers.RefusedWith(o.Fault)
	case excluded:
		return providers.RefusedWith(fault.New(fault.Expired, "operation %s was excluded and can never land", o.ID))
	}
	return providers.UnknownWith(fault.New(fault.Unavailable, "operation %s was accepted and is not finished", o.ID))
}

// result is what the operation answered; of a tombstone only results that a
// check needs are kept, and the rest is that it is absent.
func (o *op) result(e *env, t time.Time) events.Facts {
	if o.Facts == nil {
		return e.facts(t)
	}
	return *o.Facts
}

// finding is what reconciliation tells of the operation.
func (o *op) finding(e *env, t time.Time) providers.Finding {
	switch o.Phase {
	case landed:
		return providers.Finding{Verdict: providers.Landed, Facts: o.result(e, t), Evidence: "drill journal: landed at " + o.At.Format(time.RFC3339Nano)}
	case refused:
		return providers.Finding{Verdict: providers.Excluded, Evidence: "drill journal: refused with " + string(o.Fault.Code) + ", nothing was executed"}
	case excluded:
		return providers.Finding{Verdict: providers.Excluded, Evidence: "drill journal: fenced at " + o.At.Format(time.RFC3339Nano)}
	}
	return providers.Finding{Verdict: providers.Open, Evidence: "drill journal: accepted, not finished",
		Fault: fault.New(fault.Unavailable, "operation %s was accepted and is not finished", o.ID)}
}
