//go:build linux

package custodian

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// Role is the first argument that makes the program a custodian.
const Role = "__custodian"

// ReportFD is where a custodian tells its starter, once, what became of the
// start: one Report as a line of JSON.
const ReportFD = 3

// lockPatience is how long a custodian waits for its seat's lock.
const lockPatience = 60 * time.Second

// Report is the outcome of a start as the custodian saw it. Either is set.
type Report struct {
	Facts *events.Facts `json:"facts,omitempty"`
	Fault *fault.Error  `json:"fault,omitempty"`
}

// custodian is the state of the role.
type custodian struct {
	dir    seatdir.Dir
	start  seatdir.Start
	ident  seatdir.Ident
	master *os.File
	out    *output
	sign   *signal
	drain  chan struct{} // closed when the terminal gave its last byte
	ln     net.Listener
	life   func() // kept so that the lock is not released by the collector

	mu     sync.Mutex
	frozen bool
	holds  int            // connections that keep it frozen for a capture
	ending bool           // from here nothing is frozen or asked to stop again
	why    string         // what exit.json will say
	wake   chan struct{}  // the deadline file may have changed
	done   chan struct{}  // closed when the exit proof is written
	served chan struct{}  // closed when nothing more is accepted
	busy   sync.WaitGroup // answers under way
	typing sync.Mutex     // one input at a time, so that none is torn by another
}

// Main runs the role; it returns when the seat has ended and its proof is
// written. The caller's goroutine must be the one that would exit the program.
func Main(path string) int {
	// The seat is killed when the thread that made it dies (Pdeathsig), so
	// this goroutine keeps its thread until the process ends.
	runtime.LockOSThread()
	unix.CloseOnExec(ReportFD)
	report := os.NewFile(ReportFD, "report")
	unix.Umask(0o077)
	c := &custodian{
		dir: seatdir.Dir{Path: path}, why: seatdir.EndExited,
		wake: make(chan struct{}, 1), done: make(chan struct{}), served: make(chan struct{}), drain: make(chan struct{}),
	}
	facts, err := c.take()
	r := Report{Facts: facts}
	if err != nil {
		r = Report{Fault: fault.From(err)}
	}
	b, merr := json.Marshal(r)
	if merr == nil {
		_, _ = report.Write(append(b, '\n'))
	}
	_ = report.Close()
	if err != nil {
		return 1
	}
	if c.master == nil { // another custodian has done it already
		return 0
	}
	go c.serve()
	go c.watchDeadline()
	c.keep()
	return 0
}

