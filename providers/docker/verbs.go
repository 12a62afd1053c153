package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"strings"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/adapter"
	"berth/providers/kept"
)

// Limits of staged material.
const (
	MaxMaterial     = 64
	MaxMaterialSize = 1 << 20
)

// Carry carries out one verb; each sends one request that changes something.
func (b *backend) Carry(ctx context.Context, c *adapter.Call) (events.Facts, error) {
	if c.Op.Verb == events.VerbReserve {
		return b.reserve(ctx, c)
	}
	e, before, err := b.inspect(ctx, c.Record)
	if c.Op.Verb == events.VerbDestroy && fault.CodeOf(err) == fault.NotFound {
		return events.Facts{State: events.StateAbsent}, nil // the same engine has no such id any more
	}
	if err != nil {
		return events.Facts{}, notSent(err)
	}
	if err := c.Note(before.before()); err != nil {
		return events.Facts{}, err
	}
	id := before.ID
	switch c.Op.Verb {
	case events.VerbProvision:
		err = b.stage(ctx, e, id, c)
	case events.VerbStart:
		err = b.c.send(ctx, http.MethodPost, e.path("/containers/%s/start", id), nil, nil)
		if err != nil && fault.From(err).Outcome != fault.NotExecuted {
			if why, ferr := b.Fence(ctx, c); ferr == nil {
				err = fault.New(fault.FailedPrecondition, "environment %s: %s", c.Op.Environment, why)
			}
		}
	case events.VerbPause:
		err = b.c.send(ctx, http.MethodPost, e.path("/containers/%s/pause", id), nil, nil)
	case events.VerbResume:
		err = b.c.send(ctx, http.MethodPost, e.path("/containers/%s/unpause", id), nil, nil)
	case events.VerbStop:
		if before.State.Status == "created" {
			err = fault.New(fault.FailedPrecondition, "environment %s was never started; destroy it", c.Op.Environment)
			break
		}
		var wait string
		if wait, err = grace(c.Op.Arguments); err == nil {
			err = b.c.send(ctx, http.MethodPost, e.path("/containers/%s/stop", id)+"?t="+wait, nil, nil)
		}
	case events.VerbDestroy:
		err = b.c.send(ctx, http.MethodDelete, e.path("/containers/%s", id)+"?force=true&v=true", nil, nil)
	default:
		return events.Facts{}, fault.New(fault.Unimplemented, "the docker provider has no verb %q (R89)", c.Op.Verb)
	}
	if err != nil {
		return events.Facts{}, err
	}
	f, proved, evidence, err := b.Landed(ctx, c)
	if err == nil && !proved {
		err = fault.New(fault.Unavailable, "the Docker Engine accepted %s, but %s", c.Op.Verb, evidence)
	}
	if err != nil {
		// It was accepted: what can't be seen now is unknown, not refused.
		return f, kept.Seen(string(c.Op.Verb), c.Op.Environment, err).WithOutcome(fault.Unknown)
	}
	return f, nil
}

func notSent(err error) error {
	return fault.From(err).WithOutcome(fault.NotExecuted)
}

