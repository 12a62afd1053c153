//go:build linux

package seatdir

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// Phase is how far an environment has come. Running, paused and exited are
// observed from the processes, never read from here.
type Phase string

// The phases, in the order of a life.
const (
	PhaseNone        Phase = "" // the directory only fences an id
	PhaseReserved    Phase = "reserved"
	PhaseProvisioned Phase = "provisioned"
	PhaseStarted     Phase = "started"
	PhaseDestroying  Phase = "destroying"
	PhaseDestroyed   Phase = "destroyed"
)

// Standing is what is known of one operation.
type Standing string

// The standings. Begun alone is not proof of anything.
const (
	Begun    Standing = "begun"
	Landed   Standing = "landed"
	Refused  Standing = "refused"
	Excluded Standing = "excluded"
)

// MaxOperations is how many operations one environment may see; stop and
// destroy are taken beyond it.
const MaxOperations = 1024

// Entry is one operation in the journal.
type Entry struct {
	Operation   events.OperationID `json:"operation"`
	Verb        events.Verb        `json:"verb"`
	Fingerprint string             `json:"fingerprint"` // of verb and arguments
	Standing    Standing           `json:"standing"`
	Facts       *events.Facts      `json:"facts,omitempty"`
	Fault       *fault.Error       `json:"fault,omitempty"`
}

// Journal is the record of one environment. It holds no secret (R54, R91).
type Journal struct {
	Environment events.EnvironmentID `json:"environment"`
	Alias       events.Alias         `json:"alias,omitempty"`
	Ref         string               `json:"ref,omitempty"`
	Writer      events.Writer        `json:"writer"` // the last one, with its highest epoch
	Phase       Phase                `json:"phase"`
	Plan        events.Plan          `json:"plan"`
	Digest      string               `json:"digest,omitempty"`  // of an OCI image, as unpacked
	IDBase      int                  `json:"idBase,omitempty"`  // host uid of the seat's root
	Path        string               `json:"path,omitempty"`    // PATH of the image
	Network     string               `json:"network,omitempty"` // as resolved at the reservation (R23)
	Expires     *time.Time           `json:"expires,omitempty"`
	Operations  []Entry              `json:"operations"`

	noted int64 // bytes of FileRecent that hold what only it has
}

// Fingerprint tells whether the same id is used for the same thing (R27).
func Fingerprint(op providers.Operation) string {
	b, err := json.Marshal(struct {
		V events.Verb
		A events.Arguments
	}{op.Verb, op.Arguments})
	if err != nil {
		panic("seatdir: an operation that is not JSON: " + err.Error())
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:16])
}

// Find returns the entry of an operation, or nil.
func (j *Journal) Find(id events.OperationID) *Entry {
	for i := len(j.Operations) - 1; i >= 0; i-- {
		if j.Operations[i].Operation == id {
			return &j.Operations[i]
		}
	}
	return nil
}

// Set adds or replaces an entry.
func (j *Journal) Set(e Entry) {
	if old := j.Find(e.Operation); old != nil {
		*old = e
		return
	}
	j.Operations = append(j.Operations, e)
}

// LoadJournal reads the journal; without one it is empty, for this id.
func (d Dir) LoadJournal() (*Journal, error) {
	j := &Journal{}
	err := d.ReadJSON(FileJournal, j)
	if errors.Is(err, os.ErrNotExist) {
		return &Journal{Environment: d.ID}, nil
	}
	if err == nil {
		err = d.addRecent(j)
	}
	return j, err
}

// SaveJournal replaces the journal, durably. The caller holds the lock.
func (d Dir) SaveJournal(j *Journal) error {
	if err := d.WriteJSON(FileJournal, j); err != nil {
		return err
	}
	return d.dropRecent(j)
}
