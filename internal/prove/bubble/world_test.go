package bubble

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/aggregates/instance"
	"berth/commands"
	"berth/commands/client"
	"berth/commands/plane"
	"berth/commands/service"
	"berth/events"
	"berth/events/eventlog/stream"
	"berth/events/fault"
	"berth/internal/embedded"
	"berth/internal/ids"
	"berth/projections"
	"berth/providers"
	"berth/providers/drill"
	"berth/sagas"
)

const (
	space    events.Space      = "bubble"
	identity events.InstanceID = "iiiiiiiiiiiiiiiiiiiiiiiiii"
	// lease is how long a check of the epoch holds (decision 1).
	lease = 5 * time.Second
)

var caller = events.Caller{Owner: plane.LocalOwner, Actor: "me", UID: "cccccccccccccccccccccccccc"}

// TestMain holds the server's process-wide clock outside of every bubble.
func TestMain(m *testing.M) {
	ats.Register()
	code := m.Run()
	ats.Unregister()
	os.Exit(code)
}

// world is one space: a server with its store, a provider, and the managers
// that run on them.
type world struct {
	*testing.T
	dir    string
	ids    events.IDs
	server *embedded.Server
	drill  *drill.Driver
	client *client.Client
	asking *nats.Conn
	run    []*manager
}

// bubble runs f in a world of its own whose provider misbehaves as the rules
// say, and ends everything in it.
func bubble(t *testing.T, f func(w *world), rules ...drill.Rule) {
	t.Helper()
	dir := scratch(t)
	// The client library keeps timers in a process-wide pool, and one of another
	// bubble is fatal in this one. Two collections empty every pool.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, dir: dir, ids: ids.Seeded(1, time.Now)}
		defer w.end()
		var err error
		w.drill, err = drill.Open(drill.Config{Dir: filepath.Join(dir, "drill"), Script: drill.Script{Rules: rules}})
		w.must(err)
		w.boot()
		f(w)
	})
}

