package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/client"
	"berth/commands/commandstest"
	"berth/commands/service"
	"berth/events"
	"berth/events/eventlog/stream"
	"berth/events/fault"
	"berth/internal/embedded"
)

// manager is a world that is served over a real server.
type manager struct {
	*commandstest.World
	nc      *nats.Conn
	service *service.Service
	client  *client.Client
}

func serve(t *testing.T, c commandstest.Config, o service.Options) manager {
	t.Helper()
	_, nc := embedded.ForTest(t, nil)
	return serveOn(t, nc, c, o)
}

func serveOn(t *testing.T, nc *nats.Conn, c commandstest.Config, o service.Options) manager {
	t.Helper()
	m := manager{World: commandstest.New(t, c), nc: nc}
	o.Conn, o.Space, o.Instance, o.Version = nc, commandstest.Space, commandstest.Instance, "1.0.0"
	if o.Handler == nil {
		o.Handler = m.Plane
	}
	var err error
	if m.service, err = service.Start(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.service.Stop)
	m.client = client.Connect(nc, commandstest.Space, commandstest.Caller)
	return m
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandstest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func refused(t *testing.T, what string, err error, code fault.Code, outcome fault.Outcome) {
	t.Helper()
	if c, o := commandstest.Code(err); c != code || o != outcome {
		t.Errorf("%s: %s, %s (%v); want %s, %s", what, c, o, err, code, outcome)
	}
}

// One life over the wire and on JetStream: spawn, wait, list, checkpoint,
// export, download, follow, retire.
func TestOneLifeOverTheWire(t *testing.T) {
	ctx := within(t)
	_, nc := embedded.ForTest(t, nil)
	log, err := stream.Open(ctx, nc, stream.Config{Space: commandstest.Space, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	m := serveOn(t, nc, commandstest.Config{Log: log}, service.Options{})
	s, err := client.Call(ctx, m.client, commands.Spawn, withGoal(commandstest.Drill("demo"), "g"))
	if err != nil {
		t.Fatal(err)
	}
	if g, err := m.client.WaitGoal(ctx, "g"); err != nil || g.State != events.GoalSucceeded {
		t.Fatalf("%+v %v", g, err)
	}
	w, err := m.client.WaitStatus(ctx, "demo", s.UID, s.Sequence, aggregates.StatusRunning)
	if err != nil || w.Status != aggregates.StatusRunning {
		t.Fatalf("%+v %v", w, err)
	}
	p, err := client.Call(ctx, m.client, commands.Pause, commands.SeatInput{Named: commands.Named{Name: "demo"}})
	if err != nil {
		t.Fatal(err)
	}
	if w, err := m.client.WaitOperation(ctx, "demo", "", p.Operation, p.Sequence); err != nil || w.Operation == nil || w.Operation.State != "confirmed" {
		t.Fatalf("%+v %v", w, err)
	}
	rows := 0
	err = m.client.Ls(ctx, commands.LsInput{Limit: 1}, func(p commands.LsResult) error { rows += len(p.Items); return nil })
	if err != nil || rows != 1 {
		t.Errorf("ls: %d rows, %v", rows, err)
	}
	download(ctx, t, m)
	drafts, err := client.DryRun(ctx, m.client, commands.Retire, commands.RetireInput{Named: commands.Named{Name: "demo"}})
	if err != nil || len(drafts) != 1 {
		t.Errorf("dry run: %+v %v", drafts, err)
	}
	followed := make(chan string, 1)
	go func() {
		_, err := m.client.Events(ctx, 1, true, func(e commands.CloudEvent) error {
			if strings.HasPrefix(e.Type, "berth.slot.retired.") {
				return errors.New("seen")
			}
			return nil
		})
		followed <- fmt.Sprint(err)
	}()
	r, err := client.Call(ctx, m.client, commands.Retire, commands.RetireInput{Named: commands.Named{Name: "demo"}})
	if err != nil {
		t.Fatal(err)
	}
	if w, err := m.client.WaitStatus(ctx, "demo", s.UID, r.Sequence, aggregates.StatusRetired); err != nil || !w.Met {
		t.Errorf("%+v %v", w, err)
	}
	if got := <-followed; got != "seen" {
		t.Errorf("following the log ended with %s", got)
	}
}

func withGoal(in commands.SpawnInput, goal string) commands.SpawnInput {
	in.Goal = goal
	return in
}

func download(ctx context.Context, t *testing.T, m manager) {
	t.Helper()
	if _, err := client.Call(ctx, m.client, commands.Checkpoint, commands.CheckpointInput{Named: commands.Named{Name: "demo"}}, client.WithID("c")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(ctx, m.client, commands.Export, commands.ExportInput{Named: commands.Named{Name: "demo"}}, client.WithID("e")); err != nil {
		t.Fatal(err)
	}
	g, err := m.client.WaitGoal(ctx, "e")
	if err != nil || g.State != events.GoalSucceeded {
		t.Fatalf("%+v %v", g, err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "demo.tar")
	file, err := m.client.Download(ctx, "e", path, nil)
	if err != nil || file.Path != path {
		t.Fatalf("%+v %v", file, err)
	}
	accepted := filepath.Join(m.Plane.ExportsDir, string(g.Allocated.Operation))
	want, err := os.ReadFile(accepted)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes were downloaded of %d: %v", len(got), len(want), err)
	}
	// R37: bytes that are not those of the export leave nothing behind, not
	// even a part, and not in the place of what was there.
	want[len(want)/2] ^= 1
	if err := os.WriteFile(accepted, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.client.Download(ctx, "e", filepath.Join(dir, "other.tar"), nil); err == nil {
		t.Error("a damaged file was accepted")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d files are left: %v", len(left), err)
	}
}

// A reply goes only where a client waits: a request whose reply subject is one
// of the log, of JetStream, of a command, or a pattern is dropped, and nothing
// is done for it.
func TestReplySubjectAttack(t *testing.T) {
	m := serve(t, commandstest.Config{Idle: true}, service.Options{})
	ctx := within(t)
	var mu sync.Mutex
	var stolen []string
	for _, s := range []string{"berth.>", "$JS.>", "$SYS.>", "other.>"} {
		sub, err := m.nc.Subscribe(s, func(msg *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			if !strings.Contains(msg.Subject, ".cmd.") {
				stolen = append(stolen, msg.Subject)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	body, _ := json.Marshal(commands.Request{ID: "attack", Input: json.RawMessage(`{"name":"demo","provider":"drill"}`)})
	attacks := []string{
		"", "berth.test.event.seat.local.demo", "berth.test.event.goal.local.me.cccccccccccccccccccccccccc.g", "$JS.API.STREAM.DELETE.BERTH_test", "$SYS.x",
		"other.subject", "_INBOX", "_INBOX.", "_INBOXES.x", "_INBOX.a..b",
	}
	for _, to := range attacks {
		msg := nats.NewMsg(commandstest.Address(commands.Spawn.Contract).Subject(commandstest.Space))
		msg.Reply, msg.Data = to, body
		if err := m.nc.PublishMsg(msg); err != nil {
			t.Fatal(err)
		}
	}
	// The dropped ones are counted: all of them were seen when the count is reached.
	for m.service.Counts()["misdirected"] < uint64(len(attacks)) {
		if ctx.Err() != nil {
			t.Fatalf("%v of %d attacks were seen", m.service.Counts(), len(attacks))
		}
		if _, err := client.Call(ctx, m.client, commands.Status, commands.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(stolen) != 0 || m.Tip() != 0 {
		t.Errorf("the manager published to %v and the log has %d commits", stolen, m.Tip())
	}
}

// hold is a handler that answers only when it is let go.
type hold struct {
	entered chan struct{}
	release chan struct{}
}

func (h hold) Handle(ctx context.Context, _ commands.Address, _ []byte, _ string) commands.Reply {
	h.entered <- struct{}{}
	select {
	case <-h.release:
	case <-ctx.Done():
	}
	return commands.Reply{OK: true, Result: json.RawMessage(`{}`)}
}

// Handlers are bounded: what is too much is refused, not executed, and may be
// tried again; requests that wait have a bound of their own.
func TestBoundedHandlers(t *testing.T) {
	h := hold{make(chan struct{}, 8), make(chan struct{})}
	m := serve(t, commandstest.Config{Idle: true}, service.Options{Handler: h, Handlers: 2, Waiting: 1})
	ctx := within(t)
	done := make(chan error, 3)
	for range 2 {
		go func() {
			_, err := client.Call(ctx, m.client, commands.Pause, commands.SeatInput{Named: commands.Named{Name: "demo"}})
			done <- err
		}()
	}
	<-h.entered
	<-h.entered
	_, err := client.Call(ctx, m.client, commands.Pause, commands.SeatInput{Named: commands.Named{Name: "demo"}})
	refused(t, "a third", err, fault.ResourceExhausted, fault.NotExecuted)
	go func() {
		_, err := client.Call(ctx, m.client, commands.Wait, commands.WaitInput{Goal: "g"})
		done <- err
	}()
	<-h.entered
	// Those who wait have a limit of their own, and a read that waits for
	// nothing does not count for it.
	_, err = client.Call(ctx, m.client, commands.Events, commands.EventsInput{From: 1, Wait: "30s"})
	refused(t, "a second that waits", err, fault.ResourceExhausted, fault.NotExecuted)
	if !strings.Contains(err.Error(), "keeps waiting 1") {
		t.Errorf("it is refused with %v", err)
	}
	_, err = client.Call(ctx, m.client, commands.Events, commands.EventsInput{From: 1})
	if err == nil || strings.Contains(err.Error(), "keeps waiting") {
		t.Errorf("a plain read while acting is full: %v", err)
	}
	close(h.release)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// E5, E7, E8, E6, E4, E3: what the client knows when no good answer comes.
func TestWhatTheClientKnows(t *testing.T) {
	_, nc := embedded.ForTest(t, nil)
	ctx := within(t)
	c := client.Connect(nc, commandstest.Space, commandstest.Caller)
	pause := func(opts ...client.Option) error {
		_, err := client.Call(ctx, c, commands.Pause, commands.SeatInput{Named: commands.Named{Name: "demo"}}, opts...)
		return err
	}
	refused(t, "E7 nobody is there", pause(), fault.Unavailable, fault.NotExecuted)
	_, err := client.Call(ctx, c, commands.Pause, commands.SeatInput{})
	refused(t, "E5 refused before it was sent", err, fault.BadRequest, fault.NotExecuted)

	f := &foreign{}
	sub, err := nc.Subscribe(commands.Prefix(commandstest.Space)+">", f.receive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	var silent sync.WaitGroup
	silent.Go(func() {
		refused(t, "E8 silence", pause(client.WithTimeout(time.Millisecond)), fault.DeadlineExceeded, fault.Unknown)
	})
	silent.Go(func() {
		_, err := client.Call(ctx, c, commands.Inspect, commands.Named{Name: "demo"}, client.WithTimeout(time.Millisecond))
		refused(t, "E8 silence of a read", err, fault.DeadlineExceeded, fault.NotExecuted)
	})
	silent.Wait()

	for _, x := range []struct {
		what, answer string
		code         fault.Code
		outcome      fault.Outcome
	}{
		{"E3 garbage", `hello`, fault.ContractMismatch, fault.Unknown},
		{"E3 neither ok nor error", `{"ok":false}`, fault.ContractMismatch, fault.Unknown},
		{"E4 no outcome", `{"ok":false,"error":{"code":"conflict","message":"m"}}`, fault.Conflict, fault.Unknown},
		{"E6 an ok that can't be read", `{"ok":true,"result":[]}`, fault.ContractMismatch, fault.Executed},
		{"E12 code and details are kept", `{"ok":false,"error":{"code":"expired","message":"m","outcome":"executed","details":[{"kind":"k"}]}}`, fault.Expired, fault.Executed},
	} {
		f.set(x.answer, x.answer)
		refused(t, x.what, pause(), x.code, x.outcome)
	}
	// E9: a write is repeated only on proof that it was not executed.
	for outcome, want := range map[string]int{"unknown": 1, "executed": 1, "not-executed": 2} {
		f.set(`{"ok":false,"error":{"code":"conflict","message":"m","retryable":true,"outcome":"`+outcome+`"}}`, `{"ok":true,"result":{}}`)
		err := pause(client.WithPatience(commandstest.Patience))
		if n := f.count(); n != want || (err == nil) != (want == 2) {
			t.Errorf("E9 a write with outcome %s was sent %d times: %v", outcome, n, err)
		}
	}
}

// E8, E9: a write whose connection is closed while it waits may have been
// executed, and is not sent again; one on a closed connection was never sent (E5).
func TestAConnectionEndsWhileAWriteWaits(t *testing.T) {
	srv, nc := embedded.ForTest(t, nil)
	own, err := srv.Connect()
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	sub, err := nc.Subscribe(commands.Prefix(commandstest.Space)+">", func(*nats.Msg) {
		asked.Add(1)
		own.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.Flush(); err != nil { // the server knows the subscription
		t.Fatal(err)
	}
	c := client.Connect(own, commandstest.Space, commandstest.Caller)
	pause := func() error {
		_, err := client.Call(within(t), c, commands.Pause, commands.SeatInput{Named: commands.Named{Name: "demo"}}, client.WithPatience(commandstest.Patience))
		return err
	}
	refused(t, "E8 closed while it waits", pause(), fault.Unavailable, fault.Unknown)
	_, err = client.Call(within(t), c, commands.Pause, commands.SeatInput{Named: commands.Named{Name: "demo"}})
	refused(t, "E5 closed before", err, fault.Unavailable, fault.NotExecuted)
	if n := asked.Load(); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

// foreign answers whatever it is told to: first one thing, then another;
// nothing until it is told.
type foreign struct {
	mu          sync.Mutex
	first, then string
	asked       int
}

func (f *foreign) set(first, then string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.first, f.then, f.asked = first, then, 0
}

func (f *foreign) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *foreign) receive(msg *nats.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	answer := f.first
	if f.asked > 1 {
		answer = f.then
	}
	if answer != "" {
		_ = msg.Respond([]byte(answer))
	}
}

// What only the holder can answer is asked of the holder.
func TestHolderIsFollowed(t *testing.T) {
	m := serve(t, commandstest.Config{}, service.Options{Handler: elsewhere{}})
	r, err := client.Call(within(t), m.client, commands.Logs, commands.LogsInput{Named: commands.Named{Name: "demo"}})
	if err != nil || r.Next != 7 {
		t.Errorf("%+v %v", r, err)
	}
}

type elsewhere struct{}

func (elsewhere) Handle(_ context.Context, a commands.Address, _ []byte, _ string) commands.Reply {
	if a.Target == commands.Any {
		e := fault.New(fault.FailedPrecondition, "elsewhere").WithDetail(commands.DetailBindRefused, "boundTo", string(commandstest.Instance))
		return commands.Reply{Error: e}
	}
	return commands.Reply{OK: true, Result: json.RawMessage(`{"next":7}`)}
}

// A wait outlives the restart of a manager, and is given up with what is known.
func TestWaitsOutliveAManager(t *testing.T) {
	_, nc := embedded.ForTest(t, nil)
	c := client.Connect(nc, commandstest.Space, commandstest.Caller)
	ctx := within(t)
	done := make(chan error, 1)
	go func() {
		_, err := c.WaitStatus(ctx, "demo", "", 0, aggregates.StatusRunning)
		done <- err
	}()
	m := serveOn(t, nc, commandstest.Config{}, service.Options{})
	if _, err := client.Call(ctx, m.client, commands.Spawn, commandstest.Drill("demo")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := c.WaitStatus(short, "demo", "", 0, aggregates.StatusRetired)
	refused(t, "a wait that was given up", err, fault.DeadlineExceeded, fault.NotExecuted)
}
