package berth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

// retryWorker is the pause before a part that failed is tried again.
const retryWorker = time.Second

// stallAfter is how long a start waits for the next record of the log. An
// election takes up to 9 s.
const stallAfter = time.Minute

// Run serves until ctx ends or the command shutdown asks for it, then drains: no new commands, what is in flight
// is answered or left to the next start, environments go on. It returns nil
// after a clean stop.
func (m *Manager) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, m.Close()) }()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	w := &workers{ctx: work, log: m.logger.Warn, failed: map[string]error{}}
	h := &health{checks: m.checks(w), registry: m.metrics()}

	lost := make(chan error, 1)
	w.Go("views", m.views(lost))
	w.Go("http", func(ctx context.Context) error { return h.serve(ctx, m.listener) })
	if begun, err := m.begin(ctx, lost); !begun {
		stop()
		w.Wait()
		return m.orUnwritable(err)
	}
	m.takeUp(work)
	w.Go("follow", m.keeper.follow)
	w.Go("engine", m.engine.Run)
	w.Go("keep", m.keeper.keep)
	if err := m.serve(); err != nil {
		stop()
		w.Wait()
		return err
	}
	if err := m.writeEndpoint(); err != nil {
		m.logger.Error("the endpoint file was not written", "error", err)
	}
	w.Go("offers", m.plane.Offers)
	w.Go("orphans", m.plane.Orphans)
	if runtime.GOOS == "linux" {
		w.Go("door", m.answerSeats)
	}
	w.Go("transcripts", m.plane.Transcripts)
	close(m.ready)
	m.logger.Info("ready", "instance", m.writer.Instance, "epoch", m.writer.Epoch, "sequence", m.runner.Sequence())

	select {
	case <-ctx.Done():
	case <-m.asked:
	case <-m.unwritable:
	case err = <-lost:
	}
	m.drain()
	stop()
	w.Wait()
	m.keeper.rest()
	return m.orUnwritable(err)
}

// views folds the log for readers, and tells lost of a log that can't be
// followed any more: begun again, it would stop at the same record.
func (m *Manager) views(lost chan<- error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := m.runner.Run(ctx)
		if fault.ExitOf(err) == fault.ExitLogLost {
			select {
			case lost <- err:
			default: // it was told
			}
			<-ctx.Done()
		}
		return err
	}
}

// begin waits until the views are at the log's tip, and only then registers
// the epoch and makes the engine: a log that turns out not to be whole is
// refused before anything is written to it (decision 6). False, with the reason
// or none, says that Run is to end.
func (m *Manager) begin(ctx context.Context, lost <-chan error) (bool, error) {
	stalled := time.NewTicker(stallAfter)
	defer stalled.Stop()
	for at := uint64(0); ; {
		select {
		case <-m.runner.Ready():
			err := m.register(ctx)
			if err == nil {
				err = m.openEngine()
			}
			if ctx.Err() != nil {
				err = nil
			}
			return err == nil && ctx.Err() == nil, err
		case err := <-lost:
			return false, err
		case <-m.unwritable:
			return false, nil
		case <-ctx.Done():
			return false, nil
		case <-stalled.C:
			now := m.runner.Sequence()
			if now == at {
				return false, fault.New(fault.Unavailable, "the log gave no record after %d for %s", now, stallAfter).
					WithOutcome(fault.NotExecuted).WithHint("nothing was written; look at the NATS server, then start again")
			}
			at = now
		}
	}
}

// takeUp gives the engine what was unfinished or running when the last
// process ended.
func (m *Manager) takeUp(ctx context.Context) {
	var seats []aggregates.Seat
	var more []events.Boundary
	m.runner.Read(func(v *projections.Views) {
		v.EachSeat(func(s aggregates.Seat) bool {
			seats = append(seats, s)
			return true
		})
		more = v.Unfinished()
		for _, e := range v.WrittenOff() {
			more = append(more, events.EnvironmentBoundary(e.ID))
		}
	})
	m.sweepMaterial(seats)
	m.engine.Start(ctx, seats)
	for _, b := range more {
		m.engine.Resume(b)
	}
}

// sweepMaterial removes staged credentials of lives that no held seat names:
// a crash came between the end of a life and its cleaning. A seat that can't
// be read may name any of them, so then nothing is removed.
func (m *Manager) sweepMaterial(held []aggregates.Seat) {
	keep := map[string]bool{}
	for _, s := range held {
		if s.Quarantine != nil {
			return
		}
		keep[string(s.Slot.UID)] = true
	}
	dir := m.dir.File(materialDir)
	staged, err := os.ReadDir(dir)
	if err != nil {
		m.logger.Error("the staged credentials can't be listed", "error", err)
		return
	}
	for _, f := range staged {
		if keep[f.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, f.Name())); err != nil {
			m.logger.Error("a staged credential was not removed", "error", err)
		}
	}
}

func (m *Manager) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	if err := os.Remove(m.dir.File(endpointFile)); err != nil {
		m.logger.Warn("the endpoint file was not removed", "error", err)
	}
	m.sessions.Stop()
	m.serving.Load().Stop()
	m.plane.Close()
	m.engine.Drain(ctx)
	m.keeper.stop(ctx)
}

// workers runs the manager's parts. One that ends before its time is told,
// shown by readiness, and begun again (scenario 77).
type workers struct {
	ctx context.Context
	log func(string, ...any)
	wg  sync.WaitGroup

	mu     sync.Mutex
	failed map[string]error
}

// Go runs f until the context ends.
func (w *workers) Go(name string, f func(context.Context) error) {
	w.wg.Go(func() {
		for w.ctx.Err() == nil {
			err := f(w.ctx)
			if w.ctx.Err() != nil {
				return
			}
			if err == nil {
				err = errors.New("it ended by itself")
			}
			w.set(name, err)
			w.log("a part of the manager failed and is begun again", "part", name, "error", err)
			select {
			case <-w.ctx.Done():
			case <-time.After(retryWorker):
				w.set(name, nil)
			}
		}
	})
}

// Wait waits until every part has ended.
func (w *workers) Wait() { w.wg.Wait() }

func (w *workers) set(name string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed[name] = err
}

// Err names the parts that do not run.
func (w *workers) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all error
	for name, err := range w.failed {
		if err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", name, err))
		}
	}
	return all
}
