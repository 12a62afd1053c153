//go:build linux

package custodian

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// Beside is a Seat that can be made ready while the one whose place it takes
// goes on. Two of one environment never run: the old one stands still from
// before Begin, and goes on only when the new one is proved to have ended.
type Beside interface {
	Seat
	// Prepare makes and verifies everything, up to where one step makes the seat
	// run. Nothing of it is in the way of the one that runs.
	Prepare(context.Context) (seatdir.Ident, error)
	// Begin makes it run, and returns when it is seen to. What it says is held
	// back until Taken: it is not the seat yet.
	Begin(context.Context) error
	// Taken tells it that it is.
	Taken()
}

// standPatience bounds how long the old seat may take to stand still;
// beginPatience, for how long it does while the new one shows that it runs.
const (
	standPatience = 45 * time.Second
	beginPatience = 60 * time.Second
)

// The new holder's control socket and identity, until they take the old ones'
// names: a rename needs no room on the disk.
const (
	fileNext      = "c.next.sock"
	fileIdentNext = "ident.next.json"
)

// step is called between the steps of a replacement; tests die there.
var step = func(string) {}

// takeBeside puts a new seat in the place of the one that runs, in this order:
//
//	new is ready | old stands still | new runs | the journal says so | old ends
//
// The journal's write is the one step that decides. A holder that is killed
// before it leaves the old seat, which goes on when its connection breaks; one
// that is killed after it was a seat that lost its holder.
func (p *Post) takeBeside(j *seatdir.Journal, e seatdir.Entry, o Order) (*events.Facts, error) {
	next := p.seat.(Beside)
	var old seatdir.Ident
	if err := p.Dir.ReadJSON(seatdir.FileIdent, &old); err != nil {
		return nil, fmt.Errorf("finding who holds the seat: %w", err)
	}
	stand, facts, err := p.ready(next, old, j.Ref, o)
	if err == nil {
		err = p.commit(j, e, facts)
	}
	if err != nil {
		p.clear()
		_ = p.Drop(fileNext, fileIdentNext)
		stand.release()
		return nil, p.keepOld(j, e, err)
	}
	step("committed") // from here on this is the seat, whatever happens to this process
	if err := errors.Join(os.Rename(fileNext, seatdir.FileSocket), os.Rename(fileIdentNext, seatdir.FileIdent)); err != nil {
		return nil, fmt.Errorf("taking the place of the seat: %w", err)
	}
	step("named")
	stand.yield()
	if err := p.succeed(old); err != nil {
		return nil, err
	}
	step("alone")
	next.Taken()
	return facts, nil
}

// ready brings both to where only the journal's word is missing. The stand is
// for the caller to end.
func (p *Post) ready(next Beside, old seatdir.Ident, ref string, o Order) (s *stand, facts *events.Facts, err error) {
	dl, ctx, cancel, err := p.lifetime()
	if err != nil {
		return nil, nil, err
	}
	defer cancel()
	if p.Ident, err = next.Prepare(ctx); err != nil {
		return nil, nil, err
	}
	if p.Ident.Custodian, err = identity.Of(os.Getpid()); err != nil {
		return nil, nil, err
	}
	step("prepared")
	if s, err = standStill(ctx, p.Dir, old, Standing{Operation: o.Operation, Next: p.Ident.Seat}); err != nil {
		return nil, nil, err
	}
	step("still")
	if p.out, err = newOutput(p.Dir); err != nil { // the old one writes no more
		return s, nil, err
	}
	p.Sign = newSign(p.Dir, o.Ready)
	p.Sign.watch(p.out)
	if err := errors.Join(p.Drop(fileNext), p.Dir.WriteBefore(fileIdentNext, p.Ident)); err != nil {
		return s, nil, err
	}
	if err := p.listen(fileNext); err != nil {
		return s, nil, err
	}
	bctx, cancel := context.WithTimeout(ctx, beginPatience)
	defer cancel()
	if err := next.Begin(bctx); err != nil {
		return s, nil, err
	}
	step("begun")
	return s, p.facts(ref, o, dl), nil
}

