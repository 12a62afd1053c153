//go:build linux

package process

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/internal/acp"
	"berth/providers"
	"berth/providers/process/cgroup"
	"berth/providers/process/custodian"
	"berth/providers/process/image"
	"berth/providers/process/seatdir"
	"berth/providers/process/stage"
	"berth/providers/seat"
)

// The options that a plan may carry; everything else is refused (R88).
const (
	OptionIsolation = "isolation" // namespaces (the default) or none
	OptionLimits    = "limits"    // cgroups (the default) or none
)

// maxPIDs is how many processes and threads one seat may have.
const maxPIDs = 4096

// choice is what a plan selects.
type choice struct {
	isolated bool
	limited  bool
	network  string
	from     *providers.Origin
}

// choices reads a plan's options and network; null is the host's network (R22).
func choices(p events.Plan) (choice, error) {
	c := choice{isolated: true, limited: true, network: "host"}
	var err error
	if c.from, err = providers.OriginOf(p); err != nil {
		return c, err
	}
	for name, value := range p.Options {
		if name == providers.OptionFrom {
			continue
		}
		switch name + "=" + value {
		case OptionIsolation + "=none":
			c.isolated = false
		case OptionLimits + "=none":
			c.limited = false
		case OptionIsolation + "=namespaces", OptionLimits + "=cgroups":
		default:
			return c, fault.New(fault.BadRequest, "option %s=%s: the process provider knows isolation=namespaces|none, limits=cgroups|none and from=ENVIRONMENT/CHECKPOINT", events.Scrub(name), events.Scrub(value))
		}
	}
	if p.Network != nil {
		c.network = *p.Network
	}
	if c.network != "host" && c.network != "none" {
		return c, fault.New(fault.BadRequest, "network %q: the process provider knows host and none", events.Scrub(c.network))
	}
	return c, nil
}

// resolved is the network that a plan resolves to (R23); empty for one that the preflight
// refused.
func resolved(p events.Plan) string {
	c, err := choices(p)
	if err != nil {
		return ""
	}
	return c.network
}

// network is the network of a running seat: a namespace of its own has none
// but the loopback; else it is the one of its custodian, which is the host's.
func network(id seatdir.Ident) string {
	mine, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", id.Custodian.PID))
	if err != nil {
		return ""
	}
	its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", id.Seat.PID))
	switch {
	case err != nil:
		return ""
	case its == mine:
		return "host"
	}
	return "none"
}

// treeName is the name of an unpacked image in the images directory.
func treeName(j *seatdir.Journal) string {
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(j.Digest, ":", "-"), j.IDBase)
}

func limitsOf(r events.Resources) cgroup.Limits {
	return cgroup.Limits{CPUMicros: cgroup.CPUMicros(r.CPUs), MemoryBytes: r.MemoryMiB << 20, PIDs: maxPIDs}
}

// Preflight probes what the plan would get on this host (R1-R12). Every
// shortfall is a failed check or a false capability.
func (d *Driver) Preflight(ctx context.Context, plan events.Plan) (providers.Preflight, error) {
	p := providers.Preflight{ProbedAt: d.Now()}
	check := func(name string, ok bool, detail string, args ...any) {
		p.Checks = append(p.Checks, events.Check{Name: name, OK: ok, Detail: fmt.Sprintf(detail, args...)})
	}
	ch, err := choices(plan)
	if err != nil {
		check("options", false, "%s", fault.From(err).Message)
		return p, nil
	}
	p.Network = ch.network
	check("options", true, "isolation %t, limits %t, network %s", ch.isolated, ch.limited, ch.network)
	host := d.probeHost(ctx)
	if err := ctx.Err(); err != nil {
		return p, err
	}
	d.checkImage(ctx, plan, ch, check)
	if o := ch.from; o != nil {
		if err := seat.LoadKept(d.Seat(o.Environment), o.Checkpoint, new(seatdir.Kept)); err != nil {
			check("from", false, "%s", fault.From(err).Message)
		} else {
			check("from", true, "checkpoint %s", o.Checkpoint)
		}
	}
	checkIsolation(ch, host, check)
	checkLimits(plan.Resources, ch, host.Groups, check)
	if plan.Resources.DiskGiB > 0 {
		check("disk", false, "this provider can't bound the disk of a seat, and %d GiB were asked for", plan.Resources.DiskGiB)
	} else {
		check("disk", true, "not bounded")
	}
	p.Capabilities = events.Capabilities{
		Custody: true, ColdCheckpoint: true, Snapshot: !plan.Delegated, PauseKeepsMemory: true, Export: true, DurableSeatHome: true, Screen: custodian.HasTerminals(),
		Extend: events.ExtendLimit{StepMs: seat.ExtendStep.Milliseconds()},
	}
	return p, nil
}

type checker func(name string, ok bool, detail string, args ...any)

