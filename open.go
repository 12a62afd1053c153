package berth

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"berth/aggregates"
	"berth/aggregates/instance"
	"berth/commands/attach"
	"berth/commands/plane"
	"berth/commands/service"
	"berth/commands/transfer"
	"berth/events"
	"berth/events/eventlog/barrier"
	"berth/events/eventlog/stream"
	"berth/events/fault"
	"berth/internal/connector"
	"berth/internal/durable"
	"berth/internal/steady"
	"berth/projections"
	"berth/providers"
	"berth/providers/drill"
	"berth/providers/process"
	"berth/providers/qemu"
	"berth/sagas"
	"berth/terminal"
)

// openLog opens the log and compares it with what this directory remembers of
// it (decision 6): a log that is missing, shorter or another one is never read
// as an empty world.
func (m *Manager) openLog(ctx context.Context) error {
	accepted := m.opts.AcceptHistoryLoss != ""
	c, err := recall(m.dir, accepted)
	if err != nil {
		return err
	}
	cfg := stream.Config{Space: m.opts.Space, Create: c.fresh() || m.opts.InitSpace && accepted, MaxBytes: m.opts.MaxBytes, Log: m.logger}
	if m.log, err = m.openStream(ctx, cfg); err != nil {
		return err
	}
	m.onClose(m.log.Close)
	if m.srv != nil {
		if err := barrier.Sweep(ctx, m.nc); err != nil {
			m.logger.Warn("the stream of the durability trial stays until the next start", "reason", err)
		}
	}
	m.keeper = &keeper{chain: c, m: m}
	return c.begin(ctx, m.log, accepted)
}

// openStream opens the stream; in the group profile behind a barrier, which
// needs the stream's files to be there.
func (m *Manager) openStream(ctx context.Context, cfg stream.Config) (*stream.Log, error) {
	log, err := stream.Open(ctx, m.nc, cfg)
	if err != nil || m.profile != Group || m.srv == nil {
		return log, err
	}
	name, _ := log.Identity()
	if err := log.Close(); err != nil {
		return nil, err
	}
	if m.barrier, err = barrier.Open(m.dir.File(natsDir), m.srv.StreamDir("$G", name)); err != nil {
		return nil, err
	}
	m.onClose(m.barrier.Close)
	cfg.Create, cfg.Barrier = false, m.barrier
	return stream.Open(ctx, m.nc, cfg)
}

// openViews folds the log for readers, from the newest snapshot on.
func (m *Manager) openViews(context.Context) error {
	views, err := projections.Load(m.dir.File(snapshotFile), m.keeper.identity(), m.opts.Space)
	if err != nil {
		if fault.CodeOf(err) != fault.NotFound {
			m.logger.Warn("the start takes longer, and nothing is lost: the whole log is folded in place of the snapshot", "reason", err)
		}
		views = projections.NewViews(m.opts.Space)
	}
	if m.keeper.lost != nil {
		views = projections.NewViews(m.opts.Space)
	}
	m.keeper.snapshot = views.Sequence()
	m.runner = projections.NewRunner(m.log, views)
	m.shelf = sagas.NewShelf(m.commits(), sagas.WithSeats(func(o events.Owner, a events.Alias) (seat aggregates.Seat, ok bool) {
		m.runner.Read(func(v *projections.Views) { seat, ok = v.Seat(o, a) })
		return seat, ok
	}))
	return nil
}

// register begins the next epoch of this instance: from here an older process
// with the same identity is fenced.
func (m *Manager) register(ctx context.Context) error {
	key, err := m.dir.Key.PublicKey()
	if err != nil {
		return err
	}
	id := m.dir.Identity.Instance
	host, offers := m.hostFacts(ctx)
	m.writer = events.Writer{Instance: id}
	var epoch uint64
	meta := m.meta()
	_, _, err = m.shelf.DecideInstance(ctx, id, meta, func(s instance.State) ([]events.Event, error) {
		epoch = s.Epoch + 1
		return append(s.Register(id, host, key, m.opts.Version), m.observed(epoch, offers)), nil
	})
	if err != nil {
		return err
	}
	m.writer.Epoch = epoch
	m.fence = &fence{m: m}
	return m.keeper.admitLoss(ctx, m.opts.Space, m.meta(), m.opts.AcceptHistoryLoss)
}

// openDrivers registers the providers that this host has. A directory that has
// machines keeps their provider also without its parts: what it holds must stay
// reachable.
func openDrivers(d *DataDir, o Options, c *steady.Clock) (bundles []providers.Bundle, closers []func() error, err error) {
	if runtime.GOOS == "linux" {
		p, err := process.New(process.Config{Dir: d.File(seatsDir), Self: o.Self, Clock: c.Now, Hide: []string{d.Path}})
		if err != nil {
			return nil, nil, err
		}
		bundles = append(bundles, providers.BundleOf(p, nil))
		closers = append(closers, p.Close)
	}
	others, ends, err := openAdapters(d, o, c.Now)
	bundles, closers = append(bundles, others...), append(closers, ends...)
	if err != nil {
		return nil, closers, err
	}
	others, ends, err = openHosted(o, c.Now)
	bundles, closers = append(bundles, others...), append(closers, ends...)
	if err != nil {
		return nil, closers, err
	}
	if machines := d.File(machinesDir); runtime.GOOS == "linux" && (qemu.Available() == nil || d.has(machinesDir)) {
		p, err := qemu.New(qemu.Config{Dir: machines, Self: o.Self, Clock: c.Now, Door: process.DoorDir(d.File(seatsDir))})
		if err != nil {
			return nil, closers, err
		}
		bundles = append(bundles, providers.BundleOf(p, nil))
		closers = append(closers, p.Close)
	}
	script, use, err := drillScript(d, o)
	if err != nil || !use {
		return bundles, closers, err
	}
	p, err := drill.Open(drill.Config{Dir: d.File(drillDir), Script: script, Clock: c.Now})
	if err != nil {
		return nil, closers, err
	}
	return append(bundles, providers.BundleOf(p, nil)), append(closers, p.Close), nil
}

