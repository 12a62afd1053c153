// Package commandstest is the world that the tests of the command plane share:
// a log in memory, the projections, an engine with the drill provider and the
// plane, all real, without a server.
package commandstest

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"berth/commands"
	"berth/commands/plane"
	"berth/events"
	"berth/events/eventlog"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/internal/ids"
	"berth/internal/steady"
	"berth/projections"
	"berth/providers"
	"berth/providers/drill"
	"berth/sagas"
)

// Who and where the world is.
const (
	Space    events.Space      = "test"
	Instance events.InstanceID = "iiiiiiiiiiiiiiiiiiiiiiiiii"
	// Patience is how long a test waits for what must come.
	Patience = 60 * time.Second
)

// Caller is who asks.
var Caller = events.Caller{Owner: plane.LocalOwner, Actor: "me", UID: "cccccccccccccccccccccccccc"}

// T is what a test gives.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
	TempDir() string
}

// Config changes a world.
type Config struct {
	Log      eventlog.Log         // nil: a fresh one in memory
	Script   drill.Script         // how the provider misbehaves
	Capacity *events.HostCapacity // of its host; nil: practically anything
	Instance events.InstanceID    // empty: Instance
	MaxSeats int                  // names that the instance holds at most; zero: any number
	// Silent answers for the instances that a takeover asks about.
	Silent func(context.Context, events.InstanceID) error
	Bound  func(provider string) bool
	Shared *drill.Driver // another world's provider, which this one reaches too
	Idle   bool          // without an engine: what is accepted stays where it is
	// Around is what is registered in the provider's place; nil: the provider itself.
	Around func(*drill.Driver) providers.Driver
	// Now is the plane's clock; nil: the time of now. It is asked from several goroutines.
	Now func() time.Time
}

// World is everything that a plane works with.
type World struct {
	T      T
	Log    eventlog.Log
	Memory *memory.Log // nil if another log was given
	Shelf  *sagas.Shelf
	Views  *projections.Runner
	Engine *sagas.Engine
	Drill  *drill.Driver
	Plane  *plane.Plane
	IDs    events.IDs
	Dir    string
}

// New starts a world that ends with the test.
func New(t T, c Config) *World {
	t.Helper()
	w := &World{T: t, Log: c.Log, IDs: ids.New(), Dir: t.TempDir()}
	if w.Log == nil {
		w.Memory = memory.New()
		w.Log = w.Memory
	}
	w.Shelf = sagas.NewShelf(w.Log)
	w.Views = projections.NewRunner(w.Log, projections.NewViews(Space))
	var err error
	if w.Drill = c.Shared; w.Drill != nil {
		// its owner closes it
	} else if w.Drill, err = drill.Open(drill.Config{Dir: filepath.Join(w.Dir, "drill"), Script: c.Script, Capacity: c.Capacity}); err != nil {
		t.Fatalf("the drill provider: %v", err)
	}
	var registered providers.Driver = w.Drill
	if c.Around != nil {
		registered = c.Around(w.Drill)
	}
	registry, err := providers.NewRegistry(providers.BundleOf(registered, nil))
	if err != nil {
		t.Fatalf("the registry: %v", err)
	}
	self := events.Writer{Instance: c.Instance, Epoch: 1}
	if self.Instance == "" {
		self.Instance = Instance
	}
	now := c.Now
	if now == nil {
		now = time.Now
	}
	exports, transcripts := filepath.Join(w.Dir, "exports"), filepath.Join(w.Dir, "transcripts")
	w.Plane = plane.New(plane.Options{
		Space: Space, Self: self, Log: w.Log, Shelf: w.Shelf, Views: w.Views, Providers: registry, IDs: w.IDs, Now: now,
		ExportsDir: exports, TranscriptsDir: transcripts, Version: "1.0.0", MaxSeats: c.MaxSeats, Caller: Caller, Silent: c.Silent, Bound: c.Bound, Lease: time.Millisecond,
	})
	w.Engine = sagas.NewEngine(sagas.Options{
		Log: w.Log, Shelf: w.Shelf, Drivers: registry, Self: self, Caller: Caller, IDs: w.IDs, Now: steady.New().Now, Jitter: func() float64 { return 0 },
		MaterialDir: filepath.Join(w.Dir, "material"), ExportsDir: exports, TranscriptsDir: transcripts, Continue: w.Plane.Continue,
	})
	w.run(c)
	return w
}

