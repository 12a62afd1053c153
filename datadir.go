package berth

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"berth/events"
	"berth/events/eventlog/checkpoint"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/internal/ids"
)

// Names in a data directory.
const (
	lockFile     = "lock"
	identityFile = "identity.json"
	seedFile     = "instance.nk" // the instance's nkey seed, mode 0600
	endpointFile = "endpoint.json"
	natsDir      = "nats"
	materialDir  = "material"
	exportsDir   = "exports"
	// transcriptsDir holds transcripts by claim.
	transcriptsDir = "transcripts"
	seatsDir       = "seats"
	machinesDir    = "machines"
	drillDir       = "drill"
	dockerDir      = "docker"
	flyDir         = "fly"
	snapshotFile   = "views.snapshot"
)

// Identity is what a data directory is, made once and kept for ever.
type Identity struct {
	Instance events.InstanceID `json:"instanceId"`
	Space    events.Space      `json:"space"`
	// Caller is the one caller of open mode (decision 21).
	Caller events.Caller `json:"caller"`
	// Host and Path tell a data directory from a copy of it.
	Host string `json:"host"`
	Path string `json:"path"`
}

// DataDir is a locked data directory.
type DataDir struct {
	Path     string
	Identity Identity
	Key      nkeys.KeyPair // signs this instance's checkpoints
	Fresh    bool          // nothing was ever written to it

	lock *durable.Lock
}

// OpenDataDir locks and reads a data directory, and makes it if it is not
// there. An empty space is that of the directory, or "default". One that is in use is refused with detail berth.data-in-use, one
// that can't be written or is a copy with berth.bad-config.
func OpenDataDir(path string, space events.Space) (*DataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, badConfig("data directory: %s", err)
	}
	if err := durable.MakeDir(path); err != nil {
		return nil, badConfig("data directory %s can't be made: %s", path, err)
	}
	lock, err := durable.TryLock(filepath.Join(path, lockFile))
	if fault.CodeOf(err) == fault.Conflict {
		return nil, fault.New(fault.Conflict, "data directory %s is in use by another manager", path).
			WithHint("stop that manager, or give this one a directory of its own with --data").WithDetail(fault.DetailDataInUse)
	}
	if err != nil {
		return nil, badConfig("data directory %s can't be locked: %s", path, err)
	}
	if err := durable.Sweep(path); err != nil {
		lock.Unlock()
		return nil, badConfig("data directory %s can't be written: %s", path, err)
	}
	d := &DataDir{Path: path, lock: lock}
	if err := d.load(space); err != nil {
		lock.Unlock()
		return nil, err
	}
	return d, nil
}

func (d *DataDir) load(space events.Space) error {
	raw, err := os.ReadFile(d.File(identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		for _, name := range []string{natsDir, checkpoint.FileName} {
			if d.has(name) {
				// A new identity would hold none of the seats of the old one.
				return badConfig("%s is missing, and %s is there: this was a manager's data directory", d.File(identityFile), name).
					WithHint("restore %s from a backup, or take an empty directory", identityFile)
			}
		}
		return d.create(orElse(space, "default"))
	}
	if err != nil {
		return badConfig("reading %s: %s", d.File(identityFile), err)
	}
	if err := d.Identity.parse(raw); err != nil {
		return badConfig("%s is damaged: %s", d.File(identityFile), events.Scrub(err.Error())).WithHint("restore it from a backup; nothing was changed")
	}
	if space != "" && d.Identity.Space != space {
		return badConfig("data directory %s belongs to space %s, not %s", d.Path, d.Identity.Space, space)
	}
	if d.Identity.Path != d.Path {
		return badConfig("data directory %s says that it is %s: it was copied or moved, and two managers with one identity would fight", d.Path, d.Identity.Path).
			WithHint("if the original is gone for good, correct the path in %s", d.File(identityFile))
	}
	seed, err := os.ReadFile(d.File(seedFile))
	if err != nil {
		return badConfig("reading the instance's key: %s", err)
	}
	if d.Key, err = nkeys.FromSeed(seed); err != nil {
		return badConfig("%s is not an nkey seed", d.File(seedFile))
	}
	return nil
}

// parse reads an identity that is whole.
func (i *Identity) parse(raw []byte) error {
	if err := json.Unmarshal(raw, i); err != nil {
		return err
	}
	_, instance := events.ParseInstanceID(string(i.Instance))
	_, owner := events.ParseOwner(string(i.Caller.Owner))
	_, uid := events.ParseUID(string(i.Caller.UID))
	return errors.Join(instance, owner, uid)
}

// create makes an identity. The key is written first, so that an identity
// that can be read is always whole.
func (d *DataDir) create(space events.Space) error {
	d.Fresh = true
	key, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	seed, err := key.Seed()
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	random := ids.New()
	d.Key = key
	d.Identity = Identity{
		Instance: events.InstanceID(random.Token()), Space: space, Host: host, Path: d.Path,
		Caller: events.Caller{Owner: "local", Actor: "operator", UID: events.UID(random.Token())},
	}
	raw, err := json.MarshalIndent(d.Identity, "", "  ")
	if err != nil {
		return err
	}
	for _, w := range []struct {
		name string
		data []byte
	}{{seedFile, seed}, {identityFile, raw}} {
		if err := durable.WriteFile(d.File(w.name), w.data, 0o600); err != nil {
			return badConfig("data directory %s can't be written: %s", d.Path, err)
		}
	}
	return nil
}

// File is a path inside the directory.
func (d *DataDir) File(name string) string { return filepath.Join(d.Path, name) }

// has says that name is there.
func (d *DataDir) has(name string) bool {
	_, err := os.Stat(d.File(name))
	return err == nil
}

// Close releases the lock.
func (d *DataDir) Close() error { return d.lock.Unlock() }

// Endpoint tells clients where a manager is; it is written when it serves.
type Endpoint struct {
	NATS     string            `json:"nats"`
	HTTP     string            `json:"http"`
	Instance events.InstanceID `json:"instanceId"`
	PID      int               `json:"pid"`
	Space    events.Space      `json:"space"`
	Caller   events.Caller     `json:"caller"`
}

// ReadEndpoint reads the endpoint file of a data directory. A manager that
// ended may have left one behind.
func ReadEndpoint(dir string) (Endpoint, error) {
	var e Endpoint
	raw, err := os.ReadFile(filepath.Join(dir, endpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return e, fault.New(fault.Unavailable, "no manager has its data in %s", dir).WithOutcome(fault.NotExecuted).WithHint("start one: berth up")
	}
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err == nil {
		err = e.check()
	}
	if err != nil {
		return Endpoint{}, fault.New(fault.Unavailable, "%s can't be read: %s", filepath.Join(dir, endpointFile), events.Scrub(err.Error())).
			WithOutcome(fault.NotExecuted).WithHint("a manager writes it when it starts: start it again, or say where it is with --server")
	}
	return e, nil
}

// check refuses an endpoint that is not whole: a client must not ask in the
// name of nobody.
func (e Endpoint) check() error {
	if e.NATS == "" {
		return errors.New("it names no server")
	}
	_, space := events.ParseSpace(string(e.Space))
	_, instance := events.ParseInstanceID(string(e.Instance))
	_, owner := events.ParseOwner(string(e.Caller.Owner))
	_, actor := events.ParseActor(string(e.Caller.Actor))
	_, uid := events.ParseUID(string(e.Caller.UID))
	return errors.Join(space, instance, owner, actor, uid)
}

func badConfig(format string, args ...any) *fault.Error {
	return fault.New(fault.BadRequest, format, args...).WithDetail(fault.DetailBadConfig)
}
