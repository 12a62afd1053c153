package docker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/adapter"
)

// Name is the name under which the driver registers; DefaultSocket is where
// the engine usually listens.
const (
	Name          = "docker"
	DefaultSocket = "/var/run/docker.sock"
)

// Limits of the driver.
const (
	MaxSeats  = 1024 // offered as environment slots
	hostShare = 90   // percent of the engine's memory that seats may have
)

// Config is what a driver is made with.
type Config struct {
	// Dir holds the journal and what was captured: absolute, and of one
	// process at a time.
	Dir string
	// Socket is the engine's unix socket, an absolute path; empty:
	// DefaultSocket.
	Socket string
	// Clock is the wall clock; nil: the system's.
	Clock func() time.Time
}

// Open makes the provider. It asks the engine nothing: one that is down is
// reported by preflight.
func Open(cfg Config) (*adapter.Driver, error) {
	if cfg.Socket == "" {
		cfg.Socket = DefaultSocket
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if !filepath.IsAbs(cfg.Socket) {
		return nil, fault.New(fault.BadRequest, "docker socket %q: the absolute path of a unix socket", events.Scrub(cfg.Socket))
	}
	return adapter.Open(cfg.Dir, &backend{c: newClient(cfg.Socket), clock: cfg.Clock}, cfg.Clock)
}

// Bundle is how the provider is registered.
func Bundle(d *adapter.Driver) providers.Bundle {
	return providers.BundleOf(d, map[providers.Surface]string{
		providers.SurfaceExtend:  "the Docker Engine has no deadlines; the manager ends environments",
		providers.SurfaceRestore: "a container's files are not put back in place; spawn another one",
	})
}

type backend struct {
	c     *client
	clock func() time.Time
}

// Name is "docker".
func (b *backend) Name() string { return Name }

// Close has nothing to release: no connection outlives its request.
func (b *backend) Close() error { return nil }

func architecture(a string) string {
	switch a {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return a
}

// HostFacts are those of the engine's host. Whether KVM is usable was not
// tried, so it is not claimed (R79).
func (b *backend) HostFacts(ctx context.Context) (events.HostFacts, error) {
	e, err := b.c.engine(ctx)
	if err != nil {
		return events.HostFacts{}, err
	}
	cpus, err := events.ParseQuantity(strconv.Itoa(e.NCPU))
	if err != nil || e.NCPU < 1 || e.MemTotal < 1<<20 || e.Name == "" || e.OSType == "" {
		return events.HostFacts{}, fault.New(fault.Unavailable, "the Docker Engine does not say what its host has (R82)")
	}
	return events.HostFacts{
		Host: e.Name, Architecture: architecture(e.Architecture), OS: e.OSType,
		Engines:     []events.Engine{{Name: Name, Version: e.ServerVersion}},
		Allocatable: events.HostCapacity{CPUs: cpus, MemoryMiB: e.MemTotal >> 20 * hostShare / 100, Slots: MaxSeats},
		ObservedAt:  events.MillisUTC(b.clock()),
	}, nil
}

var digestRE = regexp.MustCompile(`^(?:[a-z0-9][a-zA-Z0-9._:/-]{0,255}@)?(sha256:[0-9a-f]{64})$`)

// checkReference wants a digest: a tag is another image tomorrow.
func checkReference(im events.Image) error {
	if im.Kind != "oci" {
		return fault.New(fault.BadRequest, "image kind %q: the docker provider runs oci images", events.Scrub(im.Kind))
	}
	if !digestRE.MatchString(im.Reference) {
		return fault.New(fault.BadRequest, "image %q: name it by digest, as NAME@sha256:... or sha256:...", events.Scrub(im.Reference)).
			WithHint("`docker images --digests` shows them")
	}
	return nil
}

// DescribeImage answers about an image that the engine has. It pulls nothing.
func (b *backend) DescribeImage(ctx context.Context, im events.Image) (events.ImageDescription, error) {
	if err := checkReference(im); err != nil {
		return events.ImageDescription{}, err
	}
	e, err := b.c.engine(ctx)
	if err != nil {
		return events.ImageDescription{}, err
	}
	var got struct {
		ID           string `json:"Id"`
		RepoDigests  []string
		Architecture string
		Os           string
	}
	err = b.c.get(ctx, e.path("/images/%s/json", im.Reference), &got)
	if fault.CodeOf(err) == fault.NotFound {
		return events.ImageDescription{}, fault.New(fault.NotFound, "the Docker Engine does not have image %s", im.Reference).
			WithHint("docker pull %s", im.Reference)
	}
	if err != nil {
		return events.ImageDescription{}, err
	}
	digest := digestRE.FindStringSubmatch(im.Reference)[1]
	has := got.ID == digest
	for _, d := range got.RepoDigests {
		has = has || strings.HasSuffix(d, "@"+digest)
	}
	if !has || got.Os != "linux" {
		return events.ImageDescription{}, fault.New(fault.FailedPrecondition, "the Docker Engine answered with another image than %s, or one that is not for linux", im.Reference)
	}
	return events.ImageDescription{Image: im, Digest: digest, Architecture: architecture(got.Architecture)}, nil
}

// Preflight probes what the plan would get from this engine (R1-R12).
func (b *backend) Preflight(ctx context.Context, plan events.Plan) (providers.Preflight, error) {
	p := providers.Preflight{}
	check := func(name string, ok bool, format string, args ...any) {
		p.Checks = append(p.Checks, events.Check{Name: name, OK: ok, Detail: fmt.Sprintf(format, args...)})
	}
	checkErr := func(name string, err error, ok string) {
		if err != nil {
			ok = fault.From(err).Message
		}
		check(name, err == nil, "%s", ok)
	}
	e, err := b.c.engine(ctx)
	if ctx.Err() != nil {
		return p, ctx.Err()
	}
	checkErr("engine", err, "Docker Engine "+e.ServerVersion)
	if err == nil {
		_, err = b.DescribeImage(ctx, plan.Image)
		checkErr("image", err, plan.Image.Reference)
		check("limits", e.MemoryLimit && e.CPUCfsQuota && e.PidsLimit, "the engine can limit memory %t, cpu %t, pids %t", e.MemoryLimit, e.CPUCfsQuota, e.PidsLimit)
	}
	_, err = nanoCPUs(plan.Resources.CPUs)
	checkErr("cpus", err, "exact")
	net, err := network(plan)
	p.Network = net
	checkErr("network", err, net)
	check("memory", plan.Resources.MemoryMiB >= 0 && plan.Resources.MemoryMiB < 1<<40, "%d MiB", plan.Resources.MemoryMiB)
	check("disk", plan.Resources.DiskGiB == 0, "the disk of a container is not bounded")
	check("options", len(plan.Options) == 0, "the docker provider knows no options")
	check("command", len(plan.Command) > 0 && plan.Command[0] != "", "looked up in the image at the start")
	p.Capabilities = events.Capabilities{ColdCheckpoint: true, PauseKeepsMemory: true, Export: true, DurableSeatHome: true}
	p.ProbedAt = events.MillisUTC(b.clock())
	return p, nil
}

// Observe inspects by full id. That the engine which made the container has
// none of that id proves that it is gone.
func (b *backend) Observe(ctx context.Context, r *adapter.Record) (events.Facts, error) {
	_, c, err := b.inspect(ctx, r)
	if fault.CodeOf(err) == fault.NotFound {
		return events.Facts{State: events.StateAbsent}, nil
	}
	if err != nil {
		return events.Facts{}, err
	}
	return c.facts(r.Ref), nil
}

// Capture streams the seat's home out of the container, paused meanwhile if it
// runs. A stream that is no whole tar is an error.
func (b *backend) Capture(ctx context.Context, c *adapter.Call, w io.Writer) (err error) {
	e, now, err := b.inspect(ctx, c.Record)
	if err != nil {
		return notSent(err)
	}
	if now.State.Status == "running" {
		if err := b.c.send(ctx, http.MethodPost, e.path("/containers/%s/pause", now.ID), nil, nil); err != nil {
			return err
		}
		defer func() {
			// Also when the capture was given up: the seat must go on.
			thaw, cancel := context.WithTimeout(context.WithoutCancel(ctx), thawLimit)
			defer cancel()
			uerr := b.c.send(thaw, http.MethodPost, e.path("/containers/%s/unpause", now.ID), nil, nil)
			if uerr != nil {
				err = fault.New(fault.Unavailable, "environment %s may still be paused after its capture; resume it", c.Op.Environment).WithOutcome(fault.Unknown)
			}
		}()
	}
	body, err := b.c.stream(ctx, e.path("/containers/%s/archive", now.ID)+"?path="+Home)
	if err != nil {
		return err
	}
	defer body.Close()
	tee := io.TeeReader(body, w)
	for tr := tar.NewReader(tee); ; {
		_, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the engine's archive is not whole: %w", err)
		}
	}
	_, err = io.Copy(io.Discard, tee)
	return err
}

// thawLimit is how long an unpause may take after the capture was given up.
const thawLimit = 30 * time.Second

// Logs streams the terminal's output. The engine counts no bytes, so that what
// is before the offset is read and thrown away.
func (b *backend) Logs(ctx context.Context, r *adapter.Record, from int64, follow bool, w io.Writer) (int64, error) {
	e, c, err := b.inspect(ctx, r)
	if err != nil {
		return from, err
	}
	if !c.started() {
		return from, nil
	}
	body, err := b.c.stream(ctx, e.path("/containers/%s/logs", c.ID)+"?stdout=true&stderr=true&follow="+strconv.FormatBool(follow && c.State.Status != "exited"))
	if err != nil {
		return from, err
	}
	defer body.Close()
	if _, err := io.CopyN(io.Discard, body, from); err != nil {
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return from, nil
		}
		return from, err
	}
	n, err := io.Copy(w, body)
	if ctx.Err() != nil && follow {
		err = nil
	}
	return from + n, err
}
