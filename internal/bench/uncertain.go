package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/events/fault"
	"berth/sagas"
)

const (
	uncertainFor  = 10 * time.Minute     // for all of them to be settled
	questionTakes = 5 * time.Millisecond // of the provider, for one question
	lookEvery     = 20 * time.Millisecond
)

// uncertainAfterRestart makes operations whose answers are lost, kills the
// manager, and watches how the next one finds out: never more questions at
// once than one provider may be asked, and each once.
func uncertainAfterRestart(ctx context.Context, o Options, certs string) (rows []Row, err error) {
	o.Progress(fmt.Sprintf("hosted: %d uncertain operations", o.Uncertain))
	ctx, cancel := context.WithTimeout(ctx, uncertainFor)
	defer cancel()
	d, err := newTrial(filepath.Join(o.Dir, "trial2"))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	d.lose = true
	// The provider lets through whatever comes, so that it is the manager's own
	// bound that is seen.
	f, err := serveFar(filepath.Join(o.Dir, "far2"), certs, d, o.Uncertain)
	if err != nil {
		return nil, err
	}
	defer f.cancel()
	r := role{Kind: "manager", Dir: filepath.Join(o.Dir, "data"), Hosted: farSpec(f.url, certs)}
	m, err := begin(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { m.kill() }()
	if err := loseMany(ctx, m, d, o.Uncertain); err != nil {
		return nil, err
	}
	m.kill()
	settled := d.restart(o.Uncertain)
	o.Progress("hosted: restart")
	begun := time.Now()
	if m, err = begin(ctx, r); err != nil {
		return nil, err
	}
	select {
	case <-settled:
	case <-ctx.Done():
		return nil, fault.New(fault.DeadlineExceeded, "the %d operations were not settled in %s", o.Uncertain, uncertainFor)
	}
	took := time.Since(begun)
	most, questions, of := d.questions()
	if err := m.stop(); err != nil {
		return nil, err
	}
	return []Row{
		alone("hosted-uncertain-at-once", float64(most), "calls").atMost(sagas.DefaultPerProvider).
			noted("questions to the provider at any time after the restart; %d is the configured concurrency", sagas.DefaultPerProvider),
		alone("hosted-uncertain-questions", float64(questions)/float64(of), "per operation").atMost(2).
			noted("after the restart; one answer is enough"),
		alone("hosted-uncertain-settled", took.Seconds(), "s").noted("%d operations, from the start of the process to the last answer", of),
	}, f.stop()
}

// loseMany spawns until so many operations were sent.
func loseMany(ctx context.Context, m *child, d *trial, many int) error {
	nc, err := nats.Connect(m.Endpoint.NATS)
	if err != nil {
		return err
	}
	defer nc.Close()
	c := client.Connect(nc, space, m.Endpoint.Caller)
	var next atomic.Int64
	g, limit := errgroup.WithContext(ctx)
	for range spawners {
		g.Go(func() error {
			for n := next.Add(1); n <= int64(many); n = next.Add(1) {
				in := commands.SpawnInput{Name: fmt.Sprintf("lost-%05d", n), Provider: farName, Ready: "1h", TTL: "24h", CPUs: "0.01", Memory: "1MiB", Command: []string{"true"}}
				if _, err := client.Call(limit, c, commands.Spawn, in, client.WithPatience(time.Minute)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for d.arrived() < many {
		select {
		case <-ctx.Done():
			return fault.New(fault.DeadlineExceeded, "only %d of %d operations were sent", d.arrived(), many)
		case <-time.After(lookEvery):
		}
	}
	return nil
}

func (t *trial) arrived() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.sent)
}

// restart begins to answer questions; the channel is closed when so many
// operations have their answer.
func (t *trial) restart(wanted int) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lose, t.takes, t.most, t.wanted = false, questionTakes, t.now, wanted
	t.asked, t.settled = map[events.OperationID]int{}, make(chan struct{})
	return t.settled
}

// questions is how many there were at once, in all, and about how many operations.
func (t *trial) questions() (most, all, of int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.asked {
		all += n
	}
	return t.most, all, len(t.asked)
}