func (w *World) run(c Config) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.Views.Run(ctx) })
	if !c.Idle {
		wg.Go(func() {
			_ = w.Log.Follow(ctx, 0, func(r events.Record) error { w.Engine.Absorb(r); return nil }, nil)
		})
		wg.Go(func() { _ = w.Engine.Run(ctx) })
		wg.Go(func() { _ = w.Plane.Offers(ctx) })
	}
	w.T.Cleanup(func() {
		cancel()
		wg.Wait()
		w.Plane.Close()
		if c.Shared == nil {
			_ = w.Drill.Close()
		}
	})
}

// Address is where a command of Caller is sent.
func Address(row *commands.Contract) commands.Address {
	a := commands.Address{Target: commands.Any, Command: row.Name, Mode: row.Modes[0], Caller: Caller}
	if a.Mode == commands.ModeOwner {
		a.Owner = Caller.Owner
	}
	return a
}

// Ask sends one request to the plane and reads its result. A read sees all
// that is in the log by then.
func Ask[In commands.Input, Out any](w *World, cmd commands.Command[In, Out], id string, in In) (Out, error) {
	w.T.Helper()
	return AskAs(w, Caller, cmd, id, in)
}

// AskAs is Ask by another caller.
func AskAs[In commands.Input, Out any](w *World, who events.Caller, cmd commands.Command[In, Out], id string, in In) (Out, error) {
	w.T.Helper()
	var out Out
	req := commands.Request{ID: events.CommandID(id)}
	if cmd.Kind == commands.Read {
		req.MinSequence = w.Tip()
	}
	a := Address(cmd.Contract)
	a.Caller = who
	r := w.send(a, cmd.Contract, req, in)
	if !r.OK {
		return out, r.Error
	}
	if err := json.Unmarshal(r.Result, &out); err != nil {
		w.T.Fatalf("the result of %s: %v", cmd.Name, err)
	}
	return out, nil
}

// Send sends one request with an envelope of its own.
func (w *World) Send(row *commands.Contract, req commands.Request, in any) commands.Reply {
	w.T.Helper()
	return w.send(Address(row), row, req, in)
}

func (w *World) send(a commands.Address, row *commands.Contract, req commands.Request, in any) commands.Reply {
	w.T.Helper()
	var err error
	if req.Input, err = json.Marshal(in); err != nil {
		w.T.Fatalf("%v", err)
	}
	body, err := json.Marshal(req)
	if err != nil {
		w.T.Fatalf("%v", err)
	}
	r := w.Plane.Handle(context.Background(), a, body, "")
	if !r.OK && (r.Error == nil || r.Error.Outcome == "" || r.Error.Code == "") {
		w.T.Fatalf("%s was refused without code or outcome: %+v", row.Name, r)
	}
	return r
}

// Spawn makes an environment of the drill provider and waits until it runs.
func (w *World) Spawn(name string) commands.SpawnResult {
	w.T.Helper()
	r, err := Ask(w, commands.Spawn, "spawn-"+name, Drill(name))
	if err != nil {
		w.T.Fatalf("spawn %s: %v", name, err)
	}
	w.Until(name+" runs", func(v *projections.Views) bool {
		s, ok := v.Seat(Caller.Owner, events.Alias(name))
		return ok && s.Status() == "running" && s.Slot.Phase == "active"
	})
	w.Ended("spawn-" + name)
	return r
}

// Drill is the input of a spawn at the drill provider.
func Drill(name string) commands.SpawnInput {
	return commands.SpawnInput{Name: name, Provider: "drill", Command: []string{"true"}}
}

// Until waits for a condition on the projections.
func (w *World) Until(what string, f func(*projections.Views) bool) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := w.Views.Until(ctx, f); err != nil {
		w.T.Fatalf("waiting until %s: %v", what, err)
	}
}

// Tip is the last sequence of the log.
func (w *World) Tip() uint64 {
	w.T.Helper()
	n, err := w.Log.Tip(context.Background())
	if err != nil {
		w.T.Fatalf("%v", err)
	}
	return n
}

// Ended waits for the end of a goal of Caller and returns it.
func (w *World) Ended(id string) commands.GoalResult {
	w.T.Helper()
	r, err := Ask(w, commands.Wait, "", commands.WaitInput{Goal: id})
	if err != nil || !r.Met {
		w.T.Fatalf("goal %s did not end: %+v %v", id, r, err)
	}
	return *r.Goal
}

// Code is the code of an error, and Outcome its outcome, for comparisons.
func Code(err error) (fault.Code, fault.Outcome) {
	var f *fault.Error
	if !errors.As(err, &f) {
		return "", ""
	}
	return f.Code, f.Outcome
}
