package fly

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/adapter"
)

// Name is the name under which the adapter registers; DefaultBaseURL is the
// public API.
const (
	Name           = "fly"
	DefaultBaseURL = "https://api.machines.dev/v1"
	defaultNetwork = "app"
)

// What this manager lets itself use in one app if nothing else is said. Fly
// tells its capacity only by refusing a create.
const (
	DefaultSlots     = 16
	DefaultCPUs      = 16
	DefaultMemoryMiB = 32 << 10
	MaxSlots         = 1000
)

// The options that a plan may carry (R88).
const (
	OptionCPUKind = "cpu-kind" // shared (the default) or performance
	OptionCapture = "capture"  // the directory that a checkpoint copies; /workspace
)

// Config is what an adapter is made with.
type Config struct {
	// Dir holds the journal and what was captured: absolute, and of one
	// process at a time.
	Dir string
	// App is the Fly app that the machines are in; it must be there.
	App string
	// TokenFile holds the API token, readable for its owner only.
	TokenFile string
	// Region is where machines are made; empty: Fly chooses.
	Region string
	// Slots, CPUs and MemoryMiB are what may be used; zero: the defaults.
	Slots, CPUs, MemoryMiB int64
	// BaseURL is the API's, https only unless Transport is given; empty:
	// DefaultBaseURL.
	BaseURL string
	// Transport replaces the HTTPS transport, in tests.
	Transport http.RoundTripper
	// Clock is the wall clock; nil: the system's.
	Clock func() time.Time
	// Pace is the least time between two calls of exec that read a checkpoint;
	// zero: what the public limit of one a second needs. Negative: none.
	Pace time.Duration
}

const defaultPace = 1100 * time.Millisecond

var labelRE = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`)

// Parse reads the value of --fly: app=NAME,token-file=PATH and optionally
// region, slots, cpus, memory-mib. A token itself is refused.
func Parse(s string) (Config, error) {
	var c Config
	number := func(name, v string, most int64, to *int64) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 1 || n > most {
			return fault.New(fault.BadRequest, "--fly: %s must be a number from 1 to %d", name, most)
		}
		*to = n
		return nil
	}
	for part := range strings.SplitSeq(s, ",") {
		k, v, _ := strings.Cut(part, "=")
		var err error
		switch k {
		case "app":
			c.App = v
		case "token-file":
			c.TokenFile = v
		case "region":
			c.Region = v
		case "slots":
			err = number(k, v, MaxSlots, &c.Slots)
		case "cpus":
			err = number(k, v, 1<<20, &c.CPUs)
		case "memory-mib":
			err = number(k, v, 1<<40, &c.MemoryMiB)
		default:
			err = fault.New(fault.BadRequest, "--fly: there is no such key; app, token-file, region, slots, cpus and memory-mib are known")
		}
		if err != nil {
			return c, err
		}
	}
	return c, c.check()
}

func (c Config) check() error {
	switch {
	case !labelRE.MatchString(c.App):
		return fault.New(fault.BadRequest, "--fly: app=NAME is missing or not a Fly app's name")
	case c.TokenFile == "":
		return fault.New(fault.BadRequest, "--fly: token-file=PATH is missing; a token is never given on the command line")
	case c.Region != "" && !labelRE.MatchString(c.Region):
		return fault.New(fault.BadRequest, "--fly: region must be a Fly region's code")
	}
	return nil
}

// Open makes the provider. It asks Fly nothing.
func Open(cfg Config) (*adapter.Driver, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	if u, err := url.Parse(cfg.BaseURL); err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "https" && cfg.Transport == nil {
		return nil, fault.New(fault.BadRequest, "the base URL of the Fly Machines API must be a plain https URL")
	}
	if abs, err := filepath.Abs(cfg.TokenFile); err == nil {
		cfg.TokenFile = abs
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	for _, d := range []struct {
		v *int64
		n int64
	}{{&cfg.Slots, DefaultSlots}, {&cfg.CPUs, DefaultCPUs}, {&cfg.MemoryMiB, DefaultMemoryMiB}} {
		if *d.v == 0 {
			*d.v = d.n
		}
	}
	if cfg.Pace == 0 {
		cfg.Pace = defaultPace
	}
	return adapter.Open(cfg.Dir, &backend{cfg: cfg, c: newClient(cfg)}, cfg.Clock)
}

// Bundle is how the provider is registered.
func Bundle(d *adapter.Driver) providers.Bundle {
	return providers.BundleOf(d, map[providers.Surface]string{
		providers.SurfacePause:   "a suspend keeps memory at best, and Fly does not say when it did not",
		providers.SurfaceExtend:  "Fly machines have no deadlines; the manager ends environments",
		providers.SurfaceRestore: "the root disk of a machine is not put back in place",
		providers.SurfaceLogs:    "the Machines API has no logs",
	})
}

type backend struct {
	cfg Config
	c   *client
}

// Name is "fly".
func (b *backend) Name() string { return Name }

// Close has nothing to release: no connection outlives its request.
func (b *backend) Close() error { return nil }

var verbs = []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart, events.VerbCheckpoint, events.VerbExport,
	events.VerbDeleteFile, events.VerbStop, events.VerbDestroy}

// Supports says which verbs there are.
func (b *backend) Supports(v events.Verb) bool { return slices.Contains(verbs, v) }

// app proves that the app is there and that the token may see it.
func (b *backend) app(ctx context.Context) error {
	var a struct{ Name string }
	if err := b.c.get(ctx, "", &a); err != nil {
		return err
	}
	if a.Name != b.cfg.App {
		return fault.New(fault.Unavailable, "the Fly Machines API answered for another app than %s", b.cfg.App)
	}
	return nil
}

// HostFacts says what this manager may use in the app; there is no host to
// look at. An app that can't be seen is an error (R82).
func (b *backend) HostFacts(ctx context.Context) (events.HostFacts, error) {
	if err := b.app(ctx); err != nil {
		return events.HostFacts{}, err
	}
	cpus, err := events.ParseQuantity(strconv.FormatInt(b.cfg.CPUs, 10))
	return events.HostFacts{
		Host: "fly-" + b.cfg.App, Architecture: "amd64", OS: "linux", Engines: []events.Engine{{Name: Name, Version: "machines-v1"}},
		Allocatable: events.HostCapacity{CPUs: cpus, MemoryMiB: b.cfg.MemoryMiB, Slots: b.cfg.Slots}, ObservedAt: events.MillisUTC(b.cfg.Clock()),
	}, err
}

var digestRE = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._:/-]{0,255}@(sha256:[0-9a-f]{64})$`)

