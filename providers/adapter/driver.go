package adapter

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/kept"
)

// CallLimit is how long one operation may take at the provider, whether or
// not its caller still waits.
const CallLimit = 10 * time.Minute

// ProbeLimit is how long the facts of a host may take.
const ProbeLimit = 10 * time.Second

// Backend is one provider's API, without memory. Its methods are called with
// the environment locked, except for the reads of the host. An error with
// outcome not-executed says that nothing was done and nothing will be; every
// other error leaves the outcome unknown.
type Backend interface {
	// Name is the registered name.
	Name() string
	// HostFacts, DescribeImage and Preflight are those of the contract.
	HostFacts(ctx context.Context) (events.HostFacts, error)
	DescribeImage(ctx context.Context, image events.Image) (events.ImageDescription, error)
	Preflight(ctx context.Context, plan events.Plan) (providers.Preflight, error)
	// Supports says whether a verb is there at all (R89).
	Supports(v events.Verb) bool
	// Carry carries out reserve, provision, start, stop, pause, resume or
	// destroy, by sending it once. For reserve the facts bind the reference.
	Carry(ctx context.Context, c *Call) (events.Facts, error)
	// Landed looks for proof that an operation which was sent without an
	// answer has landed. It changes nothing. Evidence says what was seen.
	Landed(ctx context.Context, c *Call) (f events.Facts, proved bool, evidence string, err error)
	// Fence makes it impossible for a sent operation to land, and says how it
	// knows; an error if it can't, unimplemented if it never could.
	Fence(ctx context.Context, c *Call) (evidence string, err error)
	// Observe looks at the environment of a record.
	Observe(ctx context.Context, r *Record) (events.Facts, error)
	// Capture writes the durable files of a seat as a tar.
	Capture(ctx context.Context, c *Call, w io.Writer) error
	// Logs is that of the contract, for a record.
	Logs(ctx context.Context, r *Record, from int64, follow bool, w io.Writer) (int64, error)
	// List is what the provider lists of ours: evidence only.
	List(ctx context.Context) ([]providers.Listed, error)
	// Close releases connections.
	Close() error
}

// Call is one operation under way. Record may be changed by Carry before the
// first request, and kept by Note.
type Call struct {
	Op     providers.Operation
	Record *Record
	d      *Driver
	was    Phase // before this operation
}

// Entry is this operation's line in the journal.
func (c *Call) Entry() *Entry { return c.Record.Find(c.Op.ID) }

// Note makes before, and everything in Record.Keep, durable: before the request
// that they are about is sent.
func (c *Call) Note(before string) error {
	if e := c.Entry(); e != nil {
		e.Before = before
	}
	if err := c.d.s.save(c.Record); err != nil {
		return fault.New(fault.Unavailable, "journal of environment %s: %s", c.Op.Environment, err).WithOutcome(fault.NotExecuted)
	}
	return nil
}

// Driver is a backend with a journal.
type Driver struct {
	b     Backend
	s     *store
	clock func() time.Time
	base  context.Context
	end   context.CancelFunc
	going sync.WaitGroup

	mu    sync.Mutex
	shut  bool
	locks map[events.EnvironmentID]*envLock
}

type envLock struct {
	held  chan struct{}
	users int
}

var _ providers.Driver = (*Driver)(nil)

// Open opens or makes the journal in dir, an absolute path that belongs to one
// process at a time, and puts the backend behind it. A nil clock is the
// system's.
func Open(dir string, b Backend, clock func() time.Time) (*Driver, error) {
	s, err := openStore(dir)
	if err != nil {
		return nil, err
	}
	if clock == nil {
		clock = time.Now
	}
	base, end := context.WithCancel(context.Background())
	return &Driver{b: b, s: s, clock: clock, base: base, end: end, locks: map[events.EnvironmentID]*envLock{}}, nil
}

// Name is the backend's.
func (d *Driver) Name() string { return d.b.Name() }

// HostFacts is the backend's, within ProbeLimit: a manager starts also while an
// API hangs.
func (d *Driver) HostFacts(ctx context.Context) (events.HostFacts, error) {
	ctx, cancel := context.WithTimeout(ctx, ProbeLimit)
	defer cancel()
	f, err := d.b.HostFacts(ctx)
	if err != nil && ctx.Err() != nil {
		err = fault.New(fault.DeadlineExceeded, "provider %s did not tell of its host within %s", d.Name(), ProbeLimit).WithOutcome(fault.NotExecuted)
	}
	return f, err
}

// DescribeImage is the backend's.
func (d *Driver) DescribeImage(ctx context.Context, im events.Image) (events.ImageDescription, error) {
	return d.b.DescribeImage(ctx, im)
}