// scratch is a directory in memory where there is such a place: nothing here
// is about what a disk keeps.
func scratch(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "berth-bubble-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// boot starts the server and one manager on it.
func (w *world) boot() *manager {
	w.Helper()
	var err error
	w.server, err = embedded.Start(w.Context(), embedded.Options{StoreDir: filepath.Join(w.dir, "nats")})
	w.must(err)
	w.asking = w.connect()
	w.client = client.Connect(w.asking, space, caller)
	return w.start()
}

func (w *world) connect() *nats.Conn {
	w.Helper()
	nc, err := w.server.Connect()
	w.must(err)
	return nc
}

// kill ends the managers and the server as they stand, without draining, as
// the end of one process would. The provider goes on.
func (w *world) kill() {
	for _, m := range w.run {
		m.kill()
	}
	w.run = nil
	if w.asking != nil {
		w.asking.Close()
		w.asking = nil
	}
	if w.server != nil {
		// A server that stops sleeps with a lock held. A request that waits for
		// that lock would keep the bubble's time from going on, for ever.
		synctest.Wait()
		w.server.Stop()
		w.server = nil
	}
}

func (w *world) end() {
	w.kill()
	if w.drill != nil {
		w.must(w.drill.Close())
	}
	synctest.Wait()
}

// manager is what one process runs.
type manager struct {
	w       *world
	nc      *nats.Conn
	log     *stream.Log
	views   *projections.Runner
	shelf   *sagas.Shelf
	engine  *sagas.Engine
	plane   *plane.Plane
	service *service.Service
	epoch   uint64
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu   sync.Mutex
	read time.Time
	lost error
}

// start assembles a manager as the composition root does, with the next epoch
// of the one instance, and returns when it serves.
func (w *world) start() *manager {
	w.Helper()
	m := &manager{w: w, nc: w.connect()}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	m.cancel = cancel
	w.run = append(w.run, m)
	var err error
	m.log, err = stream.Open(ctx, m.nc, stream.Config{Space: space, Create: true})
	w.must(err)
	m.views = projections.NewRunner(m.log, projections.NewViews(space))
	m.shelf = sagas.NewShelf(m.log)
	_, _, err = m.shelf.DecideInstance(ctx, identity, w.meta(0), func(i instance.State) ([]events.Event, error) {
		m.epoch = i.Epoch + 1
		return i.Register(identity, events.HostFacts{Host: "bubble"}, "", "1.0.0"), nil
	})
	w.must(err)
	m.assemble()
	m.wg.Go(func() { _ = m.views.Run(ctx) })
	<-m.views.Ready()
	tip := m.takeUp(ctx)
	m.wg.Go(func() {
		_ = m.log.Follow(ctx, tip, func(r events.Record) error { m.engine.Absorb(r); return nil }, nil)
	})
	m.wg.Go(func() { _ = m.engine.Run(ctx) })
	m.service, err = service.Start(service.Options{Conn: m.nc, Space: space, Instance: identity, Version: "1.0.0", Handler: m.plane})
	w.must(err)
	return m
}

func (m *manager) assemble() {
	w := m.w
	registry, err := providers.NewRegistry(providers.BundleOf(w.drill, nil))
	w.must(err)
	self := events.Writer{Instance: identity, Epoch: m.epoch}
	exports := filepath.Join(w.dir, "exports")
	m.plane = plane.New(plane.Options{
		Space: space, Self: self, Log: m.log, Shelf: m.shelf, Views: m.views, Providers: registry, IDs: w.ids, Now: time.Now,
		ExportsDir: exports, Version: "1.0.0", Caller: caller,
	})
	m.engine = sagas.NewEngine(sagas.Options{
		Log: m.log, Shelf: m.shelf, Drivers: registry, Self: self, Caller: caller, IDs: w.ids, Now: time.Now,
		Jitter:      rand.Float64,
		MaterialDir: filepath.Join(w.dir, "material"), ExportsDir: exports, Continue: m.plane.Continue, CheckEpoch: m.check,
	})
}

// takeUp gives the engine what the last process left, as of the sequence that
// it returns.
func (m *manager) takeUp(ctx context.Context) (tip uint64) {
	var seats []aggregates.Seat
	var goals []events.Boundary
	m.views.Read(func(v *projections.Views) {
		tip = v.Sequence()
		v.EachSeat(func(s aggregates.Seat) bool { seats = append(seats, s); return true })
		for _, g := range v.Goals(true) {
			if !g.State.State.Terminal() || g.State.State == events.GoalUncertain && g.Settled == nil {
				goals = append(goals, g.Boundary)
			}
		}
	})
	m.engine.Start(ctx, seats)
	for _, b := range goals {
		m.engine.Resume(b)
	}
	return tip
}

// check is the lease on the epoch: read from the log at most every lease, and
// lost for ever once a newer one was seen.
func (m *manager) check(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost != nil || time.Since(m.read) < lease {
		return m.lost
	}
	rs, err := m.log.Load(ctx, events.InstanceBoundary(identity), 0)
	if err != nil {
		return err
	}
	m.read = time.Now()
	for _, r := range rs {
		for _, e := range r.Events {
			if reg, ok := e.(events.InstanceRegistered); ok && reg.Epoch > m.epoch {
				m.lost = fault.New(fault.Expired, "epoch %d is over", m.epoch)
			}
		}
	}
	return m.lost
}

func (m *manager) kill() {
	m.cancel()
	if m.service != nil {
		m.service.Stop()
		m.plane.Close()
	}
	m.wg.Wait()
	if m.log != nil {
		_ = m.log.Close()
	}
	m.nc.Close()
}

func (w *world) meta(epoch uint64) events.Meta {
	return events.Meta{ID: events.EventID(w.ids.UUID()), Time: events.MillisUTC(time.Now()), Caller: caller, Writer: events.Writer{Instance: identity, Epoch: epoch}}
}

// spawn asks for an environment by the wire and returns what was accepted.
func (w *world) spawn(name, ttl, ready string) commands.SpawnResult {
	w.Helper()
	r, err := client.Call(w.Context(), w.client, commands.Spawn,
		commands.SpawnInput{Name: name, Provider: "drill", Command: []string{"true"}, TTL: ttl, Ready: ready})
	w.must(err)
	return r
}

// running spawns and waits until it runs.
func (w *world) running(name, ttl string) commands.SpawnResult {
	w.Helper()
	r := w.spawn(name, ttl, "")
	w.until(name+" runs", time.Hour, w.is(name, aggregates.StatusRunning))
	return r
}

// until lets virtual time pass until cond holds of the newest manager's views.
func (w *world) until(what string, limit time.Duration, cond func() bool) {
	w.Helper()
	m := w.run[len(w.run)-1]
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	for {
		at := m.views.Sequence()
		if cond() {
			return
		}
		if err := m.views.WaitFor(ctx, at+1); err != nil {
			w.Fatalf("%s: not within %s of virtual time: %s", what, limit, w.story())
		}
	}
}

func (w *world) seat(name string) aggregates.Seat {
	var s aggregates.Seat
	w.run[len(w.run)-1].views.Read(func(v *projections.Views) { s, _ = v.Seat(caller.Owner, events.Alias(name)) })
	return s
}

func (w *world) is(name string, want aggregates.Status) func() bool {
	return func() bool { s := w.seat(name); return s.Slot.Held() && s.Status() == want }
}

// gone says that the name is free.
func (w *world) gone(name string) func() bool {
	return func() bool { return !w.seat(name).Slot.Held() }
}

func (w *world) goal(r commands.SpawnResult) goal.State {
	w.Helper()
	var g goal.State
	w.run[len(w.run)-1].views.Read(func(v *projections.Views) { g, _ = v.Goal(events.GoalBoundary(caller, r.GoalID)) })
	return g
}

// calls is what the provider was asked, of some verbs.
func (w *world) calls(verbs ...drill.Verb) []drill.CallRecord {
	var out []drill.CallRecord
	for _, c := range w.drill.Status().Calls {
		for _, v := range verbs {
			if c.Verb == v {
				out = append(out, c)
			}
		}
	}
	return out
}

// events counts the events of a type, and gives the time of the first.
func (w *world) events(kind string) (n int, first time.Time) {
	w.Helper()
	w.must(w.run[len(w.run)-1].log.Scan(w.Context(), 0, func(r events.Record) error {
		for _, e := range r.Events {
			if e.EventType() == kind {
				if n++; n == 1 {
					first = r.Meta.Time
				}
			}
		}
		return nil
	}))
	return n, first
}

// story is the log for a person.
func (w *world) story() string {
	var b []byte
	_ = w.run[len(w.run)-1].log.Scan(w.Context(), 0, func(r events.Record) error {
		for _, e := range r.Events {
			b = append(b, "\n"+r.Meta.Time.Format("15:04:05.000 ")+string(r.Boundary)+" "+e.EventType()...)
		}
		return nil
	})
	return string(b)
}
