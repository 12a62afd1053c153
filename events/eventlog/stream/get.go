package stream

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"berth/events"
	"berth/events/fault"
)

// Limits of one direct batch get; a longer boundary takes several.
const (
	getBatch = 1000
	getBytes = 8 << 20
)

// gets runs direct batch gets over one long-lived subscription: a consumer per
// load would cost four times as much.
type gets struct {
	nc      *nats.Conn
	subject string // of the API
	inbox   string
	sub     *nats.Subscription
	next    atomic.Uint64
	mu      sync.Mutex
	open    map[string]*get
}

// get is one batch that is being received.
type get struct {
	msgs []*nats.Msg
	end  *nats.Msg
	done chan struct{}
}

func newGets(nc *nats.Conn, stream string) (*gets, error) {
	g := &gets{nc: nc, subject: "$JS.API.DIRECT.GET." + stream, inbox: nc.NewInbox(), open: map[string]*get{}}
	sub, err := nc.Subscribe(g.inbox+".*", g.receive)
	if err != nil {
		return nil, err
	}
	g.sub = sub
	return g, sub.SetPendingLimits(-1, -1)
}

func (g *gets) close() error { return g.sub.Unsubscribe() }

func (g *gets) receive(m *nats.Msg) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.open[m.Subject]
	if r == nil {
		return // of a get that was given up
	}
	if len(m.Data) == 0 && m.Header.Get("Status") != "" {
		r.end = m
		delete(g.open, m.Subject)
		close(r.done)
		return
	}
	r.msgs = append(r.msgs, m)
}

// batch gets up to one batch of messages of subject from sequence on, and
// whether there are more.
func (g *gets) batch(ctx context.Context, subject string, from uint64) (msgs []*nats.Msg, more bool, err error) {
	inbox := g.inbox + "." + strconv.FormatUint(g.next.Add(1), 36)
	r := &get{done: make(chan struct{})}
	g.mu.Lock()
	g.open[inbox] = r
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.open, inbox)
		g.mu.Unlock()
	}()
	req, err := json.Marshal(map[string]any{"seq": from, "batch": getBatch, "max_bytes": getBytes, "next_by_subj": subject})
	if err != nil {
		return nil, false, err
	}
	if err := g.nc.PublishRequest(g.subject, inbox, req); err != nil {
		return nil, false, err
	}
	select {
	case <-ctx.Done():
		return nil, false, ctx.Err()
	case <-r.done:
	}
	switch status := r.end.Header.Get("Status"); status {
	case "404":
		return r.msgs, false, nil
	case "204":
		return r.msgs, r.end.Header.Get("Nats-Num-Pending") != "0" && len(r.msgs) > 0, nil
	default:
		return nil, false, errors.New("the server answers " + status + " " + r.end.Header.Get("Description"))
	}
}

// loadDirect reads a boundary with direct gets (one replica).
func (l *Log) loadDirect(ctx context.Context, b events.Boundary, after uint64) ([]events.Record, error) {
	var out []events.Record
	for more := true; more; {
		var msgs []*nats.Msg
		var err error
		if msgs, more, err = l.gets.batch(ctx, b.Subject(l.cfg.Space), after+1); err != nil {
			return nil, err
		}
		for _, m := range msgs {
			seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
			if err != nil || seq <= after {
				return nil, errors.New("the server answered a get without a rising sequence")
			}
			out = append(out, events.ParseRecord(b, seq, m.Data))
			after = seq
		}
	}
	return out, nil
}

// loadLeader reads a boundary from the stream's leader, one message at a time.
func (l *Log) loadLeader(ctx context.Context, b events.Boundary, after uint64) ([]events.Record, error) {
	var out []events.Record
	for {
		m, err := l.leaderGet(ctx, map[string]any{"seq": after + 1, "next_by_subj": b.Subject(l.cfg.Space)})
		if err != nil || m == nil {
			return out, err
		}
		out = append(out, events.ParseRecord(b, m.Sequence, m.Data))
		after = m.Sequence
	}
}

// storedMsg is a message as the stream API answers it.
type storedMsg struct {
	Subject  string `json:"subject"`
	Sequence uint64 `json:"seq"`
	Data     []byte `json:"data"`
}

// leaderGet asks the leader for one message, nil if there is none. It takes at
// most Config.Timeout: a long boundary is many such requests, and how long all
// of them may take is the caller's to say.
func (l *Log) leaderGet(ctx context.Context, request map[string]any) (*storedMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	req, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	resp, err := l.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+l.name, req)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message *storedMsg          `json:"message"`
	}
	if err := json.Unmarshal(resp.Data, &answer); err != nil {
		return nil, err
	}
	if answer.Error != nil {
		if answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return nil, nil
		}
		return nil, answer.Error
	}
	return answer.Message, nil
}

// get reads one record by its sequence from the leader; false if there is none.
func (l *Log) get(ctx context.Context, sequence uint64) (events.Record, bool, error) {
	return l.one(ctx, map[string]any{"seq": sequence})
}

// last reads a boundary's newest record from the leader.
func (l *Log) last(ctx context.Context, b events.Boundary) (events.Record, bool, error) {
	return l.one(ctx, map[string]any{"last_by_subj": b.Subject(l.cfg.Space)})
}

func (l *Log) one(ctx context.Context, request map[string]any) (events.Record, bool, error) {
	m, err := l.leaderGet(ctx, request)
	if err != nil || m == nil {
		return events.Record{}, false, err
	}
	return events.ParseRecord(events.Boundary(strings.TrimPrefix(m.Subject, l.prefix)), m.Sequence, m.Data), true, nil
}

// unreadable is the error of a read that failed.
func (l *Log) unreadable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fault.New(fault.Unavailable, "%s of stream %s can't be read: %s", what, l.name, events.Scrub(err.Error())).WithOutcome(fault.NotExecuted)
}