// DescribeImage answers from the reference alone: the API has no images, so
// that one by digest is the only one that says what it is (R20).
func (b *backend) DescribeImage(_ context.Context, im events.Image) (events.ImageDescription, error) {
	m := digestRE.FindStringSubmatch(im.Reference)
	if im.Kind != "oci" || m == nil {
		return events.ImageDescription{}, fault.New(fault.BadRequest, "image %q: the fly provider runs oci images by digest, as REGISTRY/NAME@sha256:...", events.Scrub(im.Reference))
	}
	return events.ImageDescription{Image: im, Digest: m[1], Architecture: "amd64"}, nil
}

// guestOf is what Fly sells: whole CPUs, memory in steps of 256 MiB.
func guestOf(p events.Plan) (*guest, error) {
	g := &guest{CPUKind: "shared", MemoryMB: p.Resources.MemoryMiB}
	if k, ok := p.Options[OptionCPUKind]; ok {
		g.CPUKind = k
	}
	if g.CPUKind != "shared" && g.CPUKind != "performance" {
		return nil, fault.New(fault.BadRequest, "option %s=%s: shared or performance", OptionCPUKind, events.Scrub(g.CPUKind))
	}
	n, err := strconv.ParseInt(p.Resources.CPUs.String(), 10, 64)
	if err != nil || !slices.Contains([]int64{1, 2, 4, 8, 16}, n) {
		return nil, fault.New(fault.BadRequest, "%s CPUs: Fly machines have 1, 2, 4, 8 or 16", p.Resources.CPUs)
	}
	g.CPUs = n
	if g.MemoryMB < 256 || g.MemoryMB%256 != 0 || g.MemoryMB > 128<<10 {
		return nil, fault.New(fault.BadRequest, "%d MiB: Fly machines have 256 MiB to 128 GiB, in steps of 256 MiB", g.MemoryMB)
	}
	return g, nil
}

// captureDir is the directory that a checkpoint copies. It is never the home,
// which does not outlive a stop here (R10).
func captureDir(p events.Plan) (string, error) {
	dir, ok := p.Options[OptionCapture]
	if !ok {
		return "/workspace", nil
	}
	if !regexp.MustCompile(`^(/[A-Za-z0-9._-]+){1,8}$`).MatchString(dir) || path.Clean(dir) != dir || dir == home || strings.HasPrefix(dir, home+"/") {
		return "", fault.New(fault.BadRequest, "option %s=%s: an absolute, plain path that is not in %s", OptionCapture, events.Scrub(dir), home)
	}
	return dir, nil
}

// Preflight checks the app and what can be known of the plan (R1-R12).
// Capacity is told by a create only.
func (b *backend) Preflight(ctx context.Context, plan events.Plan) (providers.Preflight, error) {
	p := providers.Preflight{Network: defaultNetwork}
	check := func(name string, err error, ok string, args ...any) {
		detail := fmt.Sprintf(ok, args...)
		if err != nil {
			detail = fault.From(err).Message
		}
		p.Checks = append(p.Checks, events.Check{Name: name, OK: err == nil, Detail: detail})
	}
	refuse := func(bad bool, format string, args ...any) error {
		if !bad {
			return nil
		}
		return fault.New(fault.BadRequest, format, args...)
	}
	err := b.app(ctx)
	if ctx.Err() != nil {
		return p, ctx.Err()
	}
	check("app", err, "%s", b.cfg.App)
	_, err = b.DescribeImage(ctx, plan.Image)
	check("image", err, "by digest; Fly pulls it at the create")
	_, err = guestOf(plan)
	check("size", err, "capacity is known at the create only")
	check("network", refuse(plan.Network != nil && *plan.Network != defaultNetwork, "the fly provider knows the app's network, as %q", defaultNetwork), "the app's")
	check("disk", refuse(plan.Resources.DiskGiB != 0, "the size of a root disk can't be chosen"), "not chosen")
	_, err = captureDir(plan)
	check("capture", err, "copied by exec")
	var unknown []string
	for k := range plan.Options {
		if k != OptionCPUKind && k != OptionCapture {
			unknown = append(unknown, events.Scrub(k))
		}
	}
	slices.Sort(unknown)
	check("options", refuse(unknown != nil, "options %s: the fly provider knows %s and %s", strings.Join(unknown, " "), OptionCPUKind, OptionCapture), "known")
	check("command", refuse(len(plan.Command) == 0 || plan.Command[0] == "", "there is no command"), "its image needs sh, tar, base64, dd and sha256sum")
	p.Capabilities = events.Capabilities{ColdCheckpoint: true, Export: true}
	p.ProbedAt = events.MillisUTC(b.cfg.Clock())
	return p, nil
}