// Preflight is the backend's.
func (d *Driver) Preflight(ctx context.Context, p events.Plan) (providers.Preflight, error) {
	return d.b.Preflight(ctx, p)
}

// Inspect observes at the provider what the journal knows a reference of. What
// this journal saw destroyed is absent; what it never heard of is not found.
func (d *Driver) Inspect(ctx context.Context, id events.EnvironmentID, ref string) (events.Facts, error) {
	r, err := d.known(id, ref)
	if err != nil {
		return events.Facts{}, err
	}
	return d.observe(ctx, r)
}

func (d *Driver) known(id events.EnvironmentID, ref string) (*Record, error) {
	if _, err := events.ParseEnvironmentID(string(id)); err != nil {
		return nil, err
	}
	r, err := d.s.load(id)
	switch {
	case err != nil:
		return nil, err
	case r.Ref == "":
		return nil, fault.New(fault.NotFound, "provider %s has no reference of environment %s", d.Name(), id)
	case ref != "" && ref != r.Ref:
		return nil, fault.New(fault.NotFound, "environment %s is %s here, not the reference asked for", id, r.Ref)
	}
	return r, nil
}

// observe fills in what the journal alone knows.
func (d *Driver) observe(ctx context.Context, r *Record) (events.Facts, error) {
	if r.Phase == PhaseDestroyed {
		return events.Facts{Ref: r.Ref, State: events.StateAbsent, ObservedAt: millis(d.clock)}, nil
	}
	f, err := d.b.Observe(ctx, r)
	if err != nil {
		return f, kept.Seen("inspection", r.Environment, err)
	}
	f.Ref, f.ObservedAt = r.Ref, millis(d.clock)
	never := f.State == events.StateReserved
	if never && r.Phase != PhaseReserved && r.Phase != PhaseNone {
		f.State = events.StateCreating
	}
	return f, nil
}

// Logs is the backend's, for a reference that the journal knows.
func (d *Driver) Logs(ctx context.Context, id events.EnvironmentID, ref string, from int64, follow bool, w io.Writer) (int64, error) {
	r, err := d.known(id, ref)
	if err != nil {
		return from, err
	}
	if from < 0 {
		return from, fault.New(fault.BadRequest, "offset %d of the output: it is not negative", from)
	}
	next, err := d.b.Logs(ctx, r, from, follow, w)
	if err != nil {
		return max(next, from), kept.Seen("logs", id, err)
	}
	return max(next, from), nil
}

// List is what the provider lists, as far as the journal knows the reference:
// another manager's environments are none of ours (R92).
func (d *Driver) List(ctx context.Context) ([]providers.Listed, error) {
	ls, err := d.b.List(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ls, func(l providers.Listed) bool {
		r, err := d.s.load(l.Environment)
		return err != nil || r.Ref == "" || r.Ref != l.Ref || r.Phase == PhaseDestroyed
	}), nil
}

// Known lists the environments that the journal has, also those that are over.
func (d *Driver) Known() ([]events.EnvironmentID, error) { return d.s.ids() }

// Close gives up what is under way, whose outcome stays open in the journal,
// and frees the directory. Environments go on.
func (d *Driver) Close() error {
	d.mu.Lock()
	if d.shut {
		d.mu.Unlock()
		return nil
	}
	d.shut = true
	d.mu.Unlock()
	d.end()
	d.going.Wait()
	return errors.Join(d.b.Close(), d.s.close())
}

// lock takes the environment for one operation at a time.
func (d *Driver) lock(ctx context.Context, id events.EnvironmentID) (unlock func(), err error) {
	d.mu.Lock()
	if d.shut {
		d.mu.Unlock()
		return nil, fault.New(fault.Unavailable, "provider %s is closed", d.Name()).WithOutcome(fault.NotExecuted)
	}
	d.going.Add(1)
	l := d.locks[id]
	if l == nil {
		l = &envLock{held: make(chan struct{}, 1)}
		d.locks[id] = l
	}
	l.users++
	d.mu.Unlock()
	leave := func() {
		d.mu.Lock()
		if l.users--; l.users == 0 {
			delete(d.locks, id)
		}
		d.mu.Unlock()
		d.going.Done()
	}
	if err = ctx.Err(); err == nil {
		select {
		case l.held <- struct{}{}:
			return func() { <-l.held; leave() }, nil
		case <-ctx.Done():
			err = ctx.Err()
		case <-d.base.Done():
			err = d.base.Err()
		}
	}
	leave()
	return nil, err
}
