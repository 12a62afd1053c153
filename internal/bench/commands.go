package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"berth"
	"berth/aggregates"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
)

const (
	spawnSamples    = 10 // spawns for every 100 samples
	publishPerSpawn = 20
	settleFor       = time.Minute
)

// plain runs a seat without namespaces and limits: the manager's part is the
// same, and every host can.
var plain = map[string]string{"isolation": "none", "limits": "none"}

// desk is a manager in this process on a server in another, so that the raw
// side has the same way to go: over the same kind of connection, in the same
// process.
type desk struct {
	Options
	server *child
	nc     *nats.Conn
	c      *client.Client
	calls  *callTimes
	stop   func() error
}

// measureCommands measures a read and a spawn.
func measureCommands(ctx context.Context, o Options) ([]Row, error) {
	d, err := openDesk(ctx, o)
	if err != nil {
		return nil, err
	}
	defer d.close()
	read, err := d.inspect(ctx)
	if err != nil {
		return nil, err
	}
	spawn, err := d.spawns(ctx)
	return append([]Row{read}, spawn...), err
}

func openDesk(ctx context.Context, o Options) (_ *desk, err error) {
	d := &desk{Options: o, calls: &callTimes{begun: map[string]time.Time{}}, stop: func() error { return nil }}
	data := filepath.Join(o.Dir, "data")
	if d.server, err = begin(ctx, role{Kind: "server", Dir: filepath.Join(o.Dir, "server"), Strict: true}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	script, err := emptyScript(data)
	if err != nil {
		return nil, err
	}
	m, err := berth.New(ctx, berth.Options{
		DataDir: data, Space: space, HTTP: "127.0.0.1:0", NATS: d.server.Endpoint.NATS, Drill: script, MinFree: -1, Hook: d.calls.at,
	})
	if err != nil {
		return nil, err
	}
	run, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- m.Run(run) }()
	d.stop = sync.OnceValue(func() error { end(); return <-ended })
	select {
	case <-m.Ready():
	case err := <-ended:
		ended <- err
		return nil, err
	}
	if d.nc, err = nats.Connect(d.server.Endpoint.NATS); err != nil {
		return nil, err
	}
	d.c = client.Connect(d.nc, space, m.Endpoint().Caller)
	return d, nil
}

func (d *desk) close() {
	if d.nc != nil {
		d.nc.Close()
	}
	_ = d.stop()
	d.server.kill()
}

// inspect is one read after another beside a bare micro request whose reply
// has the same bytes.
func (d *desk) inspect(ctx context.Context) (Row, error) {
	d.Progress("commands: inspect")
	if err := spawnOne(ctx, d.c, commands.SpawnInput{Name: "seen", Provider: "drill", Command: []string{"true"}}); err != nil {
		return Row{}, err
	}
	in := commands.Named{Name: "seen"}
	first, err := client.Call(ctx, d.c, commands.Inspect, in)
	if err != nil {
		return Row{}, err
	}
	reply, err := json.Marshal(first)
	if err != nil {
		return Row{}, err
	}
	served, err := nats.Connect(d.server.Endpoint.NATS)
	if err != nil {
		return Row{}, err
	}
	defer served.Close()
	s, err := micro.AddService(served, micro.Config{Name: "bare", Version: "1.0.0", Endpoint: &micro.EndpointConfig{
		Subject: "bare", Handler: micro.HandlerFunc(func(r micro.Request) { _ = r.Respond(reply) }),
	}})
	if err != nil {
		return Row{}, err
	}
	defer func() { _ = s.Stop() }()
	if err := served.Flush(); err != nil {
		return Row{}, err
	}
	request, err := json.Marshal(in)
	if err != nil {
		return Row{}, err
	}
	raw, ours, err := alternate(warmUps+d.Samples, func() error {
		_, err := d.nc.RequestWithContext(ctx, "bare", request)
		return err
	}, func() error {
		_, err := client.Call(ctx, d.c, commands.Inspect, in)
		return err
	})
	if err != nil {
		return Row{}, err
	}
	return beside("inspect-p50", micros(ours), "us", micros(raw)).atMost(1.5).
		noted("the bare reply has the same %d bytes and is not decoded", len(reply)), nil
}

// spawns is the time from the command to the end of its goal, less what the
// provider took to start the custodian and the seat, beside durable publishes.
func (d *desk) spawns(ctx context.Context) ([]Row, error) {
	d.Progress("commands: spawn")
	js, err := rawSide(ctx, d.nc)
	if err != nil {
		return nil, err
	}
	body := []byte(strings.Repeat("x", 400))
	var raws, ours, wholes []time.Duration
	for n := range max(d.Samples*spawnSamples/100, 1) {
		for range publishPerSpawn {
			start := time.Now()
			if _, err := js.Publish(ctx, rawSubject, body); err != nil {
				return nil, err
			}
			raws = append(raws, time.Since(start))
		}
		d.calls.reset()
		name := fmt.Sprintf("seat-%d", n)
		start := time.Now()
		if err := spawnOne(ctx, d.c, commands.SpawnInput{Name: name, CPUs: "0.01", Memory: "1MiB", Options: plain, Command: []string{"sleep", "3600"}}); err != nil {
			return nil, err
		}
		whole := time.Since(start)
		wholes, ours = append(wholes, whole), append(ours, whole-d.calls.sum())
		if err := d.retire(ctx, name); err != nil {
			return nil, err
		}
	}
	return []Row{
		beside("spawn-overhead", micros(median(ours)), "us", micros(median(raws))).atMost(15).
			noted("the manager's own part, profile strict; raw is one durable publish"),
		alone("spawn-whole", micros(median(wholes)), "us").noted("with the start of the custodian and a seat without isolation"),
	}, nil
}

func (d *desk) retire(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	if _, err := client.Call(ctx, d.c, commands.Retire, commands.RetireInput{Named: commands.Named{Name: name}}); err != nil {
		return err
	}
	_, err := d.c.WaitStatus(ctx, events.Alias(name), "", 0, aggregates.StatusRetired)
	return err
}

// callTimes adds up how long the provider took, by the engine's hook.
type callTimes struct {
	mu    sync.Mutex
	begun map[string]time.Time
	total time.Duration
}

func (c *callTimes) at(point string) error {
	call, before := strings.CutSuffix(point, ":before")
	call, after := strings.CutSuffix(call, ":after")
	if !strings.HasPrefix(call, "call:") {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case before:
		c.begun[call] = time.Now()
	case after:
		c.total += time.Since(c.begun[call])
	}
	return nil
}

func (c *callTimes) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total = 0
}

func (c *callTimes) sum() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}
