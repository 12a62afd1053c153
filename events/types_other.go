package events

import (
	"encoding/json"
	"time"

	"berth/events/fault"
)

// ---- goal.<caller>.<goalId>

// GoalAccepted binds a goal id to one request, for ever: same fingerprint,
// same answer. For a spawn the identity is allocated here, before any effect.
type GoalAccepted struct {
	Command     string          `json:"command"` // spawn, checkpoint, export
	Fingerprint string          `json:"fingerprint"`
	Request     json.RawMessage `json:"request"` // the checked input, public text
	Holder      InstanceID      `json:"holder"`
	Allocated   Allocation      `json:"allocated"`
	Ready       time.Time       `json:"ready"` // readiness deadline
}

// Allocation is the identity given to a goal before any effect.
type Allocation struct {
	Name        Alias         `json:"name"`
	Owner       Owner         `json:"owner"`
	Actor       Actor         `json:"actor"`
	UID         UID           `json:"uid,omitempty"`
	Environment EnvironmentID `json:"environment,omitempty"`
	Operation   OperationID   `json:"operation,omitempty"` // checkpoint, export
}

// GoalOffered says that the instance that accepted a goal can't run it: any
// other that fits may claim it until then (decision 11). It is in the commit of
// the acceptance.
type GoalOffered struct {
	By     InstanceID `json:"by"`
	Reason string     `json:"reason"` // why not here
	Until  time.Time  `json:"until"`
}

// GoalDeclined is why another instance can't run an offered goal either.
type GoalDeclined struct {
	Instance InstanceID `json:"instance"`
	Reason   string     `json:"reason"`
}

// GoalClaimed gives an offered goal to the instance that will run it.
type GoalClaimed struct {
	Instance InstanceID `json:"instance"`
}

// GoalRenamed gives a goal whose name nobody chose another identity, because the
// one before it was lost to somebody else before anything was made of it
// (decision 2). The goal goes on with the new one.
type GoalRenamed struct {
	Allocated Allocation `json:"allocated"`
	Reason    string     `json:"reason"` // what held the name before
}

// GoalProgressed is one step a person may want to see.
type GoalProgressed struct {
	Phase  string `json:"phase"`
	Detail string `json:"detail,omitempty"`
}

// GoalCancelRequested asks the goal to end; Mode is graceful or terminate.
type GoalCancelRequested struct {
	Mode string `json:"mode"`
}

