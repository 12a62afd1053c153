package door

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nkeys"

	"berth/aggregates"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/internal/socket"
	"berth/providers"
)

// Handler answers one request; plane.Plane is one.
type Handler interface {
	Handle(ctx context.Context, a commands.Address, payload []byte, trace string) commands.Reply
}

// Options is what a door works with. All of it is required but Logger.
type Options struct {
	// Dir holds the socket and nothing else. It must stay the same directory:
	// running seats have it mounted.
	Dir     string
	Space   events.Space
	Owner   events.Owner // of every seat here (open mode)
	Handler Handler
	// Seat is a name's boundary as it is now, to prove who asks.
	Seat   func(ctx context.Context, owner events.Owner, alias events.Alias) (aggregates.Seat, error)
	Logger *slog.Logger
}

// Serve answers seats until ctx ends, which removes the socket. That of an
// earlier run is replaced: the caller holds the lock of the directory.
func Serve(ctx context.Context, o Options) error {
	path, done, err := socket.Through(o.Dir, providers.DoorSocket)
	if err != nil {
		return err
	}
	defer done()
	if err := os.Remove(filepath.Join(o.Dir, providers.DoorSocket)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false) // by a path that is over by then
	defer func() {
		// What is left of a manager that was killed is removed by the next; a
		// copy of a directory at rest has no socket in it.
		if err := os.Remove(filepath.Join(o.Dir, providers.DoorSocket)); err != nil && !errors.Is(err, os.ErrNotExist) {
			o.Logger.Warn("the socket of the door was not removed", "error", events.Scrub(err.Error()))
		}
	}()
	// Seats are other users; who asks is proved by signature.
	if err := os.Chmod(filepath.Join(o.Dir, providers.DoorSocket), 0o666); err != nil {
		return errors.Join(err, l.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	open := hall{places: map[net.Conn]bool{}}
	var busy sync.WaitGroup
	defer busy.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return errors.Join(err, l.Close())
		}
		if !open.enter(c) {
			_ = c.Close()
			continue
		}
		busy.Go(func() {
			defer open.leave(c)
			o.answer(ctx, c, func() bool { return open.asks(c) })
		})
	}
}

// answer is one connection: greeting, request, reply. keep is told once the
// request is there, and says whether there is still somebody to answer.
func (o Options) answer(ctx context.Context, c net.Conn, keep func() bool) {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Now()) })
	defer stop()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return
	}
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return
	}
	g := greeting{Version: version, Space: o.Space, Owner: o.Owner, Challenge: base64.RawURLEncoding.EncodeToString(random)}
	var a asking
	if writeLine(c, g) != nil || readLine(bufio.NewReader(c), &a) != nil || !keep() {
		return
	}
	reply := commands.Reply{}
	if err := o.admit(ctx, g, a); err != nil {
		reply.Error = fault.From(err)
		o.Logger.Info("a seat was refused at the door", "command", events.Scrub(a.Command), "code", reply.Error.Code)
	} else {
		reply = o.Handler.Handle(ctx, g.address(a), a.Request, "")
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return
	}
	if err := writeLine(c, reply); err != nil {
		o.Logger.Info("a seat did not take its answer", "error", events.Scrub(err.Error()))
	}
}

// admit lets a command through that every seat may ask, from whoever proves to
// hold the current credential of the current lifecycle.
func (o Options) admit(ctx context.Context, g greeting, a asking) error {
	if _, err := commands.ParseCaller(string(g.Owner), string(a.Actor), string(a.UID)); err != nil {
		return err
	}
	row, err := commands.Find(a.Command)
	if err != nil {
		return err
	}
	if row.Capability != commands.CanSelf {
		return fault.New(fault.PermissionDenied, "a seat may not ask for %s", row.Name).WithOutcome(fault.NotExecuted)
	}
	seat, err := o.Seat(ctx, g.Owner, events.Alias(a.Actor))
	if err == nil {
		err = seat.Self(a.UID)
	}
	if err != nil {
		return fault.From(err).WithOutcome(fault.NotExecuted)
	}
	cred, ok := seat.Head.Credential(seat.Head.Current)
	if !ok || cred.Revoked {
		return fault.New(fault.Expired, "lifecycle %s has no credential any more", a.UID).WithOutcome(fault.NotExecuted)
	}
	key, err := nkeys.FromPublicKey(cred.Holder)
	if err != nil || key.Verify(g.signed(a), a.Signature) != nil {
		return fault.New(fault.Unauthenticated, "the request is not signed with the current credential of %s", a.Actor).WithOutcome(fault.NotExecuted)
	}
	return nil
}