// commit is the step that decides which of the two is the seat.
func (p *Post) commit(j *seatdir.Journal, e seatdir.Entry, facts *events.Facts) error {
	was := e
	e.Standing, e.Facts, e.Fault = seatdir.Landed, facts, nil
	j.Set(e)
	err := p.Dir.SaveJournal(j)
	if err == nil {
		return nil
	}
	// What the disk has counts, also where its sync failed.
	if now, rerr := p.Dir.LoadJournal(); rerr == nil && landed(now, e.Operation) {
		return nil
	}
	j.Set(was)
	return fmt.Errorf("recording the restore: %w", err)
}

func landed(j *seatdir.Journal, id events.OperationID) bool {
	e := j.Find(id)
	return e != nil && e.Standing == seatdir.Landed
}

// keepOld settles a replacement that failed while the old seat was there: it
// was without effect.
func (p *Post) keepOld(j *seatdir.Journal, e seatdir.Entry, why error) error {
	f := fault.From(why).WithOutcome(fault.NotExecuted)
	f.Message = "nothing was replaced, and what was there goes on: " + f.Message
	e.Standing, e.Facts, e.Fault = seatdir.Refused, nil, f
	j.Set(e)
	if err := p.Dir.SaveJournal(j); err != nil {
		return fmt.Errorf("%w; and the journal could not be written: %w", why, err)
	}
	return f
}

// succeed waits for the end of the seat that was there and takes what only one
// can have. An old holder that does not end is killed, and its seat with it.
func (p *Post) succeed(old seatdir.Ident) error {
	if err := ended(old.Custodian, supersedePatience); err != nil {
		return err
	}
	if err := ended(old.Seat, 0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	life, _, err := p.Dir.TakeLife(ctx)
	if err != nil {
		return fmt.Errorf("taking the seat over: %w", err)
	}
	p.life = life
	return p.Drop(seatdir.FileExit, seatdir.FileReady)
}

// ended returns when a process has ended: by itself in that time, or killed.
func ended(c events.Custody, patience time.Duration) error {
	h, err := identity.Open(c)
	if errors.Is(err, identity.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.Close()
	if h.WaitExit(patience) {
		return nil
	}
	if err := h.Signal(unix.SIGKILL); err != nil && !errors.Is(err, identity.ErrGone) {
		return err
	}
	if !h.WaitExit(supersedePatience) {
		return fault.New(fault.Unavailable, "process %d does not end", c.PID)
	}
	return nil
}

// Standing is what a holder is told whose seat is to stand still (AskHold): for
// which operation, and who may run meanwhile.
type Standing struct {
	Operation events.OperationID `json:"operation"`
	Next      events.Custody     `json:"next"`
}

// stand is the connection on which the old seat stands still; nil: it has ended.
type stand struct{ c net.Conn }

// yielding is what is written on that connection when the place is taken.
const yielding = 'y'

// standStill has the old seat stand still. One that has ended is proved to have.
func standStill(ctx context.Context, dir seatdir.Dir, old seatdir.Ident, st Standing) (*stand, error) {
	ctx, cancel := context.WithTimeout(ctx, standPatience)
	defer cancel()
	h, err := identity.Open(old.Custodian)
	if errors.Is(err, identity.ErrGone) {
		return nil, ended(old.Seat, 0)
	}
	if err != nil {
		return nil, err
	}
	defer h.Close()
	b, err := json.Marshal(st)
	if err != nil {
		return nil, err
	}
	c, _, err := ask(ctx, dir, old.Custodian, Request{Ask: AskHold, Data: b})
	if err == nil {
		return &stand{c}, nil
	}
	if c != nil {
		_ = c.Close()
	}
	if h.WaitExit(time.Second) { // it was ending by itself
		return nil, ended(old.Seat, 0)
	}
	return nil, fmt.Errorf("having the seat stand still: %w", err)
}

// release lets the old seat go on, and returns when it does.
func (s *stand) release() {
	if s == nil {
		return
	}
	if u, ok := s.c.(bufferedConn).Conn.(*net.UnixConn); ok && u.CloseWrite() == nil {
		_ = s.c.SetReadDeadline(time.Now().Add(freezePatience))
		_, _ = s.c.Read(make([]byte, 1))
	}
	_ = s.c.Close()
}

// yield tells the old holder that its place is taken.
func (s *stand) yield() {
	if s != nil {
		_, _ = s.c.Write([]byte{yielding})
		_ = s.c.Close()
	}
}
