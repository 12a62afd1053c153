package adapter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/providers"
)

// Phase is how far an environment has come; running, paused and stopped are
// observed at the provider, never read from here.
type Phase string

// The phases, in the order of a life.
const (
	PhaseNone        Phase = "" // the record only remembers ids
	PhaseReserved    Phase = "reserved"
	PhaseProvisioned Phase = "provisioned"
	PhaseStarted     Phase = "started"
	PhaseDestroying  Phase = "destroying"
	PhaseDestroyed   Phase = "destroyed"
)

// Standing is what is known of one operation.
type Standing string

// The standings. Begun says that it may have been sent, and nothing more.
const (
	Begun    Standing = "begun"
	Landed   Standing = "landed"
	Refused  Standing = "refused"
	Excluded Standing = "excluded"
)

// MaxOperations is how many operations one environment may see; stop and
// destroy are taken beyond it.
const MaxOperations = 1024

const format = 1

// Entry is one operation in the journal. Before is what the backend noted of
// the environment before it sent anything, to tell an effect from what was
// there already.
type Entry struct {
	Operation   events.OperationID `json:"operation"`
	Verb        events.Verb        `json:"verb"`
	Fingerprint string             `json:"fingerprint"`
	Standing    Standing           `json:"standing"`
	Before      string             `json:"before,omitempty"`
	Facts       *events.Facts      `json:"facts,omitempty"`
	Fault       *fault.Error       `json:"fault,omitempty"`
}

// Record is the journal of one environment. It holds no secret (R55, R91).
type Record struct {
	Format      int                  `json:"format"`
	Environment events.EnvironmentID `json:"environment"`
	Alias       events.Alias         `json:"alias,omitempty"`
	Plan        events.Plan          `json:"plan"`
	Ref         string               `json:"ref,omitempty"`
	Phase       Phase                `json:"phase"`
	Writer      events.Writer        `json:"writer"`         // the last one, with its highest epoch
	Keep        map[string]string    `json:"keep,omitempty"` // what the backend must find again; public text
	Operations  []Entry              `json:"operations"`
}

// Find is the entry of an id, or nil.
func (r *Record) Find(id events.OperationID) *Entry {
	for i := range r.Operations {
		if r.Operations[i].Operation == id {
			return &r.Operations[i]
		}
	}
	return nil
}

func (r *Record) set(e Entry) {
	if old := r.Find(e.Operation); old != nil {
		*old = e
		return
	}
	r.Operations = append(r.Operations, e)
}

// unsettled is an operation of a verb that was sent and has no result, or "".
func (r *Record) unsettled(v events.Verb) events.OperationID {
	for _, e := range r.Operations {
		if e.Verb == v && e.Standing == Begun {
			return e.Operation
		}
	}
	return ""
}

// advance is what a landed verb means for the phase.
func (r *Record) advance(v events.Verb, f events.Facts) {
	switch v {
	case events.VerbReserve:
		r.Ref, r.Phase = f.Ref, PhaseReserved
	case events.VerbProvision:
		r.Phase = PhaseProvisioned
	case events.VerbStart:
		r.Phase = PhaseStarted
	case events.VerbDestroy:
		r.Phase = PhaseDestroyed
	}
}

// fingerprint tells whether an id is used for the same thing again (R27).
func fingerprint(op providers.Operation) string {
	b, err := json.Marshal(struct {
		V events.Verb
		A events.Arguments
	}{op.Verb, op.Arguments})
	if err != nil {
		b = []byte(err.Error()) // a time out of range: equal to itself only
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// store holds one synced file per environment in a locked directory.
type store struct {
	dir  string
	lock *durable.Lock
}

func openStore(dir string) (*store, error) {
	if !filepath.IsAbs(dir) {
		return nil, fault.New(fault.BadRequest, "journal directory %q: an absolute path", dir)
	}
	if err := durable.MakeDir(dir); err != nil {
		return nil, fault.New(fault.FailedPrecondition, "journal directory %s: %s", dir, err)
	}
	l, err := durable.TryLock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fault.New(fault.FailedPrecondition, "journal directory %s: %s", dir, err).
			WithHint("one process at a time may send for it, or an id that was not sent could not be proved so")
	}
	return &store{dir: dir, lock: l}, nil
}

func (s *store) file(id events.EnvironmentID) string { return filepath.Join(s.dir, string(id)+".json") }

// files is the directory of an environment's captures and exports.
func (s *store) files(id events.EnvironmentID, parts ...string) string {
	return filepath.Join(append([]string{s.dir, string(id) + ".files"}, parts...)...)
}

// load reads a record; an environment that was never heard of has an empty one.
func (s *store) load(id events.EnvironmentID) (*Record, error) {
	r := &Record{Format: format, Environment: id, Keep: map[string]string{}}
	raw, err := os.ReadFile(s.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, r)
	}
	if err != nil {
		return nil, fault.New(fault.Unavailable, "journal of environment %s: %s", id, err)
	}
	if r.Format != format || r.Environment != id {
		return nil, fault.New(fault.Unavailable, "journal of environment %s: format %d of environment %s, this program reads format %d", id, r.Format, r.Environment, format)
	}
	if r.Keep == nil {
		r.Keep = map[string]string{}
	}
	return r, nil
}

func (s *store) save(r *Record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return durable.WriteFile(s.file(r.Environment), raw, 0o600)
}

// ids lists the environments that have a record.
func (s *store) ids() ([]events.EnvironmentID, error) {
	names, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []events.EnvironmentID
	for _, n := range names {
		base := filepath.Base(n)
		if id, err := events.ParseEnvironmentID(base[:len(base)-len(".json")]); err == nil {
			out = append(out, id)
		}
	}
	return out, nil
}

func (s *store) close() error { return s.lock.Unlock() }

// millis is the time of an observation.
func millis(clock func() time.Time) time.Time { return events.MillisUTC(clock()) }
