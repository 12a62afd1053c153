package drill

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/providers"
	"berth/providers/kept"
)

// Config says where a provider lives and how it misbehaves.
type Config struct {
	Dir    string           // its own directory; made if it is not there
	Script Script           // must have passed Check; another one than last time counts anew
	Clock  func() time.Time // nil: the system's
	// Capacity is what the simulated host offers; nil: practically anything.
	Capacity *events.HostCapacity
}

// Driver is the provider with its durable journal. It implements
// providers.Driver and providers.Watcher. A call that changes something costs
// one write and at most one fsync, which concurrent calls share; an idle
// environment costs nothing.
type Driver struct {
	clock    func() time.Time
	capacity events.HostCapacity
	lock     *durable.Lock
	closed   chan struct{}

	mu       sync.Mutex // guards all below
	m        *Machine
	j        *journal
	last     time.Time // the latest time given to the machine: it never goes back
	next     time.Time // of Machine.Next, when the watchers last looked
	shut     bool
	watchers map[*watcher]struct{}

	terminals map[events.EnvironmentID]*terminal
}

var (
	_ providers.Driver   = (*Driver)(nil)
	_ providers.Watcher  = (*Driver)(nil)
	_ providers.Terminal = (*Driver)(nil)
)

// Open opens or makes the provider in a directory. It is refused with
// failed-precondition while another process has it open, or if its files
// can't be read.
func Open(c Config) (*Driver, error) {
	if err := c.Script.Check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, unreadable(c.Dir, err)
	}
	l, err := durable.TryLock(filepath.Join(c.Dir, "lock"))
	if fault.CodeOf(err) == fault.Conflict {
		return nil, fault.New(fault.FailedPrecondition, "the drill directory %s is in use by another manager", c.Dir)
	}
	if err != nil {
		return nil, unreadable(c.Dir, err)
	}
	d := &Driver{clock: c.Clock, lock: l, closed: make(chan struct{}), watchers: map[*watcher]struct{}{}, terminals: map[events.EnvironmentID]*terminal{}}
	if d.clock == nil {
		d.clock = time.Now
	}
	d.capacity = events.HostCapacity{CPUs: events.MustQuantity("1000000"), MemoryMiB: 1 << 40, DiskGiB: 1 << 30, Slots: MaxEnvironments}
	if c.Capacity != nil {
		d.capacity = *c.Capacity
	}
	if err := d.load(c); err != nil {
		_ = l.Unlock()
		return nil, err
	}
	return d, nil
}

func (d *Driver) load(c Config) error {
	m, snap, whole, err := replay(c.Dir)
	if err != nil {
		return err
	}
	if d.j, err = openJournal(c.Dir, snap, whole); err != nil {
		return err
	}
	d.m, d.last = m, snap.At
	if reflect.DeepEqual(m.s.Script, c.Script) || len(m.s.Script.Rules)+len(c.Script.Rules) == 0 {
		return nil
	}
	mark, err := d.j.append(entry{At: d.now(), Script: &c.Script})
	if err == nil {
		err = d.j.sync(mark)
	}
	if err != nil {
		return errors.Join(err, d.j.close())
	}
	m.SetScript(c.Script)
	return nil
}

// now is the time of a call: of the clock, but never before an earlier call,
// so that a replay sees the same order.
func (d *Driver) now() time.Time {
	if t := events.MillisUTC(d.clock()); t.After(d.last) {
		d.last = t
	}
	return d.last
}

// apply journals a call and handles it. An error says that it was not
// executed, unless its outcome is unknown.
func (d *Driver) apply(c Call) (Answer, error) {
	a, mark, err := d.handle(c)
	if err != nil || c.Verb.observes() && c.Verb != Exclude {
		return a, err
	}
	if err := d.j.sync(mark); err != nil {
		return Answer{}, fault.From(err).WithOutcome(fault.Unknown)
	}
	return a, nil
}

func (d *Driver) handle(c Call) (Answer, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		return Answer{}, 0, fault.New(fault.Unavailable, "the drill provider is closed").WithOutcome(fault.NotExecuted)
	}
	now := d.now()
	mark, err := d.j.append(entry{At: now, Call: &c})
	if err != nil {
		return Answer{}, 0, err
	}
	a := d.m.Apply(now, c)
	if d.j.full() {
		// The journal alone is enough: a snapshot that can't be written is
		// tried again when the journal has doubled.
		if err := d.j.compact(d.m, now); err != nil {
			d.j.snapBytes = d.j.size
		}
	}
	d.wake(!c.Verb.observes())
	return a, mark, nil
}

