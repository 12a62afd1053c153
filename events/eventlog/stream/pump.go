package stream

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"berth/events"
)

// pump reads and decodes records in goroutines of its own, and takes up again
// where it was when the consumer or the connection is lost.
type pump struct {
	log *Log
	out chan []events.Record
	// lost is told, at most once, that a record is not there any more.
	lost chan error
	at   uint64 // last sequence given
	// received is the last sequence that came, given or not.
	received atomic.Uint64
}

// errLeftOut is a record that the consumer did not give.
var errLeftOut = errors.New("the consumer left out records")

func (p *pump) run(ctx context.Context) {
	for wait := firstBackoff; ctx.Err() == nil; {
		before := p.at
		err := p.consume(ctx)
		if ctx.Err() != nil {
			return
		}
		if p.at > before {
			wait = firstBackoff
		}
		if errors.Is(err, errLeftOut) {
			if err := p.log.gap(ctx, p.at+1); err != nil {
				p.lost <- err
				return
			}
		}
		p.log.cfg.Log.Warn("following the log is interrupted; it goes on", "after", p.at, "error", events.Scrub(err.Error()))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, maxBackoff)
	}
}

// consume gives records until something goes wrong. The library's ordered
// consumer would repair itself, but not say for how long it can't: any error
// ends it here, and the next one begins after what was given.
func (p *pump) consume(ctx context.Context) error {
	c, err := p.log.js.OrderedConsumer(ctx, p.log.name, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: p.at + 1, MaxResetAttempts: 1,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.received.Store(p.at)
	r := receiver{pump: p, ctx: ctx, at: p.at}
	cc, err := c.Consume(func(m jetstream.Msg) {
		if err := r.receive(m); err != nil {
			cancel(err)
		}
	}, jetstream.PullMaxMessages(pullMessages), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { cancel(err) }))
	if err != nil {
		return err
	}
	<-ctx.Done()
	cc.Stop()
	r.mu.Lock() // the last call of receive is over, and the next ones do nothing
	defer r.mu.Unlock()
	r.done = true
	return context.Cause(ctx)
}

// receiver turns one consumer's messages into chunks of records.
type receiver struct {
	pump *pump
	ctx  context.Context

	mu    sync.Mutex
	done  bool
	at    uint64 // last sequence received
	chunk []events.Record
}

func (r *receiver) receive(m jetstream.Msg) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done || r.ctx.Err() != nil {
		return nil
	}
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	if meta.Sequence.Stream != r.at+1 {
		return errLeftOut
	}
	r.at++
	r.pump.received.Store(r.at)
	b := events.Boundary(m.Subject()[len(r.pump.log.prefix):])
	r.chunk = append(r.chunk, events.ParseRecord(b, r.at, m.Data()))
	if len(r.chunk) < chunkRecords && meta.NumPending > 0 {
		return nil
	}
	select {
	case <-r.ctx.Done():
	case r.pump.out <- r.chunk:
		r.pump.at, r.chunk = r.at, make([]events.Record, 0, chunkRecords)
	}
	return nil
}
