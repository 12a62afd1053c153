//go:build linux

package custodian

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// holderRole makes the test binary the holder of a plain seat.
const holderRole = "__plain"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == holderRole {
		s := &plain{Post: NewPost(os.Args[2])}
		step = s.at
		os.Exit(s.Run(s))
	}
	os.Exit(m.Run())
}

// plain is the least seat that can stand beside another one: a process that
// sleeps, and is stopped by a signal.
type plain struct {
	*Post
	cmd   *exec.Cmd
	gone  chan struct{}
	order plainOrder
}

type plainOrder struct {
	Order
	At    string // the step at which something happens
	What  string // die, or kill-old
	Fails string // Prepare or Begin
	Stays bool   // the seat is not ended with its holder
}

func (s *plain) at(name string) {
	if name != s.order.At {
		return
	}
	var old seatdir.Ident
	_ = s.Dir.ReadJSON(seatdir.FileIdent, &old)
	switch s.order.What {
	case "die":
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	case "kill-old":
		_ = identity.Signal(old.Custodian, unix.SIGKILL)
		_ = ended(old.Custodian, time.Minute)
	}
}

func (s *plain) Order() (Order, error) {
	err := s.Dir.ReadJSON(seatdir.FileStart, &s.order)
	return s.order.Order, err
}

func (s *plain) Launch(ctx context.Context) (seatdir.Ident, error) {
	id, err := s.Prepare(ctx)
	return id, errors.Join(err, s.Begin(ctx))
}

func (s *plain) Prepare(context.Context) (id seatdir.Ident, err error) {
	if s.order.Fails == "Prepare" {
		return id, errors.New("it does not load")
	}
	s.cmd, s.gone = exec.Command("sleep", "1000"), make(chan struct{})
	if !s.order.Stays {
		s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}
	if err := s.cmd.Start(); err != nil {
		return id, err
	}
	_ = s.cmd.Process.Signal(unix.SIGSTOP)
	id.Seat, err = identity.Of(s.cmd.Process.Pid)
	go func() { _ = s.cmd.Wait(); close(s.gone) }()
	return id, err
}

// Begin refuses to run beside another one that does (law 2). What lost its holder
// while it stood still is woken by the kernel only to end.
func (s *plain) Begin(context.Context) error {
	var old seatdir.Ident
	if err := s.Dir.ReadJSON(seatdir.FileIdent, &old); err == nil && alive(old.Custodian) && running(old.Seat) && alive(old.Custodian) {
		return errors.New("two run at a time")
	}
	if s.order.Fails == "Begin" {
		return errors.New("it does not wake up")
	}
	return s.cmd.Process.Signal(unix.SIGCONT)
}

func (s *plain) Taken()            {}
func (s *plain) Settle(bool) error { return nil }
func (s *plain) Paused() bool      { return false }
func (s *plain) Kill()             { _ = s.cmd.Process.Kill() }
func (s *plain) Keep() *int        { <-s.gone; return nil }
func (s *plain) Clear() {
	if s.cmd != nil {
		s.Kill()
		<-s.gone
	}
}

func (s *plain) Do(r Request, _ *Response) (func(net.Conn), error) {
	var st Standing
	if err := json.Unmarshal(r.Data, &st); r.Ask != AskHold || err != nil {
		return nil, fault.New(fault.Unimplemented, "%s %v", r.Ask, err)
	}
	_ = s.cmd.Process.Signal(unix.SIGSTOP)
	for running(s.Ident.Seat) {
		time.Sleep(time.Millisecond)
	}
	return func(c net.Conn) {
		if s.Stood(c, st) {
			s.Yield()
			return
		}
		if alive(st.Next) { // told by what the test finds at the end
			return
		}
		_ = s.cmd.Process.Signal(unix.SIGCONT)
	}, nil
}

func alive(c events.Custody) bool {
	h, err := identity.Open(c)
	if err == nil {
		h.Close()
	}
	return err == nil
}

// running says that a process lives and is not stopped.
func running(c events.Custody) bool {
	if !alive(c) {
		return false
	}
	_, state, err := identity.StartTime(c.PID)
	return err == nil && state != 'T'
}

// place is an environment's directory and what the test does to it.
type place struct {
	*testing.T
	dir seatdir.Dir
	n   int
}

