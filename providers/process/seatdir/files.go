//go:build linux

package seatdir

import (
	"time"

	"berth/events"
	"berth/providers/process/cgroup"
)

// Start is what a custodian is to start, written and synced before the fork.
type Start struct {
	Operation   events.OperationID `json:"operation"`
	Fingerprint string             `json:"fingerprint"`
	Seat        Seat               `json:"seat"`
	Group       cgroup.Group       `json:"group"` // empty name: no control groups
	Limits      cgroup.Limits      `json:"limits"`
	// IDBase is the host uid and gid of the seat's root; zero: this user only.
	IDBase int `json:"idBase,omitempty"`
	// Replace says that this start takes the place of whatever holds the seat,
	// with DirNext for a home.
	Replace bool `json:"replace,omitempty"`
}

// Seat is what the stage builds and executes.
type Seat struct {
	Isolated bool              `json:"isolated"`
	Network  string            `json:"network"`         // host or none
	Image    string            `json:"image,omitempty"` // root tree, relative to the seat's directory; empty: the host's
	Hide     []string          `json:"hide,omitempty"`  // host directories that the seat must not see
	Hostname string            `json:"hostname"`
	Command  []string          `json:"command"`
	Env      map[string]string `json:"env"`
	Material bool              `json:"material,omitempty"`
	Socket   string            `json:"socket,omitempty"`  // of the host, that the seat sees at the same path; empty: none
	Door     string            `json:"door,omitempty"`    // where its manager answers it, relative to its directory; empty: nowhere
	Handoff  bool              `json:"handoff,omitempty"` // the seat removes what it takes from its material (H8)
	Ready    *events.ReadySign `json:"ready,omitempty"`   // what it shows when it is ready; null: nothing is looked for
}

// Ident says who holds the seat, and who the seat is.
type Ident struct {
	Custodian events.Custody `json:"custodian"`
	Seat      events.Custody `json:"seat"`
	Group     cgroup.Group   `json:"group"`
}

// Deadline is the absolute end. Boot is the same instant on the boot-time
// clock, so that setting the wall clock neither kills nor makes immortal.
type Deadline struct {
	At        *time.Time         `json:"at"`
	BootID    string             `json:"bootId,omitempty"`
	Boot      time.Duration      `json:"boot,omitempty"`
	Operation events.OperationID `json:"operation,omitempty"` // the extend that set it
}

// Left is the time until the end, given the boot id, the boot-time clock and
// the wall clock; false: no deadline. The wall clock only serves after a
// restart of the machine.
func (d Deadline) Left(bootID string, boot time.Duration, now time.Time) (time.Duration, bool) {
	if d.At == nil {
		return 0, false
	}
	if d.BootID == bootID {
		return d.Boot - boot, true
	}
	return d.At.Sub(now), true
}

// Move is the deadline set to another wall time: the boot-time instant moves
// by the same difference.
func (d Deadline) Move(to time.Time, bootID string, boot time.Duration, now time.Time) Deadline {
	left, ok := d.Left(bootID, boot, now)
	if ok {
		left += to.Sub(*d.At)
	} else {
		left = to.Sub(now)
	}
	to = events.MillisUTC(to)
	return Deadline{At: &to, BootID: bootID, Boot: boot + left}
}

// Why a seat ended.
const (
	EndExited  = "exited"  // by itself
	EndStopped = "stopped" // it was asked to
	EndExpired = "expired" // its lifetime ran out
	EndLost    = "lost"    // its custodian was killed, or the machine restarted
)

// Exit is the proof that a seat has ended.
type Exit struct {
	Seat events.Custody `json:"seat"`
	Why  string         `json:"why"`
	// Code is the exit code, 128 + signal for a kill; absent when nobody saw it.
	Code *int      `json:"code,omitempty"`
	At   time.Time `json:"at"`
}

// Kept is written beside a capture or an export, after it: its presence
// proves that the operation landed.
type Kept struct {
	Operation  events.OperationID `json:"operation"`
	Checkpoint *events.Checkpoint `json:"checkpoint,omitempty"`
	File       *events.File       `json:"file,omitempty"`
}

// ManifestFile is the name of the Kept of checkpoint id.
func ManifestFile(id string) string { return DirCaptures + "/" + id + ".json" }
