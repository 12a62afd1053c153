package docker

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/apd/v3"

	"berth/events"
	"berth/events/fault"
	"berth/providers/adapter"
)

// Labels of our containers; all public text.
const (
	LabelEnvironment = "berth.environment"
	LabelOperation   = "berth.operation"
	LabelNonce       = "berth.nonce"
	LabelAlias       = "berth.alias"
	LabelTombstone   = "berth.tombstone"
)

// Limits and places of a seat.
const (
	MaxPIDs     = 4096
	Home        = "/home/seat"
	MaterialDir = "/run/berth/material"
	maxLogSize  = "64m"
)

// What the record keeps beside the reference.
const (
	keepEngine = "engine"
	keepNonce  = "nonce"
	keepName   = "name"
)

const refPrefix = "docker:"

var idRE = regexp.MustCompile(`^[0-9a-f]{64}$`)

// nameOf is the container's name: the id of the operation that makes it, so
// that the engine itself lets no second container of that operation be.
func nameOf(op events.OperationID) string { return "berth-" + string(op) }

type hostConfig struct {
	Memory        int64             `json:"Memory,omitempty"`
	MemorySwap    int64             `json:"MemorySwap,omitempty"`
	NanoCPUs      int64             `json:"NanoCpus,omitempty"`
	PidsLimit     int64             `json:"PidsLimit,omitempty"`
	NetworkMode   string            `json:"NetworkMode"`
	SecurityOpt   []string          `json:"SecurityOpt,omitempty"`
	RestartPolicy map[string]string `json:"RestartPolicy,omitempty"`
	LogConfig     map[string]any    `json:"LogConfig,omitempty"`
}

type createRequest struct {
	Image, Hostname string
	Entrypoint      []string
	Env             []string
	Tty             bool
	Labels          map[string]string
	HostConfig      hostConfig
}

type container struct {
	ID     string `json:"Id"`
	Name   string
	Config struct{ Labels map[string]string }
	State  struct {
		Status, Error         string
		ExitCode              int
		StartedAt, FinishedAt time.Time
	}
	HostConfig struct{ NetworkMode string }
}

// createOf is the whole request; nothing in it is secret (R55).
func createOf(c *adapter.Call) (createRequest, error) {
	p := c.Record.Plan
	nano, err := nanoCPUs(p.Resources.CPUs)
	if err != nil {
		return createRequest{}, err
	}
	net, err := network(p)
	if err != nil {
		return createRequest{}, err
	}
	if len(p.Command) == 0 || p.Command[0] == "" {
		return createRequest{}, fault.New(fault.BadRequest, "environment %s has no command to start", c.Op.Environment)
	}
	bytes := p.Resources.MemoryMiB << 20
	return createRequest{
		Image: p.Image.Reference, Hostname: string(c.Op.Alias), Entrypoint: p.Command, Tty: true,
		Env: []string{"HOME=" + Home, "TERM=xterm-256color", events.EnvMaterial + "=" + MaterialDir,
			events.EnvEnvironment + "=" + string(c.Op.Environment), events.EnvSeat + "=" + string(c.Op.Alias)},
		Labels: labels(c),
		HostConfig: hostConfig{
			Memory: bytes, MemorySwap: bytes, NanoCPUs: nano, PidsLimit: MaxPIDs, NetworkMode: net,
			SecurityOpt:   []string{"no-new-privileges"},
			RestartPolicy: map[string]string{"Name": "no"},
			LogConfig:     map[string]any{"Type": "json-file", "Config": map[string]string{"max-size": maxLogSize, "max-file": "1"}},
		},
	}, nil
}

func labels(c *adapter.Call) map[string]string {
	return map[string]string{LabelEnvironment: string(c.Op.Environment), LabelOperation: string(c.Op.ID),
		LabelNonce: c.Record.Keep[keepNonce], LabelAlias: string(c.Op.Alias)}
}

// nanoCPUs is exact, or refused: the engine counts in billionths.
func nanoCPUs(q events.Quantity) (int64, error) {
	if q.IsZero() {
		return 0, nil
	}
	d, _, err := apd.NewFromString(q.String())
	if err == nil {
		d.Exponent += 9
		var n int64
		d.Reduce(d)
		if n, err = d.Int64(); err == nil && n > 0 {
			return n, nil
		}
	}
	return 0, fault.New(fault.BadRequest, "%s CPUs: the Docker Engine takes whole billionths above zero", q)
}