// drillScript reads --drill. A directory that has simulated environments keeps
// the provider also without the flag, misbehaving no more: what it holds must
// stay reachable.
func drillScript(d *DataDir, o Options) (s drill.Script, use bool, err error) {
	if o.Drill == "" {
		_, err := os.Stat(d.File(drillDir))
		return drill.Script{}, err == nil, nil
	}
	raw, err := os.ReadFile(o.Drill)
	if err != nil {
		return s, false, badConfig("--drill: %s", err)
	}
	if s, err = drill.ParseScript(raw); err != nil {
		return s, false, badConfig("--drill %s: %s", filepath.Base(o.Drill), fault.From(err).Message)
	}
	return s, true, nil
}

// openEngine makes the engine, the command plane and its service.
func (m *Manager) openEngine() error {
	for _, d := range []string{materialDir, exportsDir, transcriptsDir} {
		err := durable.MakeDir(m.dir.File(d))
		if err == nil {
			err = durable.Sweep(m.dir.File(d))
		}
		if err != nil {
			return badConfig("data directory %s can't be written: %s", m.dir.Path, err)
		}
	}
	if runtime.GOOS == "linux" {
		if _, err := doorDir(m.dir); err != nil {
			return badConfig("data directory %s can't be written: %s", m.dir.Path, err)
		}
	}
	delegation, err := m.openDelegation()
	if err != nil {
		return err
	}
	connectors := connector.Available{Offered: m.opts.Connectors}
	if err := connectors.Check(); err != nil {
		return badConfig("--connectors: %s", fault.From(err).Message)
	}
	m.plane = plane.New(plane.Options{
		Space: m.opts.Space, Self: m.writer, Log: m.commits(), Shelf: m.shelf, Views: m.runner, Providers: m.drivers, IDs: m.ids,
		Now: m.clock.Now, ExportsDir: m.dir.File(exportsDir), Version: m.opts.Version, Durability: m.Profile(), Caller: m.dir.Identity.Caller,
		Shared: shared, Bound: bound, Silent: m.silent, Lease: leaseFor, MaxSeats: m.opts.MaxSeats, Engine: m.engineCounts, Poke: func(b events.Boundary) { m.engine.Poke(b) }, Admit: m.guard.Check, Delegation: delegation, Connectors: connectors, Logger: m.logger,
		End: m.end, TranscriptsDir: m.dir.File(transcriptsDir), Transfers: transfer.NewBucket(m.nc, m.opts.Space, m.writer.Instance),
		Sign: func(o terminal.Offer) (terminal.Offer, error) { return o.Sign(m.dir.Key) },
	})
	m.engine = sagas.NewEngine(sagas.Options{
		Log: m.commits(), Shelf: m.shelf, Drivers: m.drivers, Self: m.writer, Caller: m.dir.Identity.Caller, IDs: m.ids,
		Now: m.clock.Now, Jitter: rand.Float64, MaterialDir: m.dir.File(materialDir), ExportsDir: m.dir.File(exportsDir), TranscriptsDir: m.dir.File(transcriptsDir),
		Logger: m.logger, CheckEpoch: m.fence.Check, Continue: m.plane.Continue, About: m.goalsAbout, Hook: m.opts.Hook,
		Bearers: m.bearers, Delegation: delegation,
	})
	return nil
}

// goalsAbout lists the open goals about a seat, as far as the views are.
func (m *Manager) goalsAbout(b events.Boundary) (out []events.Boundary) {
	owner, alias, ok := b.Seat()
	if !ok {
		return nil
	}
	m.runner.Read(func(v *projections.Views) { out = v.GoalsAbout(owner, alias) })
	return out
}

// serve begins to answer commands.
func (m *Manager) serve() error {
	s, err := service.Start(service.Options{
		Alone: m.plane.ApartFromClass(),
		Conn:  m.nc, Space: m.opts.Space, Instance: m.writer.Instance, Version: m.opts.Version, Handler: m.plane, Logger: m.logger,
	})
	m.serving.Store(s)
	if err != nil {
		return err
	}
	m.sessions, err = attach.Start(attach.Options{
		Conn: m.nc, Space: m.opts.Space, Self: m.writer, Key: m.dir.Key, Log: m.commits(), Shelf: m.shelf, Providers: m.drivers,
		IDs: m.ids, Now: m.clock.Now, Caller: m.dir.Identity.Caller, Logger: m.logger,
	})
	if err != nil {
		s.Stop()
	}
	return err
}

// engineCounts is empty before there is an engine.
func (m *Manager) engineCounts() map[string]int64 {
	if !m.isReady() {
		return nil
	}
	s := m.engine.Stats()
	return map[string]int64{
		"seats": int64(s.Seats), "goals": int64(s.Goals), "open": int64(s.Open), "uncertain": int64(s.Uncertain),
		"stuck": int64(s.Stuck), "inFlight": int64(s.InFlight), "queued": int64(s.Queued), "failing": int64(s.Failing),
	}
}

func jsonLine(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return append(b, '\n'), err
}

// leaseFor is how long a check of the epoch holds (decision 1).
const leaseFor = 5 * time.Second