// Name is "drill".
func (d *Driver) Name() string { return "drill" }

// TakesHandoff implements providers.Delegator: a simulated seat takes anything.
func (d *Driver) TakesHandoff(context.Context) error { return nil }

// TakesTranscript implements providers.TranscriptTaker: the bytes are checked
// with the launch, and the simulated seat does not read them.
func (d *Driver) TakesTranscript() int64 { return providers.MaxTranscript }

// Bundle is how the provider is registered.
func (d *Driver) Bundle() providers.Bundle { return providers.BundleOf(d, nil) }

// Status is what ReadStatus reads, from memory.
func (d *Driver) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.m.Status(d.now())
}

// HostFacts is the simulated host's; no rule applies to it.
func (d *Driver) HostFacts(context.Context) (events.HostFacts, error) {
	return events.HostFacts{Host: "drill", Architecture: runtime.GOARCH, OS: runtime.GOOS,
		Engines: []events.Engine{{Name: "drill", Version: "1"}}, Allocatable: d.capacity, ObservedAt: events.MillisUTC(d.clock())}, nil
}

// Do runs one mutation. With accept-then-late-answer it answers only then,
// also after ctx has ended: that is the fault. providers.Call keeps callers
// from waiting.
func (d *Driver) Do(ctx context.Context, op providers.Operation) providers.Outcome {
	if why := checkOperation(op); why != nil {
		return providers.RefusedWith(fault.From(why))
	}
	if ctx.Err() != nil {
		return providers.UnknownWith(gaveUp(ctx))
	}
	a, err := d.apply(CallOf(op))
	if err != nil {
		return failed(err)
	}
	if a.HostFile != nil {
		if err := writeHostFile(a.HostFile); err != nil {
			return providers.UnknownWith(fault.New(fault.Unavailable, "the export landed, but its file can't be written: %s", events.Scrub(err.Error())))
		}
	}
	switch a.Delivery {
	case Never:
		return providers.UnknownWith(d.pause(ctx, -1))
	case Late:
		if e := d.pause(context.Background(), a.After); e != nil {
			return providers.UnknownWith(e)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.m.Settle(d.now(), op.Environment, op.ID)
	case Answered:
		if e := d.pause(ctx, a.After); e != nil {
			return providers.UnknownWith(e)
		}
	}
	return a.Outcome
}

func failed(err error) providers.Outcome {
	e := fault.From(err)
	if e.Outcome == fault.NotExecuted {
		return providers.RefusedWith(e)
	}
	return providers.UnknownWith(e)
}

// checkOperation refuses what a provider could not even journal.
func checkOperation(op providers.Operation) error {
	if _, err := events.ParseOperationID(string(op.ID)); err != nil {
		return err
	}
	if _, err := events.ParseEnvironmentID(string(op.Environment)); err != nil {
		return err
	}
	if op.Alias != "" {
		if _, err := events.ParseAlias(string(op.Alias)); err != nil {
			return err
		}
	}
	if p := op.Arguments.HostPath; op.Verb == events.VerbExport && p != "" {
		return kept.CheckPath(p)
	}
	return nil
}

func writeHostFile(h *HostFile) error {
	f, err := os.OpenFile(h.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(h.Bytes)
	return errors.Join(err, f.Sync(), f.Close())
}

// pause waits for `after` (for ever if negative); it returns why it was cut
// short by ctx or Close, or nil.
func (d *Driver) pause(ctx context.Context, after time.Duration) *fault.Error {
	if after == 0 {
		return nil
	}
	var done <-chan time.Time
	if after > 0 {
		t := time.NewTimer(after)
		defer t.Stop()
		done = t.C
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return gaveUp(ctx)
	case <-d.closed:
		return fault.New(fault.Unavailable, "the drill provider was closed")
	}
}

func gaveUp(ctx context.Context) *fault.Error {
	return fault.Ended(ctx.Err(), "the drill provider did not answer: %s", ctx.Err()).WithOutcome(fault.Unknown)
}

// Close frees the directory; the environments go on, and expire by their
// deadlines, whether anybody has it open or not.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		return nil
	}
	d.shut = true
	for _, t := range d.terminals {
		t.s.Close()
	}
	clear(d.terminals)
	close(d.closed)
	return errors.Join(d.j.close(), d.lock.Unlock())
}
