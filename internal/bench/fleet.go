package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/events/fault"
)

const (
	spawners   = 64          // spawns that are under way at once
	settleStep = time.Second // an idle manager is quiet when one of these costs nearly nothing
	settleMost = 60          // steps; then it is measured as it is
	quiet      = 1.0         // % of one core
	fleetHeld  = 20          // of the filled lives live side by side
)

// fleet is a data directory that is filled and looked at by one process after
// another.
type fleet struct {
	Options
	ctx  context.Context
	data string
	fill *filler
}

// measureFleet measures memory, starts after a kill, and idling.
func measureFleet(ctx context.Context, o Options) ([]Row, error) {
	f := &fleet{Options: o, ctx: ctx, data: filepath.Join(o.Dir, "data"), fill: newFiller(fleetHeld)}
	var rows []Row
	for _, part := range []func() ([]Row, error){f.memory, f.starts, f.idle} {
		more, err := part()
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// memory weighs a manager whose server is another process: with no life, with
// retired ones, and with live ones. What the simulated provider keeps for its
// environments is weighed alone and taken off: a real provider keeps that
// elsewhere.
func (f *fleet) memory() ([]Row, error) {
	f.Progress("fleet: memory of retired environments")
	if err := f.first(); err != nil {
		return nil, err
	}
	if err := f.extend(f.Events / 2); err != nil { // by then, what is bounded is full
		return nil, err
	}
	few, err := f.rested()
	if err != nil {
		return nil, err
	}
	before := f.fill.retired
	if err := f.extend(f.Events); err != nil {
		return nil, err
	}
	many, err := f.rested()
	if err != nil {
		return nil, err
	}
	retired := f.fill.retired - before
	if retired == 0 {
		return nil, fault.New(fault.BadRequest, "events: %d are too few to retire anything", f.Events)
	}
	rows := []Row{alone("heap-per-retired", (many-few)/float64(retired), "bytes").atMost(400).
		noted("%d retired environments, each with a name of its own", retired)}

	f.Progress(fmt.Sprintf("fleet: spawning %d drill environments", f.Live))
	drill, err := f.alone()
	if err != nil {
		return rows, err
	}
	if _, err := f.weigh(f.spawn); err != nil {
		return rows, err
	}
	full, err := f.rested()
	if err != nil {
		return rows, err
	}
	laden, err := f.alone()
	if err != nil {
		return rows, err
	}
	n := float64(f.Live)
	return append(rows,
		alone("heap-per-live", (full-many-(laden-drill))/n, "bytes").atMost(4096).noted("%d live environments; the provider's own %d bytes for each are taken off", f.Live, int((laden-drill)/n)),
	), nil
}

// first makes the data directory and the stream, as a first start does.
func (f *fleet) first() error {
	m, err := begin(f.ctx, role{Kind: "manager", Dir: f.data})
	if err != nil {
		return err
	}
	defer m.kill()
	return m.stop()
}

// extend writes more lives into the log of a manager that is down.
func (f *fleet) extend(total int) error {
	s, err := begin(f.ctx, role{Kind: "server", Dir: f.data})
	if err != nil {
		return err
	}
	defer s.kill()
	nc, err := nats.Connect(s.Endpoint.NATS)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := f.fill.fill(f.ctx, nc, total); err != nil {
		return err
	}
	return s.stop()
}

// weigh starts a manager on a server of its own, does something with it, and
// tells its heap before it stops it.
func (f *fleet) weigh(with func(*child) error) (float64, error) {
	s, err := begin(f.ctx, role{Kind: "server", Dir: f.data})
	if err != nil {
		return 0, err
	}
	defer s.kill()
	m, err := begin(f.ctx, role{Kind: "manager", Dir: f.data, NATS: s.Endpoint.NATS})
	if err != nil {
		return 0, err
	}
	defer m.kill()
	if with != nil {
		if err := with(m); err != nil {
			return 0, err
		}
	}
	if err := f.settle(m); err != nil { // what follows the log in the background has buffers
		return 0, err
	}
	v, err := m.ask(askHeap)
	if err != nil {
		return 0, err
	}
	if err := m.stop(); err != nil {
		return 0, err
	}
	return v, s.stop()
}

// rested weighs a manager that started from a snapshot with nothing after it,
// so that no buffer of a long fold is taken for what is kept.
func (f *fleet) rested() (float64, error) {
	if _, err := f.weigh(nil); err != nil { // folds what is new, and saves
		return 0, err
	}
	return f.weigh(nil)
}

// alone weighs the simulated provider.
func (f *fleet) alone() (float64, error) {
	d, err := begin(f.ctx, role{Kind: "drill", Dir: f.data})
	if err != nil {
		return 0, err
	}
	defer d.kill()
	v, err := d.ask(askHeap)
	if err != nil {
		return 0, err
	}
	return v, d.stop()
}

// spawn makes the live environments, really: by commands, through the engine
// and the provider.
func (f *fleet) spawn(m *child) error {
	nc, err := nats.Connect(m.Endpoint.NATS)
	if err != nil {
		return err
	}
	defer nc.Close()
	c := client.Connect(nc, space, m.Endpoint.Caller)
	var next atomic.Int64
	g, ctx := errgroup.WithContext(f.ctx)
	for range spawners {
		g.Go(func() error {
			for n := next.Add(1); n <= int64(f.Live); n = next.Add(1) {
				if err := spawnOne(ctx, c, commands.SpawnInput{Name: fmt.Sprintf("live-%05d", n), Provider: "drill", TTL: "24h", CPUs: "0.01", Memory: "1MiB", Command: []string{"true"}}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// spawnOne waits until the environment is ready.
func spawnOne(ctx context.Context, c *client.Client, in commands.SpawnInput) error {
	r, err := client.Call(ctx, c, commands.Spawn, in, client.WithPatience(time.Minute))
	if err != nil {
		return err
	}
	g, err := c.WaitGoal(ctx, r.GoalID)
	if err != nil {
		return err
	}
	if g.State != events.GoalSucceeded {
		return fault.New(fault.Internal, "the spawn of %s ended %s: %v", in.Name, g.State, g.Fault)
	}
	return nil
}

// starts measures from the start of the process to its first answer, after it
// was killed, beside the bare server's on the same files.
func (f *fleet) starts() ([]Row, error) {
	f.Progress("fleet: starts after a kill")
	begun := func(r role) (time.Duration, error) {
		c, err := begin(f.ctx, r)
		if err != nil {
			return 0, err
		}
		c.kill()
		return c.ready, nil
	}
	manager, server := role{Kind: "manager", Dir: f.data, Strict: true}, role{Kind: "server", Dir: f.data, Strict: true}
	if _, err := begun(manager); err != nil {
		return nil, err
	}
	var raws, ours []time.Duration
	for range f.Rounds {
		r, err := begun(server)
		if err != nil {
			return nil, err
		}
		o, err := begun(manager)
		if err != nil {
			return nil, err
		}
		raws, ours = append(raws, r), append(ours, o)
	}
	return []Row{beside("start-after-kill", millis(median(ours)), "ms", millis(median(raws))).atMost(2).
		noted("%d events, %d live environments, from a snapshot; processes included on both sides", f.fill.events, f.Live)}, nil
}

// idle measures the processor time of a manager that nobody asks anything,
// server included, beside that of the bare server.
func (f *fleet) idle() ([]Row, error) {
	f.Progress("fleet: idling")
	var used []float64
	for _, r := range []role{{Kind: "server", Dir: f.data, Strict: true}, {Kind: "manager", Dir: f.data, Strict: true}} {
		v, err := f.watch(r)
		if err != nil {
			return nil, err
		}
		used = append(used, v)
	}
	row := alone("idle-cpu", used[1], "% of one core")
	row.Raw = new(round(used[0]))
	return []Row{row.atMost(5).noted("%d live environments, over %s, server included on both sides", f.Live, f.Idle)}, nil
}

// watch is the share of a core, in percent, that a process takes once it is
// quiet.
func (f *fleet) watch(r role) (float64, error) {
	c, err := begin(f.ctx, r)
	if err != nil {
		return 0, err
	}
	defer c.kill()
	if err := f.settle(c); err != nil {
		return 0, err
	}
	v, err := f.used(c, f.Idle)
	if err != nil {
		return 0, err
	}
	return v, c.stop()
}

// settle waits until a process does nearly nothing, or has been given long
// enough for it.
func (f *fleet) settle(c *child) error {
	for range settleMost {
		v, err := f.used(c, min(settleStep, f.Idle))
		if err != nil || v < quiet {
			return err
		}
	}
	return nil
}

func (f *fleet) used(c *child, during time.Duration) (float64, error) {
	before, err := c.ask(askCPU)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	select {
	case <-f.ctx.Done():
		return 0, f.ctx.Err()
	case <-time.After(during):
	}
	after, err := c.ask(askCPU)
	return (after - before) / micros(time.Since(start)) * 100, err
}