// GoalEnded is the one terminal; the first wins (2.6).
type GoalEnded struct {
	State  GoalState       `json:"state"`
	Fault  *fault.Error    `json:"fault,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// GoalSettled is what an uncertain terminal turned out to be; it never
// replaces the terminal (decision 14).
type GoalSettled struct {
	State  GoalState       `json:"state"`
	Fault  *fault.Error    `json:"fault,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// GoalState is one of the states of 2.6.
type GoalState string

// The states of a goal; the last five are terminal.
const (
	GoalStateAccepted   GoalState = "accepted"
	GoalStateOffered    GoalState = "offered"
	GoalStateRunning    GoalState = "running"
	GoalStateWaiting    GoalState = "waiting"
	GoalStateCancelling GoalState = "cancelling"
	GoalSucceeded       GoalState = "succeeded"
	GoalFailed          GoalState = "failed"
	GoalCancelled       GoalState = "cancelled"
	GoalExpired         GoalState = "expired"
	GoalUncertain       GoalState = "uncertain"
)

// Terminal says that the state ends a goal.
func (s GoalState) Terminal() bool {
	switch s {
	case GoalSucceeded, GoalFailed, GoalCancelled, GoalExpired, GoalUncertain:
		return true
	}
	return false
}

// ---- session.<id>

// SessionRedeemed uses up the offer of a terminal session: whoever commits it
// first on the empty boundary has the session, and nobody after. What is typed
// and shown there is in no event.
type SessionRedeemed struct {
	Session     string        `json:"session"`
	Owner       Owner         `json:"owner"`
	Name        Alias         `json:"name"`
	UID         UID           `json:"uid"`
	Environment EnvironmentID `json:"environment"`
	Holder      string        `json:"holder"` // public nkey
	ServedBy    InstanceID    `json:"servedBy"`
	ReadOnly    bool          `json:"readOnly,omitempty"`
	Expires     time.Time     `json:"expires"`
}

// ---- uid.<uid>

// UIDReserved reserves a lifecycle uid in the space, never deleted or reused.
type UIDReserved struct {
	UID      UID        `json:"uid"`
	Owner    Owner      `json:"owner"`
	Actor    Actor      `json:"actor"`
	MintedBy InstanceID `json:"mintedBy"`
}

// ---- number.<owner>.<base>

// NumberIssued hands out one number of a name that nobody chose, once for ever.
type NumberIssued struct {
	Number uint64   `json:"number"`
	Goal   Boundary `json:"goal"` // which asked for it
}

// ---- instance.<id>

// InstanceRegistered is a start of a manager: its epoch rises by one.
type InstanceRegistered struct {
	Instance  InstanceID `json:"instance"`
	Epoch     uint64     `json:"epoch"`
	Host      HostFacts  `json:"host"`
	PublicKey string     `json:"publicKey"` // nkey that signs its checkpoints
	Version   string     `json:"version"`
}

// InstanceStopped is a clean end of that epoch; environments go on.
type InstanceStopped struct {
	Instance InstanceID `json:"instance"`
	Epoch    uint64     `json:"epoch"`
}

// InstanceObserved is what an instance offers to spawns: the facts behind each
// of its providers, and the labels that its operator gave it. It replaces what
// was observed before, whole.
type InstanceObserved struct {
	Instance  InstanceID        `json:"instance"`
	Epoch     uint64            `json:"epoch"`
	Labels    map[string]string `json:"labels,omitempty"`
	Providers []ProviderFacts   `json:"providers"`
}

// ProviderFacts are the facts of the host behind one provider. Shared says that
// it is the manager's own: what its environments hold counts against the same
// CPUs, memory and disk as those of the other shared providers.
type ProviderFacts struct {
	Provider string    `json:"provider"`
	Shared   bool      `json:"shared"`
	Facts    HostFacts `json:"facts"`
}

// ClockSkewed records that the wall clock was set while the manager ran; no
// deadline moved because of it.
type ClockSkewed struct {
	Instance InstanceID    `json:"instance"`
	By       time.Duration `json:"by"`
}

// ChainSigned is a signed checkpoint of the whole stream (blueprint 4): the
// running hash of every record up to Through.
type ChainSigned struct {
	Instance  InstanceID `json:"instance"`
	Through   uint64     `json:"through"`
	Chain     Hash       `json:"chain"`
	Signature string     `json:"signature"` // base64url, by PublicKey over chain text
}

// HostFacts is `environment-host-facts` (R76-R84).
type HostFacts struct {
	Host         string       `json:"host"` // a stable label (R77)
	Architecture string       `json:"architecture"`
	OS           string       `json:"os"`
	Engines      []Engine     `json:"engines"`
	KVM          KVM          `json:"kvm"`
	Allocatable  HostCapacity `json:"allocatable"`
	ObservedAt   time.Time    `json:"observedAt"` // end of the probe (R81)
}

// Engine is one provider that a host offers (R78).
type Engine struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Limits names what the kernel bounds of an environment by control groups:
	// "cpu, memory, pids", a part of it, or "none"; empty: the provider doesn't tell.
	Limits string `json:"limits,omitempty"`
}

// KVM tells a device node from one that works (R79).
type KVM struct {
	Present bool `json:"present"`
	Usable  bool `json:"usable"`
	// TriedAt is when it was tried last whether a machine starts with it.
	TriedAt time.Time `json:"triedAt,omitzero"`
}

// HostCapacity is what a host may give to environments.
type HostCapacity struct {
	CPUs      Quantity `json:"cpus"`
	MemoryMiB int64    `json:"memoryMiB"`
	DiskGiB   int64    `json:"diskGiB"`
	Slots     int64    `json:"environmentSlots"`
}

// ---- space.<name>

// HistoryLossAccepted is an operator's word that the log may be older than
// the checkpoint that a manager remembers (decision 6). Remembered is 0 where
// what was remembered can't be read.
type HistoryLossAccepted struct {
	By         Caller `json:"by"`
	Reason     string `json:"reason"`
	Remembered uint64 `json:"remembered"`
	Found      uint64 `json:"found"`
}
