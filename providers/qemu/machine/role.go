//go:build linux

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/qmp"
)

// Role is the first argument that makes the program a supervisor.
const Role = "__vm"

// Patience of a start. Boots under emulation on a busy host are slow.
const (
	lockPatience = 60 * time.Second
	slotPatience = 5 * time.Minute // for a turn to boot
	bootPatience = 4 * time.Minute
	askPatience  = 30 * time.Second // for one answer of the agent or the monitor
	endPatience  = 10 * time.Second
)

// supervisor is the state of the role.
type supervisor struct {
	dir   seatdir.Dir
	start Start
	ident seatdir.Ident
	cmd   *exec.Cmd
	gone  chan struct{} // closed when QEMU has ended
	mon   *qmp.Client
	peer  *peer
	out   *custodian.Output
	ln    net.Listener
	given bool   // the guest has something of this seat
	life  func() // kept so that the lock is not released by the collector

	act    sync.Mutex // held by whoever pauses, resumes, saves
	mu     sync.Mutex
	frozen bool
	ending bool
	why    string
	wake   chan struct{} // the deadline file may have changed
	done   chan struct{} // closed when the exit proof is written
	served chan struct{}
	busy   sync.WaitGroup
}

// Main runs the role; it returns when the machine has ended and its proof is
// written. The caller's goroutine must be the one that would exit the program.
func Main(path string) int {
	// QEMU is killed when the thread that made it dies (Pdeathsig), so this
	// goroutine keeps its thread until the process ends.
	runtime.LockOSThread()
	unix.CloseOnExec(custodian.ReportFD)
	report := os.NewFile(custodian.ReportFD, "report")
	unix.Umask(0o077)
	s := &supervisor{dir: seatdir.Dir{Path: path}, why: seatdir.EndExited,
		wake: make(chan struct{}, 1), done: make(chan struct{}), served: make(chan struct{})}
	facts, err := s.take()
	r := custodian.Report{Facts: facts}
	if err != nil {
		r = custodian.Report{Fault: fault.From(err)}
	}
	if b, merr := json.Marshal(r); merr == nil {
		_, _ = report.Write(append(b, '\n'))
	}
	_ = report.Close()
	if err != nil {
		return 1
	}
	if s.cmd == nil { // another supervisor has done it already
		return 0
	}
	go s.serve()
	go s.watchDeadline()
	s.keep()
	return 0
}

