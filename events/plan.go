package events

import "time"

// Resources is what an environment may use. CPUs is exact: a quarter is a
// quarter for ever. Zero MemoryMiB or DiskGiB means "not limited by us".
type Resources struct {
	CPUs      Quantity `json:"cpus"`
	MemoryMiB int64    `json:"memoryMiB"`
	DiskGiB   int64    `json:"diskGiB,omitempty"`
}

// Image is exactly one reference, chosen before preflight (R13). It is public
// text (R15, R21).
type Image struct {
	// Kind is "template" or "oci".
	Kind      string `json:"kind"`
	Reference string `json:"reference"`
}

// Plan is what was asked for, frozen at acceptance. Everything in it is
// public text (decision 24, R88).
type Plan struct {
	Provider  string            `json:"provider"`
	Image     Image             `json:"image"`
	Resources Resources         `json:"resources"`
	Network   *string           `json:"network"`  // null: the provider's default (R22)
	Lifetime  time.Duration     `json:"lifetime"` // from acceptance; zero: no deadline asked
	Command   []string          `json:"command"`
	Options   map[string]string `json:"options,omitempty"` // selection data only
	// Delegated: the seat begins with a hand-off (H1-H20), and Command is the
	// bootstrap that takes it.
	Delegated bool `json:"delegated,omitempty"`
	// Resume is the transcript that the seat goes on from; null: none.
	Resume *Resume `json:"resume,omitempty"`
	// Connector is the declared harness; null: a plain command.
	Connector *Connector `json:"connector,omitempty"`
}

// Resume names a transcript by the claim that was used up for it, and binds
// its bytes: they are material of the launch and in no event.
type Resume struct {
	Claim  string `json:"claim"`
	Source string `json:"source"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"` // bytes
}

// Target is how far the operator wants a seat to go.
type Target string

// The targets, in the order of a life.
const (
	TargetReserved    Target = "reserved"
	TargetProvisioned Target = "provisioned"
	TargetRunning     Target = "running"
	TargetPaused      Target = "paused"
	TargetRetired     Target = "retired"
)

// Verb is one logical provider mutation (R27: extend is one like the others).
type Verb string

// The mutating verbs of the driver contract.
const (
	VerbReserve    Verb = "reserve"
	VerbProvision  Verb = "provision"
	VerbStart      Verb = "start"
	VerbPause      Verb = "pause"
	VerbResume     Verb = "resume"
	VerbExtend     Verb = "extend"
	VerbCheckpoint Verb = "checkpoint"
	VerbRestore    Verb = "restore"
	VerbExport     Verb = "export"
	VerbDeleteFile Verb = "delete-file"
	VerbStop       Verb = "stop"
	VerbDestroy    Verb = "destroy"
)

// Verbs lists every mutating verb, in the order of a life.
var Verbs = []Verb{VerbReserve, VerbProvision, VerbStart, VerbPause, VerbResume, VerbExtend, VerbCheckpoint, VerbRestore, VerbExport, VerbDeleteFile, VerbStop, VerbDestroy}

// Arguments is what a verb is called with, taken from state when the
// operation is journaled. Only the fields of that verb are set.
type Arguments struct {
	ExtendTo     *time.Time `json:"extendTo,omitempty"`     // extend: the deadline of this call (R28)
	Wanted       *time.Time `json:"wanted,omitempty"`       // extend: the deadline asked for in the end (R29)
	CheckpointID string     `json:"checkpointId,omitempty"` // checkpoint makes it; restore and export read it
	MaxBytes     int64      `json:"maxBytes,omitempty"`     // export (R37)
	HostPath     string     `json:"hostPath,omitempty"`     // export to the provider's host (R34); empty: provider-file
	FileID       string     `json:"fileId,omitempty"`       // delete-file
	Grace        string     `json:"grace,omitempty"`        // stop: a Go duration before the kill
}

// ProviderState is what a provider observed of its environment.
type ProviderState string