// reserve creates the container. Its id is taken from the engine's answer to
// this request and from nowhere else (R92).
func (b *backend) reserve(ctx context.Context, c *adapter.Call) (events.Facts, error) {
	e, err := b.c.engine(ctx)
	if err != nil {
		return events.Facts{}, notSent(err)
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	c.Record.Keep[keepEngine], c.Record.Keep[keepNonce], c.Record.Keep[keepName] = e.ID, hex.EncodeToString(nonce[:]), nameOf(c.Op.ID)
	req, err := createOf(c)
	if err != nil {
		return events.Facts{}, err
	}
	if err := checkReference(c.Record.Plan.Image); err != nil {
		return events.Facts{}, err
	}
	if err := c.Note(""); err != nil {
		return events.Facts{}, err
	}
	var made struct {
		ID string `json:"Id"`
	}
	if err := b.c.send(ctx, http.MethodPost, e.path("/containers/create")+"?name="+nameOf(c.Op.ID), req, &made); err != nil {
		return events.Facts{}, err
	}
	if !idRE.MatchString(made.ID) {
		return events.Facts{}, fault.New(fault.Unavailable, "the Docker Engine answered the create without a full container id")
	}
	f := events.Facts{Ref: refPrefix + made.ID, State: events.StateReserved, Network: req.HostConfig.NetworkMode}
	return f, nil
}

// stage puts home, material and a mark of this operation into the container,
// which has not started (R54, R56). The mark is last: with it, all is there.
func (b *backend) stage(ctx context.Context, e engine, id string, c *adapter.Call) error {
	if len(c.Op.Material) > MaxMaterial {
		return fault.New(fault.ResourceExhausted, "%d pieces of material, at most %d are staged", len(c.Op.Material), MaxMaterial)
	}
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	dir := func(name string, mode int64) error {
		return tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode})
	}
	file := func(name string, mode int64, data []byte) error {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err := tw.Write(data)
		return err
	}
	// The image decides which user the seat is; nobody else is in there.
	err := dir(Home[1:]+"/", 0o777)
	if err == nil {
		err = dir(MaterialDir[1:]+"/", 0o755)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Op.Material)) {
		data := c.Op.Material[name]
		if _, bad := events.ParseActor(name); bad != nil || len(data) > MaxMaterialSize {
			return fault.New(fault.BadRequest, "material %q: a plain name and at most %d bytes", events.Scrub(name), MaxMaterialSize)
		}
		if err == nil {
			err = file(MaterialDir[1:]+"/"+name, 0o444, data)
		}
	}
	if err == nil {
		err = file(markOf(c)[1:], 0o444, nil)
	}
	if err == nil {
		err = tw.Close()
	}
	if err != nil {
		return fault.New(fault.Internal, "packing the material: %s", err).WithOutcome(fault.NotExecuted)
	}
	return b.c.sendBody(ctx, http.MethodPut, e.path("/containers/%s/archive", id)+"?path=/", &buf, "application/x-tar", nil)
}

func markOf(c *adapter.Call) string { return "/run/berth/provisioned-" + string(c.Op.ID) }

// Landed looks at the container for the effect of an operation.
func (b *backend) Landed(ctx context.Context, c *adapter.Call) (events.Facts, bool, string, error) {
	if c.Op.Verb == events.VerbReserve {
		return b.landedCreate(ctx, c)
	}
	e, now, err := b.inspect(ctx, c.Record)
	if fault.CodeOf(err) == fault.NotFound && c.Op.Verb == events.VerbDestroy {
		return events.Facts{State: events.StateAbsent}, true, "the engine that made the container has no such id any more", nil
	}
	if err != nil {
		return events.Facts{}, false, "", err
	}
	before := ""
	if en := c.Entry(); en != nil {
		before = en.Before
	}
	f := now.facts(c.Record.Ref)
	proved := false
	switch c.Op.Verb {
	case events.VerbProvision:
		var r interface{ Close() error }
		r, err = b.c.stream(ctx, e.path("/containers/%s/archive", now.ID)+"?path="+markOf(c))
		if err == nil {
			proved = r.Close() == nil
		} else if fault.CodeOf(err) != fault.NotFound {
			return f, false, "", err
		}
	case events.VerbStart:
		proved = now.started() && now.State.StartedAt.UTC().String() != strings.TrimSuffix(before, failedBefore)
	case events.VerbPause:
		proved = f.State == events.StatePaused
	case events.VerbResume:
		proved = f.State == events.StateRunning
	case events.VerbStop:
		proved = f.State == events.StateStopped
	}
	return f, proved, "the container is " + string(f.State), nil
}

// landedCreate never proves: a name that is taken is evidence for a person,
// and no container is adopted by its name (R92).
func (b *backend) landedCreate(ctx context.Context, c *adapter.Call) (events.Facts, bool, string, error) {
	e, err := b.same(ctx, c.Record)
	if err != nil {
		return events.Facts{}, false, "", err
	}
	var found container
	err = b.c.get(ctx, e.path("/containers/%s/json", nameOf(c.Op.ID)), &found)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return events.Facts{}, false, "no container has its name now, which does not say that none will", nil
	case err != nil:
		return events.Facts{}, false, "", err
	case !idRE.MatchString(found.ID):
		return events.Facts{}, false, "something without a full id has its name", nil
	}
	return events.Facts{}, false, "container " + found.ID[:12] + " has its name and is not adopted; remove it by hand, then the name can be fenced", nil
}

