package sagastest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/aggregates/instance"
	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/internal/ids"
	"berth/providers"
	"berth/providers/drill"
	"berth/sagas"
)

// Owner is the owner of everything in a world.
const Owner = events.Owner("local")

// Caller is who asks and who acts.
var Caller = events.Caller{Owner: Owner, Actor: "tester", UID: "abcdefghijklmnopqrstuvwxyz"}

// Instance is the manager of a world.
const Instance = events.InstanceID("aaaaaaaaaaaaaaaaaaaaaaaaaa")

// World is one manager with its log and its provider.
type World struct {
	T        testing.TB
	Log      *memory.Log
	Provider *Provider
	Shelf    *sagas.Shelf
	Engine   *sagas.Engine
	IDs      events.IDs
	Dir      string
	Epoch    uint64

	// Alter changes what a spawn asks for; nil leaves it as Plan is.
	Alter func(*events.Plan)
	// Options is changed before a start.
	Options func(*sagas.Options)

	end  func()
	mu   sync.Mutex
	plan map[events.Boundary]events.Plan
	// crash is the point at which the process dies, counted down.
	points int
	crash  int
	Passed []string // points passed, in order, if nothing crashes
}

// New makes a world and starts its manager. It must be called in a bubble of
// synctest; End must be called at
// its end.
func New(t testing.TB, rules ...drill.Rule) *World {
	w := Prepare(t, rules...)
	w.Start()
	return w
}

// Prepare makes a world whose manager is not started.
func Prepare(t testing.TB, rules ...drill.Rule) *World {
	s := drill.Script{Rules: rules}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return &World{T: t, Log: memory.New(), Provider: NewProvider(s), IDs: ids.Seeded(1, time.Now), Dir: scratch(t), plan: map[events.Boundary]events.Plan{}}
}

// CrashAt lets the process die at the n-th point from now, from 1; zero never.
func (w *World) CrashAt(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.points, w.crash = 0, n
}

func (w *World) hook(point string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.points++
	w.Passed = append(w.Passed, point)
	if w.crash > 0 && w.points >= w.crash {
		return errors.New("crash at " + point)
	}
	return nil
}

// Crashed says that the process died by CrashAt.
func (w *World) Crashed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.crash > 0 && w.points >= w.crash
}

// Start registers the next epoch and runs an engine over the log.
func (w *World) Start() {
	ctx, cancel := context.WithCancel(w.T.Context())
	w.Shelf = sagas.NewShelf(w.Log)
	_, _, err := w.Shelf.DecideInstance(ctx, Instance, w.meta(), func(i instance.State) ([]events.Event, error) {
		w.Epoch = i.Epoch + 1
		return i.Register(Instance, events.HostFacts{Host: "drill"}, "", "test"), nil
	})
	w.must(err)
	registry, err := providers.NewRegistry(providers.BundleOf(w.Provider, nil))
	w.must(err)
	shelf, epoch := w.Shelf, w.Epoch
	o := sagas.Options{
		Log: w.Log, Shelf: shelf, Drivers: registry, Self: events.Writer{Instance: Instance, Epoch: epoch}, Caller: Caller, IDs: w.IDs,
		Now: time.Now, Jitter: func() float64 { return 0.5 }, MaterialDir: filepath.Join(w.Dir, "material"), ExportsDir: filepath.Join(w.Dir, "exports"),
		Workers: 4, Logger: slog.New(slog.DiscardHandler), Hook: w.hook, Continue: w.Continue,
		CheckEpoch: func(ctx context.Context) error {
			i, _, err := shelf.Instance(ctx, Instance)
			if err == nil && i.Epoch != epoch {
				err = fault.New(fault.Expired, "epoch %d is over", epoch)
			}
			return err
		},
	}
	if w.Options != nil {
		w.Options(&o)
	}
	e := sagas.NewEngine(o)
	w.Engine = e
	tip := w.resume(ctx, e)
	var wg sync.WaitGroup
	wg.Go(func() { _ = e.Run(ctx) })
	log := w.Log
	wg.Go(func() {
		_ = log.Follow(ctx, tip, func(r events.Record) error { e.Absorb(r); return nil }, nil)
	})
	w.end = func() { cancel(); wg.Wait() }
}

// resume hands the engine what the log says is unfinished.
func (w *World) resume(ctx context.Context, e *sagas.Engine) uint64 {
	seats := map[events.Boundary]aggregates.Seat{}
	goals := map[events.Boundary]goal.State{}
	var order, later []events.Boundary
	var tip uint64
	w.must(w.Log.Scan(ctx, 0, func(r events.Record) error {
		tip = r.Sequence
		switch r.Boundary.Kind() {
		case events.KindSeat:
			if _, ok := seats[r.Boundary]; !ok {
				seats[r.Boundary] = aggregates.NewSeat(r.Boundary)
				order = append(order, r.Boundary)
			}
			seats[r.Boundary] = seats[r.Boundary].Apply(r)
		case events.KindGoal:
			if _, ok := goals[r.Boundary]; !ok {
				later = append(later, r.Boundary)
			}
			g := goals[r.Boundary]
			for _, ev := range r.Events {
				g = g.Apply(r.Meta, ev)
			}
			goals[r.Boundary] = g
		case events.KindEnvironment:
			later = append(later, r.Boundary)
		}
		return nil
	}))
	var held []aggregates.Seat
	for _, b := range order {
		held = append(held, seats[b])
	}
	e.Start(ctx, held)
	for _, b := range later {
		if g, ok := goals[b]; !ok || !g.State.Terminal() || g.State == events.GoalUncertain && g.Settled == nil {
			e.Resume(b)
		}
	}
	return tip
}

// Stop ends the manager; environments go on.
func (w *World) Stop() {
	if w.end != nil {
		w.end()
		w.end = nil
	}
}

// Detach leaves the running manager to the test, which ends it by calling what
// is returned; the world can start another beside it.
func (w *World) Detach() (end func()) {
	end, w.end = w.end, nil
	return end
}

// End stops the manager and the provider, so that nothing of the world is left.
func (w *World) End() {
	w.Stop()
	close(w.Provider.over)
	synctest.Wait()
}

// Restart kills the manager as it stands, cuts the power and starts the next
// epoch on what was stored.
func (w *World) Restart() {
	w.Stop()
	w.CrashAt(0)
	w.Log = w.Log.Crash()
	w.Start()
}

// Until lets virtual time pass until cond holds; the test fails after limit.
// A manager that died by CrashAt is started again.
func (w *World) Until(what string, limit time.Duration, cond func() bool) {
	w.T.Helper()
	end := time.Now().Add(limit)
	for {
		synctest.Wait()
		if w.Crashed() {
			w.Restart()
			continue
		}
		if cond() {
			return
		}
		if !time.Now().Before(end) {
			w.T.Fatalf("%s did not happen within %s\n%s", what, limit, w.Story())
		}
		time.Sleep(min(limit/50+time.Millisecond, time.Until(end)))
	}
}

func (w *World) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

func (w *World) meta() events.Meta {
	return events.Meta{ID: events.EventID(w.IDs.UUID()), Time: events.MillisUTC(time.Now()), Caller: Caller, Writer: events.Writer{Instance: Instance, Epoch: w.Epoch}}
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// scratch is a directory for the test, in memory where there is such a place:
// the engine syncs what it stages, which says nothing here and costs a lot.
func scratch(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "berth-sagas-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
