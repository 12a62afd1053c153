//go:build linux

package door

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"berth/aggregates"
	"berth/aggregates/head"
	"berth/aggregates/slot"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/internal/socket"
	"berth/providers"
)

const uid = events.UID("aaaaaaaaaaaaaaaaaaaaaaaaaa")

// plane answers every request with who asked.
type plane struct{ asked []commands.Address }

func (p *plane) Handle(_ context.Context, a commands.Address, payload []byte, _ string) commands.Reply {
	p.asked = append(p.asked, a)
	if _, err := commands.DecodeRequest(payload); err != nil {
		return commands.Reply{Error: fault.From(err)}
	}
	b, _ := json.Marshal(commands.TurnYieldResult{GoalID: "g-1", State: events.GoalSucceeded})
	return commands.Reply{OK: true, Result: b}
}

// rig is a door with one seat behind it.
type rig struct {
	*testing.T
	plane  *plane
	seat   aggregates.Seat
	holder Holder
	o      Options
}

func newRig(t *testing.T) *rig {
	kp, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := kp.PublicKey()
	seed, _ := kp.Seed()
	dir := t.TempDir()
	r := &rig{T: t, plane: &plane{}, holder: Holder{Dir: dir, Actor: "web", UID: uid, Seed: seed}}
	r.seat = aggregates.Seat{Owner: "local", Alias: "web", Slot: slot.State{Phase: slot.Active, UID: uid},
		Head: head.State{Phase: head.Active, UID: uid, Current: "c1", Ledger: []head.Credential{{ID: "c1", Holder: public}}}}
	r.o = Options{Dir: dir, Space: "test", Owner: "local", Handler: r.plane, Logger: slog.New(slog.DiscardHandler),
		Seat: func(_ context.Context, _ events.Owner, a events.Alias) (aggregates.Seat, error) {
			if a != "web" {
				return aggregates.NewSeat(events.SeatBoundary("local", a)), nil
			}
			return r.seat, nil
		}}
	return r
}

func dial(dir string) (net.Conn, error) {
	path, done, err := socket.Through(dir, providers.DoorSocket)
	if err != nil {
		return nil, err
	}
	defer done()
	return net.Dial("unix", path)
}

// open serves until the test or close ends it, and waits until it answers.
func (r *rig) open() (closed func()) {
	r.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, r.o) }()
	var once bool
	closed = func() {
		if !once {
			once = true
			cancel()
			<-done
		}
	}
	r.Cleanup(closed)
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(time.Millisecond) {
		c, err := dial(r.o.Dir)
		if err == nil {
			_ = c.Close()
			return closed
		}
		if time.Now().After(end) {
			r.Fatal(err)
		}
	}
}

func (r *rig) yield(h Holder) error {
	out, err := Ask(r.Context(), h, commands.TurnYield, "id-1", commands.TurnYieldInput{GoalID: "g-1", Status: events.TurnDone})
	if err == nil && out.State != events.GoalSucceeded {
		r.Errorf("the answer is %+v", out)
	}
	return err
}