// Fence takes the name of a create that was not answered, with a container
// that is never started: the engine gives a name once, so that the create can
// no longer land. Other requests have no name to take.
func (b *backend) Fence(ctx context.Context, c *adapter.Call) (string, error) {
	if c.Op.Verb == events.VerbStart {
		if _, now, err := b.inspect(ctx, c.Record); err == nil && now.failedStart(c.Entry().Before) {
			return "the engine tried the start, and it failed: " + events.Scrub(clip(now.State.Error)), nil
		}
	}
	if c.Op.Verb != events.VerbReserve {
		return "", fault.New(fault.Unimplemented, "the Docker Engine has no fence for a %s that is on its way; it is settled when its effect is seen", c.Op.Verb)
	}
	e, err := b.same(ctx, c.Record)
	if err != nil {
		return "", err
	}
	tomb := createRequest{Image: c.Record.Plan.Image.Reference, Entrypoint: []string{"/never-started"}, Labels: labels(c),
		HostConfig: hostConfig{NetworkMode: "none", RestartPolicy: map[string]string{"Name": "no"}}}
	tomb.Labels[LabelTombstone] = "true"
	var made struct {
		ID string `json:"Id"`
	}
	if err := b.c.send(ctx, http.MethodPost, e.path("/containers/create")+"?name="+nameOf(c.Op.ID), tomb, &made); err != nil {
		return b.fenced(ctx, e, c, err)
	}
	if !idRE.MatchString(made.ID) {
		return "", fault.New(fault.Unavailable, "the Docker Engine answered the tombstone without a full container id")
	}
	return "container " + made.ID[:12] + " holds its name as a tombstone", nil
}

func clip(s string) string { return s[:min(len(s), maxMessage)] }

// fenced looks who has the name. A tombstone of an attempt whose answer was
// lost is as good as another: the create would have no such label.
func (b *backend) fenced(ctx context.Context, e engine, c *adapter.Call, err error) (string, error) {
	if fault.CodeOf(err) != fault.Conflict {
		return "", err
	}
	var found container
	if err := b.c.get(ctx, e.path("/containers/%s/json", nameOf(c.Op.ID)), &found); err != nil {
		return "", err
	}
	if found.Config.Labels[LabelTombstone] == "true" && found.Config.Labels[LabelNonce] == c.Record.Keep[keepNonce] && idRE.MatchString(found.ID) {
		return "container " + found.ID[:12] + " holds its name as a tombstone", nil
	}
	return "", fault.New(fault.FailedPrecondition, "a container named %s is there and is not adopted", nameOf(c.Op.ID)).
		WithHint("look at it with `docker inspect %s`; once it is removed with `docker rm -f`, the operation settles by itself", nameOf(c.Op.ID))
}

// List lists containers with our label, without tombstones.
func (b *backend) List(ctx context.Context) ([]providers.Listed, error) {
	e, err := b.c.engine(ctx)
	if err != nil {
		return nil, err
	}
	var cs []struct {
		ID     string `json:"Id"`
		State  string
		Labels map[string]string
	}
	if err := b.c.get(ctx, e.path("/containers/json")+"?all=true&filters=%7B%22label%22%3A%5B%22"+LabelEnvironment+"%22%5D%7D", &cs); err != nil {
		return nil, err
	}
	var out []providers.Listed
	for _, c := range cs {
		id, err := events.ParseEnvironmentID(c.Labels[LabelEnvironment])
		if err != nil || c.Labels[LabelTombstone] != "" || !idRE.MatchString(c.ID) {
			continue
		}
		var full container
		full.State.Status = c.State
		out = append(out, providers.Listed{Environment: id, Ref: refPrefix + c.ID, State: full.facts("").State})
	}
	return out, nil
}
