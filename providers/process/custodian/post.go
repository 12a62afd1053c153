//go:build linux

package custodian

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/seatdir"
)

// ReportFD is where a supervisor tells its starter, once, what became of the
// start: one Report as a line of JSON.
const ReportFD = 3

// goodbyePatience is how long it waits for those who read its last answers.
const goodbyePatience = 10 * time.Second

// Report is the outcome of a start as the supervisor saw it. Either is set.
type Report struct {
	Facts *events.Facts `json:"facts,omitempty"`
	Fault *fault.Error  `json:"fault,omitempty"`
}

// Order is which start a supervisor is to carry out.
type Order struct {
	Operation   events.OperationID
	Fingerprint string
	Replace     bool   // it takes the place of whatever holds the seat
	Beside      bool   // and is made ready beside it; the seat is a Beside
	Network     string // as the facts are to say
	Ready       *events.ReadySign
}

// Seat is what differs between the kinds of seats that a supervisor keeps: a
// tree of processes, a virtual machine.
type Seat interface {
	// Order reads what is to be started.
	Order() (Order, error)
	// Launch starts the seat; the context ends with its lifetime. It tells who
	// the seat is.
	Launch(context.Context) (seatdir.Ident, error)
	// Settle ends a replacement as one that took the place, or as one that
	// can't any more.
	Settle(landed bool) error
	// Do carries out a request that Post does not know. What it returns beside
	// an error is run on the connection after the answer; nil: nothing.
	Do(Request, *Response) (after func(net.Conn), err error)
	// Paused says whether it stands still; Mu is held.
	Paused() bool
	// Keep returns the exit code, if there is one, when the seat has ended and
	// nothing of it is left. From there Ending is set.
	Keep() (code *int)
	// Kill ends the seat without a grace; Keep sees it.
	Kill()
	// Clear ends what is left of the seat and gives back what it held.
	Clear()
}

// Post is what every supervisor has, whatever its seat is made of: the right to
// be the one, its control socket, the seat's output, and the way to its end.
type Post struct {
	Dir   seatdir.Dir
	Ident seatdir.Ident
	Done  chan struct{} // closed when the exit proof is written
	Sign  *Sign         // from Launch on

	Mu     sync.Mutex
	Frozen bool
	// Standing says that the seat stands still, because another one is about to
	// take its place; whether that has happened is not known yet.
	Standing bool
	Ending   bool   // from here nothing is frozen or asked to stop again
	Why      string // what the exit proof will say

	yielded bool // the place is taken: no exit is proved

	seat   Seat
	out    *output
	ln     net.Listener
	life   func()         // kept so that the lock is not released by the collector
	wake   chan struct{}  // the deadline file may have changed
	served chan struct{}  // closed when nothing more is accepted
	busy   sync.WaitGroup // answers under way
}

// NewPost is the post of the seat in a directory.
func NewPost(path string) *Post {
	return &Post{
		Dir: seatdir.Dir{Path: path}, Why: seatdir.EndExited,
		Done: make(chan struct{}), wake: make(chan struct{}, 1), served: make(chan struct{}),
	}
}

// Run keeps the seat; it returns the program's exit code when the seat has ended
// and its proof is written. The caller's goroutine must be the one that would
// exit the program.
func (p *Post) Run(seat Seat) int {
	// The seat is killed when the thread that made it dies (Pdeathsig), so
	// this goroutine keeps its thread until the process ends.
	runtime.LockOSThread()
	unix.CloseOnExec(ReportFD)
	report := os.NewFile(ReportFD, "report")
	unix.Umask(0o077)
	p.seat = seat
	facts, err := p.take()
	r := Report{Facts: facts}
	if err != nil {
		r = Report{Fault: fault.From(err)}
	}
	if b, err := json.Marshal(r); err == nil {
		_, _ = report.Write(append(b, '\n'))
	}
	_ = report.Close()
	if err != nil {
		return 1
	}
	if p.life == nil { // another supervisor has done it already
		return 0
	}
	go p.serve()
	go p.watchDeadline()
	p.end(seat.Keep())
	return 0
}

// end writes the proof of a seat that has ended (R67), and lets those who listen
// have the last bytes and answers.
func (p *Post) end(code *int) {
	p.out.close()
	p.prove(code, events.MillisUTC(time.Now()))
	p.clear()
	close(p.Done)
	<-p.served
	told := make(chan struct{})
	go func() {
		p.busy.Wait()
		close(told)
	}()
	select { // somebody who does not read is not waited for
	case <-told:
	case <-time.After(goodbyePatience):
	}
}

// Incarnation names one start of a seat: another boot, another supervisor,
// another incarnation.
func Incarnation(c events.Custody) string {
	return fmt.Sprintf("%s-%d-%d", c.BootID, c.PID, c.StartTime)
}