// take holds the lock while it decides and starts: whoever has the lock next
// finds the operation landed, refused, or never to be started (decision 16).
func (c *custodian) take() (*events.Facts, error) {
	if err := unix.Chdir(c.dir.Path); err != nil {
		return nil, fmt.Errorf("entering the seat's directory: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("becoming a subreaper: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	unlock, err := c.dir.Lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("taking the seat's lock: %w", err)
	}
	defer unlock()
	j, err := c.dir.LoadJournal()
	if err != nil {
		return nil, err
	}
	c.dir.ID = j.Environment
	if err := c.dir.ReadJSON(seatdir.FileStart, &c.start); err != nil {
		return nil, err
	}
	e := j.Find(c.start.Operation)
	switch {
	case e == nil || e.Fingerprint != c.start.Fingerprint:
		return nil, fault.New(fault.Conflict, "start %s is not in the journal", c.start.Operation)
	case e.Standing == seatdir.Landed:
		return e.Facts, nil
	case e.Standing != seatdir.Begun:
		return nil, fault.New(fault.FailedPrecondition, "start %s was fenced off before it began", c.start.Operation)
	}
	hold := c.dir.HoldLife
	if c.start.Replace {
		if err := Supersede(c.dir); err != nil {
			return nil, c.gaveUp(j, *e, err)
		}
		hold = func() (func(), bool, error) { return c.dir.TakeLife(ctx) }
	}
	life, held, err := hold()
	if err != nil || !held {
		return nil, fault.New(fault.Conflict, "another custodian holds seat %s", c.dir.ID).WithOutcome(fault.Unknown)
	}
	c.life = life
	facts, err := c.replace(j)
	switch {
	case err != nil && c.start.Replace:
		return nil, c.gaveUp(j, *e, err)
	case err != nil:
		f := fault.From(err).WithOutcome(fault.NotExecuted)
		j.Set(seatdir.Entry{Operation: e.Operation, Verb: e.Verb, Fingerprint: e.Fingerprint, Standing: seatdir.Refused, Fault: f})
		if serr := c.dir.SaveJournal(j); serr != nil {
			return nil, fmt.Errorf("%w; and the journal could not be written: %w", err, serr)
		}
		return nil, f
	}
	j.Phase = seatdir.PhaseStarted
	j.Set(seatdir.Entry{Operation: e.Operation, Verb: e.Verb, Fingerprint: e.Fingerprint, Standing: seatdir.Landed, Facts: facts})
	if err := c.dir.SaveJournal(j); err != nil {
		c.abandon()
		return nil, fmt.Errorf("recording the start: %w", err)
	}
	if c.start.Replace {
		_ = c.dir.SettleHome(true) // what stays is dropped by the next replacement, and by the end
	}
	return facts, nil
}

// replace is launch, in a replacement with the home that was put together.
func (c *custodian) replace(j *seatdir.Journal) (*events.Facts, error) {
	if c.start.Replace {
		if err := c.dir.TakeHome(); err != nil {
			return nil, err
		}
	}
	return c.launch(j)
}

// gaveUp settles a replacement that failed: the seat may have ended for it, so
// that it was not without effect, and it can never land. The home is as it was.
func (c *custodian) gaveUp(j *seatdir.Journal, e seatdir.Entry, why error) error {
	if err := c.dir.SettleHome(false); err != nil {
		return fmt.Errorf("%w; and the home could not be put back: %w", why, err)
	}
	return GiveUp(c.dir, j, e, why)
}

// launch starts the seat and everything around it; on an error nothing of it
// is left.
func (c *custodian) launch(j *seatdir.Journal) (_ *events.Facts, err error) {
	var dl seatdir.Deadline
	if err := c.dir.ReadJSON(seatdir.FileDeadline, &dl); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	boot, err := identity.BootID()
	if err != nil {
		return nil, err
	}
	if left, ok := dl.Left(boot, identity.Boottime(), time.Now()); ok && left <= 0 {
		return nil, fault.New(fault.Expired, "the lifetime of %s ended at %s", c.dir.ID, dl.At.Format(time.RFC3339))
	}
	if c.out, err = newOutput(c.dir); err != nil {
		return nil, err
	}
	if err := os.Remove(c.dir.File(seatdir.FileSocket)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// Relative, because the full path may be longer than a socket's may be.
	if c.ln, err = net.Listen("unix", seatdir.FileSocket); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = c.ln.Close()
		}
	}()
	for _, old := range []string{seatdir.FileExit, seatdir.FileReady} {
		if err := os.Remove(c.dir.File(old)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	c.sign = newSignal(c)
	if err := c.startSeat(); err != nil {
		return nil, err
	}
	self, err := identity.Of(os.Getpid())
	if err == nil {
		c.ident.Custodian, c.ident.Group = self, c.start.Group
		err = c.dir.WriteBefore(seatdir.FileIdent, c.ident)
	}
	if err != nil {
		c.abandon()
		return nil, err
	}
	return &events.Facts{
		Ref: j.Ref, State: events.StateRunning, Network: c.start.Seat.Network, ExpiresAt: dl.At,
		Incarnation: Incarnation(self), ObservedAt: events.MillisUTC(time.Now()), Custody: &self,
	}, nil
}

// Incarnation names one start of a seat: another boot, another custodian,
// another incarnation.
func Incarnation(c events.Custody) string {
	return fmt.Sprintf("%s-%d-%d", c.BootID, c.PID, c.StartTime)
}