func (d *Driver) checkImage(ctx context.Context, plan events.Plan, ch choice, check checker) {
	desc, err := d.DescribeImage(ctx, plan.Image)
	switch {
	case err != nil:
		check("image", false, "%s", fault.From(err).Message)
		return
	case !ch.isolated && plan.Image.Kind != "template":
		check("image", false, "without isolation a seat runs in the host's own tree: take template %s", image.HostTemplate)
		return
	case desc.Digest != "":
		check("image", true, "%s", desc.Digest)
	default:
		check("image", true, "template %s", plan.Image.Reference)
	}
	switch {
	case len(plan.Command) == 0 || plan.Command[0] == "":
		check("command", false, "there is no command")
	case plan.Command[0] == acp.Program:
		check("command", true, "this program, with the agent that it is to talk to")
	case plan.Image.Kind != "template":
		check("command", true, "looked up in the image at the start")
	default:
		p, err := stage.LookPath(plan.Command[0], defaultPath)
		switch {
		case err != nil:
			check("command", false, "%s", events.Scrub(err.Error()))
		case ch.isolated && !shown(p, append([]string{d.Dir}, d.hide...)):
			check("command", false, "%s is outside of what template host shows: %s", events.Scrub(p), strings.Join(stage.Tops, ", "))
		default:
			check("command", true, "%s", events.Scrub(p))
		}
	}
}

// shown says whether an isolated seat sees a path of the host.
func shown(p string, hidden []string) bool {
	if !filepath.IsAbs(p) {
		return false
	}
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return false
	}
	for _, h := range hidden {
		if strings.HasPrefix(real+"/", strings.TrimSuffix(h, "/")+"/") {
			return false
		}
	}
	for _, q := range []string{filepath.Clean(p), real} {
		if top, _, _ := strings.Cut(q[1:], "/"); !slices.Contains(stage.Tops, top) {
			return false
		}
	}
	return true
}

func checkIsolation(ch choice, host Host, check checker) {
	switch {
	case !ch.isolated && ch.network == "none":
		check("isolation", false, "isolation=none leaves a seat on the host's network, and network none was asked for")
	case !ch.isolated:
		check("isolation", true, "none, as the plan names it")
	case host.Namespaces != "":
		check("isolation", false, "this host refuses namespaces (%s); isolation=none runs without", events.Scrub(host.Namespaces))
	default:
		check("isolation", true, "user, pid, mount, ipc and uts namespaces")
	}
}

func checkLimits(r events.Resources, ch choice, l cgroup.Layout, check checker) {
	if !ch.limited {
		check("limits", true, "none, as the plan names it")
		return
	}
	lim := limitsOf(r)
	switch {
	case l.PIDs == "":
		check("limits", false, "this host gives us no control group for pids; limits=none runs without any")
	case lim.MemoryBytes > 0 && l.Memory == "":
		check("limits", false, "this host gives us no control group for memory; limits=none runs without any")
	case lim.CPUMicros > 0 && l.CPU == "":
		check("limits", false, "this host gives us no control group for cpu; limits=none runs without any")
	case lim.CPUMicros > 0 && lim.CPUMicros < cgroup.MinCPUMicros:
		check("limits", false, "%s CPUs: the kernel limits from 0.01 on", r.CPUs)
	case r.MemoryMiB < 0 || r.MemoryMiB > math.MaxInt64>>20:
		check("limits", false, "%d MiB of memory is out of range", r.MemoryMiB)
	default:
		check("limits", true, "cpu, memory and %d pids by control groups", maxPIDs)
	}
}

// Host is what the trial of a host found.
type Host struct {
	Namespaces string // why a seat can't be isolated here; empty: it can
	Groups     cgroup.Layout
}

// probeLife is for how long one trial is believed.
const probeLife = time.Minute

func (d *Driver) probeHost(ctx context.Context) Host {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.probe.IsZero() && time.Since(d.probe) < probeLife {
		return d.probed
	}
	probe := d.tryout
	if probe == nil {
		probe = d.tryHost
	}
	h := probe(ctx)
	if ctx.Err() == nil {
		d.probed, d.probe = h, time.Now()
	}
	return h
}

const (
	probeDir = ".probe-"
	// probeStale is after how long a trial's directory is what a kill left
	// behind: a trial takes seconds.
	probeStale = 10 * time.Minute
)

// tryHost builds a whole isolated root, with every namespace, and executes
// nothing in it.
func (d *Driver) tryHost(ctx context.Context) Host {
	h := Host{Groups: d.groups.Layout()}
	d.sweepProbes()
	dir, err := os.MkdirTemp(d.Dir, probeDir)
	if err == nil {
		defer os.RemoveAll(dir)
		err = stage.Try(ctx, d.Self, dir, slices.Concat(roleEnv, d.SelfEnv))
	}
	if err != nil {
		h.Namespaces = err.Error()
	}
	return h
}

// sweepProbes removes what trials left that were killed. Nothing is mounted
// there: their mounts ended with them.
func (d *Driver) sweepProbes() {
	left, _ := filepath.Glob(filepath.Join(d.Dir, probeDir+"*"))
	for _, dir := range left {
		if st, err := os.Stat(dir); err == nil && time.Since(st.ModTime()) > probeStale {
			_ = os.RemoveAll(dir)
		}
	}
}