// The states that a provider may report. Absent is a proof, not a list's
// silence: a driver reports it only for what it can vouch for.
const (
	StateReserved ProviderState = "reserved"
	StateCreating ProviderState = "creating"
	StateRunning  ProviderState = "running"
	StatePaused   ProviderState = "paused"
	StateStopped  ProviderState = "stopped"
	StateFailed   ProviderState = "failed"
	StateAbsent   ProviderState = "absent"
	StateUnknown  ProviderState = "unknown"
)

// Facts is one observation of one environment (R64). Unreported fields are
// absent (R66); every string passes CheckText (R71).
type Facts struct {
	Ref         string        `json:"ref,omitempty"`
	VolumeID    string        `json:"volumeId,omitempty"`
	Incarnation string        `json:"incarnation,omitempty"` // changes when the provider replaced the machine
	State       ProviderState `json:"state"`
	Network     string        `json:"network,omitempty"`
	StoppedAt   *time.Time    `json:"stoppedAt,omitempty"` // only after a proved stop (R67)
	ExitCode    *int          `json:"exitCode,omitempty"`  // of the seat's process
	// ExpiresAt is the deadline that the provider observed; null says that it
	// has none, never that it could not be read (R31).
	ExpiresAt  *time.Time `json:"expiresAt"`
	ObservedAt time.Time  `json:"observedAt"`
	// Custody is where the host keeps the process: pid, start time, boot id.
	Custody *Custody `json:"custody,omitempty"`
	// Ready is what the seat has shown of its readiness; null until it did, and
	// for a plan that asks for no sign.
	Ready *Readiness `json:"ready,omitempty"`
	// Checkpoint and File are results of those verbs.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	File       *File       `json:"file,omitempty"`
}

// Custody proves which process holds a seat (H-rules on custody): never a pid alone.
type Custody struct {
	BootID    string `json:"bootId"`
	PID       int    `json:"pid"`
	StartTime uint64 `json:"startTime"` // field 22 of /proc/PID/stat, clock ticks
}

// Checkpoint is a state that the provider keeps.
type Checkpoint struct {
	ID         string    `json:"id"`
	Kind       string    `json:"kind"` // "cold" or "memory"
	ByteLength int64     `json:"byteLength"`
	SHA256     string    `json:"sha256,omitempty"`
	CapturedAt time.Time `json:"capturedAt"`
}

// File is an exported file: provider-file (ID set) or host-path (Path set).
// ID is neither a URL nor a credential (R35).
type File struct {
	ID         string `json:"id,omitempty"`
	Path       string `json:"path,omitempty"`
	ByteLength int64  `json:"byteLength"`
	SHA256     string `json:"sha256"`
}

// Capabilities is the closed set of what one probe of one plan found (R1-R12).
// It is replaced whole, with ProbedAt.
type Capabilities struct {
	GuestBuild       bool        `json:"guestBuild"`
	Custody          bool        `json:"custody"`
	SessionHistory   bool        `json:"sessionHistory"`
	MaterialRenewal  bool        `json:"materialRenewal"`
	ColdCheckpoint   bool        `json:"coldCheckpoint"`
	MemoryCheckpoint bool        `json:"memoryCheckpoint"`
	Nested           bool        `json:"nested"`
	PauseKeepsMemory bool        `json:"pauseKeepsMemory"`
	Snapshot         bool        `json:"snapshot"` // the environment can be put back, in place, to a checkpoint that it keeps
	Export           bool        `json:"export"`
	GPU              bool        `json:"gpu"`
	DurableSeatHome  bool        `json:"durableSeatHome"`
	Screen           bool        `json:"screen"`
	Exec             bool        `json:"exec"`
	Extend           ExtendLimit `json:"extend"`
}

// Check is one named line of a preflight.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// ImageDescription is the provider's answer about an image (R16-R20).
type ImageDescription struct {
	Image        Image  `json:"image"`            // unchanged (R17)
	Digest       string `json:"digest,omitempty"` // only a content digest (R20)
	Architecture string `json:"architecture"`
	ABI          string `json:"abi,omitempty"`
	BundleSHA256 string `json:"bundleSha256,omitempty"`
}