// Decision 21: who asks is the current lifecycle of its name, proved with its
// credential; the plane is told of nobody else.
func TestTheDoorKnowsWhoAsks(t *testing.T) {
	r := newRig(t)
	closed := r.open()
	if err := r.yield(r.holder); err != nil {
		t.Fatal(err)
	}
	want := commands.Address{Target: commands.Any, Command: "turn-yield", Mode: commands.ModeSelf, Caller: events.Caller{Owner: "local", Actor: "web", UID: uid}}
	if len(r.plane.asked) != 1 || r.plane.asked[0] != want {
		t.Errorf("the plane was asked %+v", r.plane.asked)
	}
	closed()
	if code := fault.CodeOf(r.yield(r.holder)); code != fault.Unavailable {
		t.Errorf("a door that is closed: %s", code)
	}
	r.open() // the next manager, in the same directory
	if err := r.yield(r.holder); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

// What is not proved is refused before the plane sees it (E1).
func TestTheDoorRefuses(t *testing.T) {
	r := newRig(t)
	r.open()
	stranger, _ := nkeys.CreateUser()
	seed, _ := stranger.Seed()
	revoked := r.seat
	revoked.Head.Ledger = []head.Credential{{ID: "c1", Holder: r.seat.Head.Ledger[0].Holder, Revoked: true}}
	current := r.seat
	for name, c := range map[string]struct {
		change func(*Holder)
		seat   *aggregates.Seat
		want   fault.Code
	}{
		"a stale lifecycle":        {func(h *Holder) { h.UID = "zzzzzzzzzzzzzzzzzzzzzzzzzz" }, &current, fault.Expired},
		"another name":             {func(h *Holder) { h.Actor = "other" }, &current, fault.Expired},
		"another key":              {func(h *Holder) { h.Seed = seed }, &current, fault.Unauthenticated},
		"no key":                   {func(h *Holder) { h.Seed = nil }, &current, fault.Unauthenticated},
		"a name that is none":      {func(h *Holder) { h.Actor = "a.b" }, &current, fault.BadRequest},
		"a credential that is off": {func(*Holder) {}, &revoked, fault.Expired},
	} {
		h := r.holder
		c.change(&h)
		r.seat = *c.seat
		err := r.yield(h)
		if f := fault.From(err); err == nil || f.Code != c.want || f.Outcome != fault.NotExecuted {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	r.seat = current
	if _, err := Ask(t.Context(), r.holder, commands.Ls, "", commands.LsInput{}); fault.CodeOf(err) != fault.PermissionDenied {
		t.Errorf("a command that is not the seat's own: %v", err)
	}
	if len(r.plane.asked) != 0 {
		t.Errorf("the plane was asked %+v", r.plane.asked)
	}
}

// A signature is for one request in one greeting: repeated, or over another
// request, it proves nothing. What is no request gets no answer.
func TestASignatureServesOnce(t *testing.T) {
	r := newRig(t)
	r.open()
	key, _ := nkeys.FromSeed(r.holder.Seed)
	talk := func(line func(greeting) any) string {
		c, err := dial(r.o.Dir)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
			t.Fatal(err)
		}
		rd := bufio.NewReader(c)
		var g greeting
		if err := readLine(rd, &g); err != nil {
			t.Fatal(err)
		}
		if err := writeLine(c, line(g)); err != nil {
			t.Fatal(err)
		}
		reply, _ := rd.ReadString('\n')
		return reply
	}
	var kept asking
	first := func(g greeting) any {
		kept = asking{Command: "turn-pending", Actor: "web", UID: uid, Request: json.RawMessage(`{"input":{}}`)}
		kept.Signature, _ = key.Sign(g.signed(kept))
		return kept
	}
	if got := talk(first); !strings.Contains(got, `"ok":true`) {
		t.Fatalf("the first time: %s", got)
	}
	if got := talk(func(greeting) any { return kept }); !strings.Contains(got, string(fault.Unauthenticated)) {
		t.Errorf("the same again: %s", got)
	}
	other := func(g greeting) any {
		a := first(g).(asking)
		a.Request = json.RawMessage(`{"input":{ }}`)
		a.Command = "stop"
		return a
	}
	if got := talk(other); !strings.Contains(got, string(fault.Unauthenticated)) {
		t.Errorf("another request under it: %s", got)
	}
	if got := talk(func(greeting) any { return "not a request" }); got != "" {
		t.Errorf("what is no request: %s", got)
	}
}

// A line is bounded: one byte more is refused.
func TestLinesAreBounded(t *testing.T) {
	var v any
	fits := `"` + strings.Repeat("x", maxLine-3) + "\"\n"
	if err := readLine(bufio.NewReader(strings.NewReader(fits)), &v); err != nil {
		t.Errorf("a line of the greatest length: %v", err)
	}
	if err := readLine(bufio.NewReader(strings.NewReader("x"+fits)), &v); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("one byte more: %v", err)
	}
}

// A seat that opens connections and asks nothing keeps no other one out: the
// oldest of them makes room.
func TestWhoAsksNothingKeepsNobodyOut(t *testing.T) {
	r := newRig(t)
	r.open()
	for range 2 * MaxConnections {
		c, err := dial(r.o.Dir)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := bufio.NewReader(c).ReadString('\n'); err != nil { // it has a place
			t.Fatal(err)
		}
	}
	if err := r.yield(r.holder); err != nil {
		t.Errorf("a seat that asks: %v", err)
	}
}

// Who has asked keeps its place: where all have, one more is turned away.
func TestWhoHasAskedIsAnswered(t *testing.T) {
	h := hall{places: map[net.Conn]bool{}}
	var all []net.Conn
	next := func() net.Conn {
		mine, yours := net.Pipe()
		t.Cleanup(func() { _, _ = mine.Close(), yours.Close() })
		return mine
	}
	for range MaxConnections {
		c := next()
		if all = append(all, c); !h.enter(c) || !h.asks(c) {
			t.Fatal("there is room")
		}
	}
	if h.enter(next()) {
		t.Error("one of those that had asked lost its place")
	}
	h.leave(all[0])
	idle := next()
	if !h.enter(idle) || !h.enter(next()) || h.asks(idle) {
		t.Error("who asked nothing for longest keeps its place")
	}
	h.leave(idle) // again
	if len(h.places) != MaxConnections || len(h.waiting) != 1 {
		t.Errorf("%d places, %d wait", len(h.places), len(h.waiting))
	}
}