// network is bridge, the engine's default (R22), or none.
func network(p events.Plan) (string, error) {
	if p.Network == nil {
		return "bridge", nil
	}
	if *p.Network != "bridge" && *p.Network != "none" {
		return "", fault.New(fault.BadRequest, "network %q: the docker provider knows bridge and none", events.Scrub(*p.Network))
	}
	return *p.Network, nil
}

// idOf is the full container id of a record's reference.
func idOf(r *adapter.Record) (string, error) {
	id, ok := strings.CutPrefix(r.Ref, refPrefix)
	if !ok || !idRE.MatchString(id) {
		return "", fault.New(fault.Internal, "the reference of environment %s is no container id", r.Environment)
	}
	return id, nil
}

// same asks whether the engine that answers is the one that made the
// container; another one's 404 says nothing.
func (b *backend) same(ctx context.Context, r *adapter.Record) (engine, error) {
	e, err := b.c.engine(ctx)
	if err != nil {
		return e, err
	}
	if e.ID != r.Keep[keepEngine] {
		return e, fault.New(fault.FailedPrecondition, "environment %s was made by engine %s, and %s answers on %s now",
			r.Environment, r.Keep[keepEngine], e.ID, b.c.socket).WithHint("point --docker at the socket of that engine")
	}
	return e, nil
}

// inspect looks at the container by its full id and proves that it is ours.
func (b *backend) inspect(ctx context.Context, r *adapter.Record) (engine, container, error) {
	var c container
	id, err := idOf(r)
	if err != nil {
		return engine{}, c, err
	}
	e, err := b.same(ctx, r)
	if err != nil {
		return e, c, err
	}
	if err := b.c.get(ctx, e.path("/containers/%s/json", id), &c); err != nil {
		return e, c, err
	}
	if c.ID != id || c.Config.Labels[LabelEnvironment] != string(r.Environment) || c.Config.Labels[LabelNonce] != r.Keep[keepNonce] {
		return e, c, fault.New(fault.Conflict, "container %s is not the one that was made for environment %s", id[:12], r.Environment)
	}
	return e, c, nil
}

// facts of a container. The incarnation is its start: another start by
// anybody is another one.
func (c container) facts(ref string) events.Facts {
	f := events.Facts{Ref: ref, Network: c.HostConfig.NetworkMode, State: events.StateUnknown}
	if c.started() {
		f.Incarnation = c.State.StartedAt.UTC().Format(time.RFC3339Nano)
	}
	switch c.State.Status {
	case "created":
		f.State = events.StateReserved
	case "running", "restarting":
		f.State = events.StateRunning
	case "paused":
		f.State = events.StatePaused
	case "exited":
		f.State = events.StateStopped
		code, at := c.State.ExitCode, events.MillisUTC(c.State.FinishedAt)
		f.ExitCode, f.StoppedAt = &code, &at
	case "dead":
		f.State = events.StateFailed
	}
	return f
}

// before is what the journal notes ahead of a change.
func (c container) before() string {
	if c.State.Error != "" {
		return c.State.StartedAt.UTC().String() + failedBefore
	}
	return c.State.StartedAt.UTC().String()
}

// failedBefore marks a container whose state keeps an older failure.
const failedBefore = " failed"

// failedStart says that the one start that was sent was tried and failed: the
// engine keeps that in the state, and it had no such failure before.
func (c container) failedStart(before string) bool {
	return c.State.Error != "" && before == c.State.StartedAt.UTC().String() && (c.State.Status == "created" || c.State.Status == "exited")
}

func (c container) started() bool { return c.State.StartedAt.Year() > 1 }

// grace is the stop's, in whole seconds, rounded up.
func grace(a events.Arguments) (string, error) {
	if a.Grace == "" {
		return "10", nil
	}
	d, err := time.ParseDuration(a.Grace)
	if err != nil || d < 0 || d > time.Hour {
		return "", fault.New(fault.BadRequest, "grace %q: a duration from 0s to 1h", events.Scrub(a.Grace))
	}
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10), nil
}

var verbs = []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart, events.VerbPause, events.VerbResume,
	events.VerbCheckpoint, events.VerbExport, events.VerbDeleteFile, events.VerbStop, events.VerbDestroy}

// Supports says which verbs there are: everything but extend and restore, since
// the engine has no deadlines and puts no files back in place.
func (b *backend) Supports(v events.Verb) bool { return slices.Contains(verbs, v) }