// begins writes an order and starts a holder that carries it out; it returns
// the report, which is empty of one that died, and what says that it has ended.
func (p *place) begins(o plainOrder) (Report, *exec.Cmd) {
	p.Helper()
	p.n++
	o.Operation, o.Fingerprint = events.OperationID(fmt.Sprintf("operation-%08d", p.n)), "f"
	j, err := p.dir.LoadJournal()
	j.Environment = p.dir.ID
	j.Set(seatdir.Entry{Operation: o.Operation, Verb: events.VerbRestore, Fingerprint: "f", Standing: seatdir.Begun})
	if err := errors.Join(err, p.dir.WriteJSON(seatdir.FileStart, o), p.dir.SaveJournal(j)); err != nil {
		p.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		p.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(os.Args[0], holderRole, p.dir.Path)
	cmd.ExtraFiles, cmd.Stderr = []*os.File{w}, os.Stderr
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	_ = w.Close()
	var rep Report
	if line, err := bufio.NewReader(r).ReadBytes('\n'); err == nil {
		if err := json.Unmarshal(line, &rep); err != nil {
			p.Fatal(err)
		}
	}
	over := make(chan struct{})
	go func() { _ = cmd.Wait(); close(over) }()
	p.Cleanup(func() { _ = cmd.Process.Kill(); <-over })
	return rep, cmd
}

func (p *place) standing() seatdir.Standing {
	p.Helper()
	j, err := p.dir.LoadJournal()
	if err != nil {
		p.Fatal(err)
	}
	return j.Operations[len(j.Operations)-1].Standing
}

func (p *place) until(what string, ok func() bool) {
	p.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("waited in vain: %s", what)
		}
	}
}

// Whoever is killed between whichever steps: up to the journal's word the old
// seat goes on, from it on the new one has the place, two never run, and nobody
// is left over (laws 1 and 2).
func TestReplacedBesideWhatRuns(t *testing.T) {
	for name, c := range map[string]struct {
		order plainOrder
		want  seatdir.Standing
		lost  bool // the new one has ended with its holder
	}{
		"nothing happens":    {plainOrder{}, seatdir.Landed, false},
		"it does not load":   {plainOrder{Fails: "Prepare"}, seatdir.Refused, false},
		"it does not wake":   {plainOrder{Fails: "Begin"}, seatdir.Refused, false},
		"killed ready":       {plainOrder{At: "prepared", What: "die"}, seatdir.Begun, false},
		"killed still":       {plainOrder{At: "still", What: "die", Stays: true}, seatdir.Begun, false},
		"killed begun":       {plainOrder{At: "begun", What: "die", Stays: true}, seatdir.Begun, false},
		"killed committed":   {plainOrder{At: "committed", What: "die"}, seatdir.Landed, true},
		"killed named":       {plainOrder{At: "named", What: "die"}, seatdir.Landed, true},
		"killed alone":       {plainOrder{At: "alone", What: "die"}, seatdir.Landed, true},
		"old killed ready":   {plainOrder{At: "prepared", What: "kill-old"}, seatdir.Landed, false},
		"old killed still":   {plainOrder{At: "still", What: "kill-old"}, seatdir.Landed, false},
		"old killed begun":   {plainOrder{At: "begun", What: "kill-old"}, seatdir.Landed, false},
		"old killed, landed": {plainOrder{At: "committed", What: "kill-old"}, seatdir.Landed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &place{T: t, dir: seatdir.Dir{Path: t.TempDir(), ID: "0198c5a0-0000-7000-8000-000000000001"}}
			if rep, _ := p.begins(plainOrder{}); rep.Facts == nil {
				t.Fatalf("the first: %v", rep.Fault)
			}
			var old, now seatdir.Ident
			if err := p.dir.ReadJSON(seatdir.FileIdent, &old); err != nil {
				t.Fatal(err)
			}
			c.order.Replace, c.order.Beside = true, true
			rep, next := p.begins(c.order)
			if got := p.standing(); got != c.want {
				t.Fatalf("the journal says %s, want %s; %+v", got, c.want, rep.Fault)
			}
			if rep.Fault != nil && rep.Fault.Outcome != fault.NotExecuted {
				t.Errorf("it reports %+v", rep.Fault)
			}
			if c.want == seatdir.Landed {
				p.until("the end of the old one", func() bool { return !alive(old.Custodian) && !alive(old.Seat) })
			} else {
				p.until("the old one runs", func() bool { return running(old.Seat) })
			}
			if err := p.dir.ReadJSON(seatdir.FileIdent, &now); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(p.dir.File(seatdir.FileExit)); err == nil {
				t.Error("an exit is proved, of a seat that was replaced or goes on")
			}
			switch {
			case c.lost:
				p.until("the end of the new one", func() bool { return !alive(now.Custodian) && !alive(now.Seat) })
				return
			case c.want == seatdir.Landed && (now.Custodian.PID != next.Process.Pid || !running(now.Seat)):
				t.Errorf("who holds it: %+v, not %d", now, next.Process.Pid)
			case c.want != seatdir.Landed && now != old:
				t.Errorf("who holds it: %+v, not %+v", now, old)
			}
			if _, err := Ask(t.Context(), p.dir, now.Custodian, Request{Ask: AskStatus}); err != nil {
				t.Errorf("its holder: %v", err)
			}
			// The next replacement finds nothing in its way.
			c.order = plainOrder{Order: Order{Replace: true, Beside: true}}
			if rep, _ := p.begins(c.order); rep.Facts == nil || p.standing() != seatdir.Landed {
				t.Errorf("the next one: %v", rep.Fault)
			}
			if left, _ := filepath.Glob(p.dir.File("*next*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
