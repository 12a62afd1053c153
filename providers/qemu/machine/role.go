//go:build linux

package machine

import (
	"context"
	"net"
	"os/exec"
	"sync"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/custodian"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/qmp"
)

// Role is the first argument that makes the program a supervisor.
const Role = "__vm"

// Patience of a start. Boots under emulation on a busy host are slow.
const (
	slotPatience = 5 * time.Minute // for a turn to boot
	bootPatience = 4 * time.Minute
	askPatience  = 30 * time.Second // for one answer of the agent or the monitor
)

// supervisor keeps a seat that is a virtual machine.
type supervisor struct {
	*custodian.Post
	start Start
	who   events.Custody // QEMU
	cmd   *exec.Cmd
	gone  chan struct{} // closed when QEMU has ended
	mon   *qmp.Client
	peer  *peer
	said  *hush
	given bool              // the guest has something of this seat
	small map[string][]byte // material that goes with the launch

	act    sync.Mutex // held by whoever pauses, resumes, saves
	thawed *sync.Cond // of act: the machine goes on, or ends
	// wasFrozen says that it was paused before it stood still; needs Mu.
	wasFrozen bool
}

// Main runs the role, as custodian.Post.Run says.
func Main(path string) int {
	s := newSupervisor(path)
	return s.Run(s)
}

func newSupervisor(path string) *supervisor {
	p := custodian.NewPost(path)
	s := &supervisor{Post: p, said: newHush(p)}
	s.thawed = sync.NewCond(&s.act)
	return s
}

// Order implements custodian.Seat.
func (s *supervisor) Order() (custodian.Order, error) {
	err := s.Dir.ReadJSON(seatdir.FileStart, &s.start)
	return custodian.Order{Operation: s.start.Operation, Fingerprint: s.start.Fingerprint, Replace: s.start.Replace, Beside: s.start.Beside, Network: s.start.Network, Ready: s.start.Launch.Ready}, err
}

// Launch implements custodian.Seat.
func (s *supervisor) Launch(ctx context.Context) (seatdir.Ident, error) {
	ctx, cancel := context.WithTimeout(ctx, slotPatience)
	defer cancel()
	if err := s.Drop(FileMonitor, FileAgent, FileMigration); err != nil {
		return seatdir.Ident{}, err
	}
	if err := s.Dir.SweepGroups("", endPatience); err != nil { // of starts that were cut off
		return seatdir.Ident{}, err
	}
	free, err := takeSlot(ctx, s.start.SlotsDir)
	if err != nil {
		return seatdir.Ident{}, err
	}
	defer free()
	err = s.boot(ctx)
	if err == nil {
		err = s.during(ctx, s.goes)
	}
	return seatdir.Ident{Seat: s.who, Group: s.start.Group}, s.bootFault(err)
}

// Settle implements custodian.Seat: nothing was put aside.
func (s *supervisor) Settle(bool) error { return nil }

// Do implements custodian.Seat.
func (s *supervisor) Do(r custodian.Request, _ *custodian.Response) (after func(net.Conn), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	if r.Ask != custodian.AskHold {
		return nil, s.do(ctx, r)
	}
	err = s.acting(func() (err error) {
		after, err = s.stand(ctx, r.Data)
		return err
	})
	return after, err
}

func (s *supervisor) do(ctx context.Context, r custodian.Request) error {
	switch r.Ask {
	case custodian.AskFreeze:
		return s.acting(func() error {
			if r.Change && s.Frozen {
				return custodian.Unchanged(true)
			}
			return s.pause(ctx)
		})
	case custodian.AskThaw:
		return s.actingThen(func() (func(), error) {
			if r.Change && !s.Frozen {
				return nil, custodian.Unchanged(false)
			}
			return s.resume(ctx)
		})
	case custodian.AskStop:
		return s.stop(r.Grace)
	case AskSave:
		return s.acting(func() error { return s.save(r.Data) })
	case custodian.AskInput, custodian.AskResize:
		return s.acting(func() error { return s.terminal(ctx, r) })
	}
	return fault.New(fault.Unimplemented, "a microVM's supervisor does not know %q", r.Ask)
}

// Paused implements custodian.Seat. To stand still is no pause.
func (s *supervisor) Paused() bool { return s.Frozen && (!s.Standing || s.wasFrozen) }

// Keep implements custodian.Seat: it waits for the end of the command or of the
// machine, and ends the machine.
func (s *supervisor) Keep() (code *int) {
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
	s.Mu.Lock()
	s.Ending = true
	s.Mu.Unlock()
	s.thawed.Broadcast()
	s.Clear() // nothing in it is kept: no disk, no more output
	return code
}

// Kill implements custodian.Seat.
func (s *supervisor) Kill() { _ = s.cmd.Process.Kill() }

// Clear implements custodian.Seat. After it another machine can begin.
func (s *supervisor) Clear() {
	if s.cmd != nil {
		s.Kill()
		<-s.gone
	}
	_ = s.start.Group.Remove(endPatience)
	_ = s.Drop(s.start.name(FileMonitor), s.start.name(FileAgent), s.start.name(FileMigration)) // the next one finds what stayed
}