// take holds the lock while it decides and starts: whoever has the lock next
// finds the operation landed, refused, or never to be started (decision 16).
func (s *supervisor) take() (*events.Facts, error) {
	if err := unix.Chdir(s.dir.Path); err != nil {
		return nil, fmt.Errorf("entering the machine's directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	unlock, err := s.dir.Lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("taking the machine's lock: %w", err)
	}
	defer unlock()
	j, err := s.dir.LoadJournal()
	if err != nil {
		return nil, err
	}
	s.dir.ID = j.Environment
	if err := s.dir.ReadJSON(seatdir.FileStart, &s.start); err != nil {
		return nil, err
	}
	e := j.Find(s.start.Operation)
	switch {
	case e == nil || e.Fingerprint != s.start.Fingerprint:
		return nil, fault.New(fault.Conflict, "start %s is not in the journal", s.start.Operation)
	case e.Standing == seatdir.Landed:
		return e.Facts, nil
	case e.Standing != seatdir.Begun:
		return nil, fault.New(fault.FailedPrecondition, "start %s was fenced off before it began", s.start.Operation)
	}
	hold := s.dir.HoldLife
	if s.start.Replace {
		if err := custodian.Supersede(s.dir); err != nil {
			return nil, custodian.GiveUp(s.dir, j, *e, err)
		}
		hold = func() (func(), bool, error) { return s.dir.TakeLife(ctx) }
	}
	life, held, err := hold()
	if err != nil || !held {
		return nil, fault.New(fault.Conflict, "another supervisor holds machine %s", s.dir.ID).WithOutcome(fault.Unknown)
	}
	s.life = life
	facts, err := s.launch(j)
	entry := seatdir.Entry{Operation: e.Operation, Verb: e.Verb, Fingerprint: e.Fingerprint, Standing: seatdir.Landed, Facts: facts}
	if err != nil && s.start.Replace { // the machine that was there has ended, and its memory with it
		s.abandon()
		return nil, custodian.GiveUp(s.dir, j, *e, err)
	}
	if err != nil {
		s.abandon()
		f := fault.From(err).WithOutcome(fault.NotExecuted)
		entry.Standing, entry.Facts, entry.Fault = seatdir.Refused, nil, f
		j.Set(entry)
		if serr := s.dir.SaveJournal(j); serr != nil {
			return nil, fmt.Errorf("%w; and the journal could not be written: %w", err, serr)
		}
		return nil, f
	}
	j.Phase = seatdir.PhaseStarted
	j.Set(entry)
	if err := s.dir.SaveJournal(j); err != nil {
		s.abandon()
		return nil, fmt.Errorf("recording the start: %w", err)
	}
	return facts, nil
}

// launch starts the machine and everything around it.
func (s *supervisor) launch(j *seatdir.Journal) (*events.Facts, error) {
	var dl seatdir.Deadline
	if err := s.dir.ReadJSON(seatdir.FileDeadline, &dl); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	boot, err := identity.BootID()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), slotPatience)
	if left, ok := dl.Left(boot, identity.Boottime(), time.Now()); ok {
		if left <= 0 {
			cancel()
			return nil, fault.New(fault.Expired, "the lifetime of %s ended at %s", s.dir.ID, dl.At.Format(time.RFC3339))
		}
		// A machine whose lifetime ends while it boots never runs.
		cancel()
		ctx, cancel = context.WithTimeout(context.Background(), min(left, slotPatience))
	}
	defer cancel()
	if s.out, err = custodian.OpenOutput(s.dir); err != nil {
		return nil, err
	}
	for _, name := range []string{seatdir.FileSocket, seatdir.FileExit, FileMonitor, FileAgent, FileMigration} {
		if err := os.Remove(s.dir.File(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	if s.ln, err = net.Listen("unix", seatdir.FileSocket); err != nil {
		return nil, err
	}
	free, err := takeSlot(ctx, s.start.SlotsDir)
	if err != nil {
		return nil, err
	}
	defer free()
	if err := s.boot(ctx); err != nil {
		return nil, err
	}
	self, err := identity.Of(os.Getpid())
	if err == nil {
		s.ident.Custodian = self
		err = s.dir.WriteBefore(seatdir.FileIdent, s.ident)
	}
	if err != nil {
		return nil, err
	}
	return &events.Facts{
		Ref: j.Ref, State: events.StateRunning, Network: s.start.Network, ExpiresAt: dl.At,
		Incarnation: custodian.Incarnation(self), ObservedAt: events.MillisUTC(time.Now()), Custody: &self,
	}, nil
}

// abandon ends what was started when the start failed.
func (s *supervisor) abandon() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		<-s.gone
	}
	if s.ln != nil {
		_ = s.ln.Close()
	}
}

// keep waits for the end of the command or of the machine, ends the machine,
// and writes the proof.
func (s *supervisor) keep() {
	var code *int
	select {
	case c := <-s.peer.exited:
		code = &c
	case <-s.gone:
		select { // its last word may have come just before
		case c := <-s.peer.exited:
			code = &c
		case <-s.peer.broken:
			select {
			case c := <-s.peer.exited:
				code = &c
			default:
			}
		}
	}
	s.mu.Lock()
	s.ending = true
	why := s.why
	s.mu.Unlock()
	_ = s.cmd.Process.Kill() // nothing in it is kept: no disk, no more output
	<-s.gone
	s.out.Close()
	proof := seatdir.Exit{Seat: s.ident.Seat, Why: why, Code: code, At: events.MillisUTC(time.Now())}
	for s.dir.WriteJSON(seatdir.FileExit, proof) != nil {
		// A full disk. Ending without the proof would lose the exit code.
		if ok, err := s.dir.Exists(); err == nil && !ok {
			break
		}
		time.Sleep(time.Second)
	}
	_ = s.ln.Close()
	close(s.done)
	<-s.served
	told := make(chan struct{})
	go func() {
		s.busy.Wait()
		close(told)
	}()
	select { // those who listen get the last bytes; those who don't read are not waited for
	case <-told:
	case <-time.After(endPatience):
	}
}
