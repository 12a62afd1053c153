package berth_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"berth"
	"berth/aggregates"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/events/fault"
)

const patience = 60 * time.Second

// running is a manager in this process with a client.
type running struct {
	t    *testing.T
	m    *berth.Manager
	c    *client.Client
	stop func() error // drains
	ctx  context.Context
}

func start(t *testing.T, o berth.Options) *running {
	t.Helper()
	o.Listen, o.HTTP, o.MinFree = "127.0.0.1:0", "127.0.0.1:0", -1
	if o.Drill == "" {
		o.Drill = filepath.Join(t.TempDir(), "drill.json")
		if err := os.WriteFile(o.Drill, []byte(`{"rules":[]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m, err := berth.New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	run, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(run) }()
	stopped := false
	r := &running{t: t, m: m, ctx: t.Context(), stop: func() error {
		if stopped {
			return nil
		}
		stopped = true
		end()
		return <-done
	}}
	t.Cleanup(func() { r.stop() })
	select {
	case <-m.Ready():
	case err := <-done:
		stopped = true
		t.Fatalf("the manager ended: %v", err)
	case <-time.After(patience):
		t.Fatal("the manager did not become ready")
	}
	nc, err := nats.Connect(m.Endpoint().NATS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	r.c = client.Connect(nc, m.Endpoint().Space, m.Endpoint().Caller)
	return r
}

func (r *running) spawn(name string) commands.SpawnResult {
	r.t.Helper()
	out, err := client.Call(r.ctx, r.c, commands.Spawn, commands.SpawnInput{Name: name, Provider: "drill", Command: []string{"true"}})
	if err != nil {
		r.t.Fatalf("spawn %s: %v", name, err)
	}
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	g, err := r.c.WaitGoal(ctx, out.GoalID)
	if err != nil || g.State != events.GoalSucceeded {
		r.t.Fatalf("spawn %s ended %s, %v: %v", name, g.State, g.Fault, err)
	}
	return out
}

func (r *running) wait(name string, uid events.UID, until ...aggregates.Status) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	if _, err := r.c.WaitStatus(ctx, events.Alias(name), uid, 0, until...); err != nil {
		r.t.Fatalf("%s did not become %v: %v", name, until, err)
	}
}

func TestLifeAcrossARestart(t *testing.T) {
	for _, d := range []berth.Durability{berth.Strict, berth.Group} {
		t.Run(string(d), func(t *testing.T) {
			dir := t.TempDir()
			r := start(t, berth.Options{DataDir: dir, Durability: d})
			first := r.spawn("one")
			if err := r.stop(); err != nil {
				t.Fatalf("stop: %v", err)
			}
			if _, err := berth.ReadEndpoint(dir); fault.CodeOf(err) != fault.Unavailable {
				t.Fatalf("the endpoint file is still there: %v", err)
			}

			r = start(t, berth.Options{DataDir: dir, Durability: d})
			r.wait("one", first.UID, aggregates.StatusRunning)
			if _, err := client.Call(r.ctx, r.c, commands.Retire, commands.RetireInput{Named: commands.Named{Name: "one"}}); err != nil {
				t.Fatal(err)
			}
			r.wait("one", first.UID, aggregates.StatusRetired)
			second := r.spawn("one")
			if second.UID == first.UID || second.Environment == first.Environment {
				t.Fatalf("the second life has the first's identity: %+v", second)
			}
		})
	}
}

func TestEndpoints(t *testing.T) {
	r := start(t, berth.Options{DataDir: t.TempDir()})
	r.spawn("one")
	for path, want := range map[string]string{
		"/livez": "ok", "/readyz": "ok", "/readyz?verbose": "[+] log ok", "/metrics": "berth_environments 1",
	} {
		status, body := get(t, r.m.Endpoint().HTTP+path, "")
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _ := get(t, r.m.Endpoint().HTTP+"/debug/pprof/profile?seconds=3600", ""); status != http.StatusBadRequest {
		t.Errorf("an hour's profile: %d", status)
	}
	if status, _ := get(t, r.m.Endpoint().HTTP+"/metrics", "example.com"); status != http.StatusForbidden {
		t.Errorf("another site's host: %d", status)
	}
}

func get(t *testing.T, url, host string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// Decision 6: a log that is gone is never read as an empty world.
func TestAMissingLogIsRefused(t *testing.T) {
	dir := t.TempDir()
	r := start(t, berth.Options{DataDir: dir})
	r.spawn("one")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "nats")); err != nil {
		t.Fatal(err)
	}
	o := berth.Options{DataDir: dir, Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0"}
	for range 2 { // the refusal changes nothing
		if _, err := berth.New(t.Context(), o); fault.ExitOf(err) != fault.ExitLogLost {
			t.Fatalf("got %v, exit %d", err, fault.ExitOf(err))
		}
	}
	r = start(t, berth.Options{DataDir: dir, InitSpace: true, AcceptHistoryLoss: "the disk burned"})
	out, err := client.Call(r.ctx, r.c, commands.Ls, commands.LsInput{})
	if err != nil || len(out.Items) != 0 {
		t.Fatalf("after the accepted loss: %+v, %v", out, err)
	}
	found := false
	_, err = r.c.Events(r.ctx, 1, false, func(e commands.CloudEvent) error {
		raw, err := json.Marshal(e)
		found = found || strings.Contains(string(raw), "the disk burned")
		return err
	})
	if err != nil || !found {
		t.Fatalf("the accepted loss is not an event: %v", err)
	}
}

// The embedded server of a manager is nobody else's: another manager that is
// pointed at it is refused at once, as a matter of configuration.
func TestAManagersOwnServerIsNoClusters(t *testing.T) {
	r := start(t, berth.Options{DataDir: t.TempDir()})
	_, err := berth.New(r.ctx, berth.Options{DataDir: t.TempDir(), NATS: r.m.Endpoint().NATS, HTTP: "127.0.0.1:0"})
	if fault.ExitOf(err) != fault.ExitBadConfig || !strings.Contains(err.Error(), string(r.m.Endpoint().Instance)) || !strings.Contains(fault.From(err).Hint, "JetStream") {
		t.Fatalf("got %v, exit %d", err, fault.ExitOf(err))
	}
}

func TestASecondManagerIsRefused(t *testing.T) {
	dir := t.TempDir()
	r := start(t, berth.Options{DataDir: dir})
	_, err := berth.New(r.ctx, berth.Options{DataDir: dir, Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0"})
	if fault.ExitOf(err) != fault.ExitDataInUse {
		t.Fatalf("got %v", err)
	}
	port := strings.TrimPrefix(r.m.Endpoint().HTTP, "http://")
	_, err = berth.New(r.ctx, berth.Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", HTTP: port})
	if fault.ExitOf(err) != fault.ExitPortInUse {
		t.Fatalf("a taken port: %v", err)
	}
}

// Decision 6: a checkpoint that can't be read is a loss; what an operator says
// to it stands in the log, once, and one of a newer program is never passed over.
func TestADamagedCheckpointIsALoss(t *testing.T) {
	dir := t.TempDir()
	r := start(t, berth.Options{DataDir: dir})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, checkpointFile)
	o := berth.Options{DataDir: dir, Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0"}
	write(t, path, []byte(`{"format":99}`))
	for _, o.AcceptHistoryLoss = range []string{"", "it was damaged"} {
		if _, err := berth.New(t.Context(), o); fault.CodeOf(err) != fault.UnsupportedVersion {
			t.Fatalf("a newer one: %v", err)
		}
	}
	write(t, path, []byte("{"))
	o.AcceptHistoryLoss = ""
	if _, err := berth.New(t.Context(), o); fault.ExitOf(err) != fault.ExitLogLost {
		t.Fatalf("got %v, exit %d", err, fault.ExitOf(err))
	}
	for _, o := range []berth.Options{{DataDir: dir, AcceptHistoryLoss: "it was damaged"}, {DataDir: dir}} {
		r = start(t, o)
		var said []string
		if _, err := r.c.Events(r.ctx, 1, false, func(e commands.CloudEvent) error {
			raw, err := json.Marshal(e)
			if strings.Contains(string(raw), "it was damaged") {
				said = append(said, string(raw))
			}
			return err
		}); err != nil || len(said) != 1 {
			t.Errorf("the reason is in %d events, %v: %q", len(said), err, said)
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
}
