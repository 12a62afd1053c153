package fly

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers/adapter"
)

// Metadata of our machines; all public text.
const (
	metaEnvironment = "berth_environment"
	metaOperation   = "berth_operation"
	metaNonce       = "berth_nonce"
)

const keepNonce = "nonce"

// leaseTTL is how long a lease lasts when its release is lost, in seconds.
const leaseTTL = 60

// maxWaits bounds how often a wait of waitSeconds that ran out is asked again.
const (
	waitSeconds = "30"
	maxWaits    = 12
)

var idRE = regexp.MustCompile(`^[0-9a-z]{6,32}$`)

type guest struct {
	CPUs     int64  `json:"cpus"`
	MemoryMB int64  `json:"memory_mb"`
	CPUKind  string `json:"cpu_kind"`
}

type config struct {
	Image       string            `json:"image,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Guest       *guest            `json:"guest,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Restart     map[string]string `json:"restart,omitempty"`
	AutoDestroy bool              `json:"auto_destroy"`
	Init        map[string]any    `json:"init,omitempty"`
}

type createRequest struct {
	Name                    string `json:"name"`
	Region                  string `json:"region,omitempty"`
	SkipLaunch              bool   `json:"skip_launch"`
	SkipServiceRegistration bool   `json:"skip_service_registration"`
	Config                  config `json:"config"`
}

type machine struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	State      string    `json:"state"`
	InstanceID string    `json:"instance_id"`
	HostStatus string    `json:"host_status"`
	UpdatedAt  time.Time `json:"updated_at"`
	Config     config    `json:"config"`
}

// nameOf is the machine's name, made of the operation that creates it.
func nameOf(op events.OperationID) string {
	sum := sha256.Sum256([]byte(op))
	return "berth-" + hex.EncodeToString(sum[:16])
}

func (b *backend) ref(id string) string { return "fly:" + b.cfg.App + ":" + id }

func (b *backend) idOf(r *adapter.Record) (string, error) {
	id, ok := strings.CutPrefix(r.Ref, b.ref(""))
	if !ok || !idRE.MatchString(id) {
		return "", fault.New(fault.FailedPrecondition, "environment %s is %s, which is not in app %s", r.Environment, r.Ref, b.cfg.App).
			WithHint("start the manager with the app that it was made in")
	}
	return id, nil
}

// inspect reads the machine by its id and proves that it is ours.
func (b *backend) inspect(ctx context.Context, r *adapter.Record) (machine, error) {
	var m machine
	id, err := b.idOf(r)
	if err != nil {
		return m, err
	}
	if err := b.c.get(ctx, "/machines/"+id, &m); err != nil {
		return m, err
	}
	if m.ID != id || m.Config.Metadata[metaEnvironment] != string(r.Environment) || m.Config.Metadata[metaNonce] != r.Keep[keepNonce] {
		return m, fault.New(fault.Conflict, "machine %s is not the one that was made for environment %s", id, r.Environment)
	}
	return m, nil
}

// facts of a machine. Where Fly can't reach the host, the state that it
// remembers says nothing of now.
func (m machine) facts() events.Facts {
	f := events.Facts{Incarnation: m.InstanceID, State: events.StateUnknown, Network: defaultNetwork}
	if m.HostStatus != "" && m.HostStatus != "ok" {
		return f
	}
	switch m.State {
	case "created":
		f.State = events.StateReserved
	case "creating", "starting":
		f.State = events.StateCreating
	case "started":
		f.State = events.StateRunning
	case "suspended":
		f.State = events.StatePaused
	case "stopped":
		f.State = events.StateStopped
		if !m.UpdatedAt.IsZero() {
			at := events.MillisUTC(m.UpdatedAt)
			f.StoppedAt = &at
		}
	case "failed", "launch_failed":
		f.State = events.StateFailed
	case "destroyed":
		f.State = events.StateAbsent
	}
	return f
}

// withLease holds the machine's lease while change is sent. Losing the lease's
// own answer means that nothing was sent; the lease lapses by itself. A
// version in the lease that is not the one looked at is somebody else's
// change, and a refusal.
func (b *backend) withLease(ctx context.Context, m machine, op events.OperationID, change func(nonce string) error) error {
	var lease struct {
		Data struct {
			Nonce   string `json:"nonce"`
			Version string `json:"version"`
		} `json:"data"`
	}
	err := b.c.do(ctx, request{method: http.MethodPost, path: "/machines/" + m.ID + "/lease", out: &lease,
		in: map[string]any{"ttl": leaseTTL, "description": "berth " + string(op)}})
	if err != nil {
		return notSent(err)
	}
	nonce := lease.Data.Nonce
	if nonce == "" || len(nonce) > 128 || strings.ContainsFunc(nonce, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fault.New(fault.Unavailable, "the Fly Machines API answered a lease without a nonce").WithOutcome(fault.NotExecuted)
	}
	release := func() {
		// Best effort: it lapses after leaseTTL anyway.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = b.c.do(end, request{method: http.MethodDelete, path: "/machines/" + m.ID + "/lease", nonce: nonce})
	}
	defer release()
	if v := lease.Data.Version; v != "" && v != m.InstanceID {
		return fault.New(fault.Conflict, "machine %s was changed by somebody else: version %s, not %s", m.ID, events.Scrub(v), events.Scrub(m.InstanceID)).WithOutcome(fault.NotExecuted)
	}
	return change(nonce)
}

// wait blocks at the API until the machine has a state. It only reads, so a
// wait that ran out is asked again, a bounded number of times.
func (b *backend) wait(ctx context.Context, m machine, state string) error {
	for i := 0; ; i++ {
		err := b.c.get(ctx, "/machines/"+m.ID+"/wait?state="+state+"&timeout="+waitSeconds+"&instance_id="+m.InstanceID, nil)
		if fault.CodeOf(err) != fault.DeadlineExceeded || ctx.Err() != nil || i == maxWaits {
			return err
		}
	}
}
