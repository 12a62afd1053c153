package door

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"time"

	"github.com/nats-io/nkeys"

	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/internal/socket"
	"berth/providers"
)

// Holder is who a seat is, as it finds it in its own environment.
type Holder struct {
	Dir   string // of the door
	Actor events.Actor
	UID   events.UID
	Seed  []byte // of its credential
}

// Ask sends one request of the seat and returns its result. What is sent and
// not answered is unknown (E8).
func Ask[In commands.Input, Out any](ctx context.Context, h Holder, cmd commands.Command[In, Out], id events.CommandID, in In) (Out, error) {
	var out Out
	if err := in.Check(); err != nil {
		return out, fault.From(err).WithOutcome(fault.NotExecuted)
	}
	input, err := json.Marshal(in)
	if err != nil {
		return out, fault.New(fault.BadRequest, "the input can't be written as JSON")
	}
	body, err := json.Marshal(commands.Request{ID: id, Input: input})
	if err != nil {
		return out, fault.New(fault.BadRequest, "the request can't be written as JSON")
	}
	r, err := h.send(ctx, cmd.Contract, body)
	switch {
	case err != nil:
		return out, err
	case !r.OK && r.Error == nil:
		return out, fault.New(fault.ContractMismatch, "the manager's answer can't be read").WithOutcome(fault.Unknown)
	case !r.OK:
		return out, r.Error
	}
	if err := json.Unmarshal(r.Result, &out); err != nil {
		return out, fault.New(fault.ContractMismatch, "the result of %s can't be read", cmd.Name).WithOutcome(fault.Executed) // E6
	}
	return out, nil
}

func (h Holder) send(ctx context.Context, row *commands.Contract, body []byte) (commands.Reply, error) {
	var none commands.Reply
	shut := func(err error) error {
		return fault.New(fault.Unavailable, "no manager answers at the door of this seat: %s", events.Scrub(err.Error())).
			WithOutcome(fault.NotExecuted).WithHint("it may be starting again: ask once more")
	}
	path, done, err := socket.Through(h.Dir, providers.DoorSocket)
	if err != nil {
		return none, shut(err)
	}
	defer done()
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return none, shut(err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer stop()
	if err := c.SetDeadline(time.Now().Add(row.Timeout + patience)); err != nil {
		return none, shut(err)
	}
	r := bufio.NewReader(c)
	var g greeting
	if err := readLine(r, &g); err != nil {
		return none, shut(err)
	}
	if g.Version != version {
		return none, fault.New(fault.UnsupportedVersion, "the door of this seat speaks another version").WithOutcome(fault.NotExecuted)
	}
	a := asking{Command: row.Name, Actor: h.Actor, UID: h.UID, Request: body}
	key, err := nkeys.FromSeed(h.Seed)
	if err == nil {
		defer key.Wipe()
		a.Signature, err = key.Sign(g.signed(a))
	}
	if err != nil {
		return none, fault.New(fault.Unauthenticated, "the credential of this seat can't sign").WithOutcome(fault.NotExecuted)
	}
	if err = writeLine(c, a); err == nil {
		err = readLine(r, &none)
	}
	if err != nil {
		return none, fault.New(fault.Unavailable, "the manager did not answer %s: %s", row.Name, events.Scrub(err.Error())).WithOutcome(fault.Unknown)
	}
	return none, nil
}
