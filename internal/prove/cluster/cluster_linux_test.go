package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/eventlog/stream"
	"berth/events/fault"
	"berth/internal/ids"
)

const space events.Space = "cluster"

const (
	clients    = 6
	boundaries = 4
	rounds     = 3
	// pace is between two appends of one client: the checker's time grows with
	// how many overlap.
	pace = 5 * time.Millisecond
)

// options are those of a manager on a cluster. Without the pings a client of a
// server that was cut off waits for minutes: its connection stays open.
func (s *servers) options() []nats.Option {
	return []nats.Option{nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.Timeout(10 * time.Second),
		nats.PingInterval(3 * time.Second), nats.MaxPingsOutstanding(2)}
}

// Compare-and-append is linearizable and exactly once on three replicas, and
// goes on after every disturbance (law 3; scenarios 67 and 68).
func TestThreeServers(t *testing.T) {
	if os.Getenv("BERTH_PROVE") == "" {
		t.Skip("SKIPPED, cluster runs take minutes: make prove-cluster")
	}
	locked(func() { threeServers(t) })
}

func threeServers(t *testing.T) {
	s := newServers(t)
	admin := s.open(0)
	h := newHistory()
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for c := range clients {
		l := s.open(c).log
		wg.Go(func() { work(ctx, c, l, h) })
	}
	defer wg.Wait()
	defer stop()
	s.goesOn(h, "the start")
	if i, err := s.info(admin); err != nil {
		t.Fatal(err)
	} else if i.Config.Compression != jetstream.NoCompression {
		t.Fatalf("the log with replicas is kept as %s", i.Config.Compression)
	}
	for round := range rounds {
		for _, d := range []struct {
			name string
			do   func(a *opened)
		}{
			{"the leader is killed", func(a *opened) { s.killLeader(a) }},
			{"the leader is cut off", func(a *opened) { s.cutOff(a, h) }},
			{"all are restarted in turn", func(a *opened) { s.roll(a) }},
			{"a follower's store is made anew", func(a *opened) { s.anew(a) }},
		} {
			begun := time.Now()
			d.do(admin)
			s.goesOn(h, d.name)
			s.whole(admin)
			t.Logf("round %d: %s: every client went on, and all replicas are current, after %s", round, d.name, time.Since(begun).Round(10*time.Millisecond))
		}
	}
	stop()
	wg.Wait()
	log := map[events.EventID][]uint64{}
	if err := admin.log.Scan(t.Context(), 0, func(r events.Record) error {
		if r.Broken != nil || r.Torn {
			t.Errorf("record %d is broken: %v", r.Sequence, r.Broken)
		}
		log[r.Meta.ID] = append(log[r.Meta.ID], r.Sequence)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	h.check(t, log)
}

// opened is a log with its connection.
type opened struct {
	nc  *nats.Conn
	log *stream.Log
}

// open waits for the cluster as a manager's start does.
func (s *servers) open(first int) *opened {
	s.Helper()
	nc := s.connect(first)
	for end := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
		l, err := stream.Open(ctx, nc, stream.Config{Space: space, Create: true, Replicas: size, Timeout: 2 * time.Second})
		cancel()
		if err == nil {
			return &opened{nc, l}
		}
		if time.Now().After(end) {
			s.Fatalf("the log can't be opened: %v", err)
		}
	}
}

// work appends to the shared boundaries until ctx ends.
func work(ctx context.Context, me int, l *stream.Log, h *history) {
	source, seen := ids.New(), map[events.Boundary]uint64{}
	for n := 0; ctx.Err() == nil; n++ {
		b := events.UIDBoundary(events.UID(fmt.Sprintf("%026d", (me+n)%boundaries)))
		begun := h.now()
		last := seen[b] // as a manager's shelf, it reads on from what it has
		rs, err := l.Load(ctx, b, last)
		if err != nil {
			sleep(ctx, pace)
			continue
		}
		if len(rs) > 0 {
			last = rs[len(rs)-1].Sequence
		}
		seen[b] = last
		h.add(me, begun, asked{boundary: b}, answered{sequence: last})
		in := asked{boundary: b, append: true, expect: last, id: events.EventID(source.UUID())}
		begun = h.now()
		if out, ok := settle(ctx, l, in); ok {
			h.add(me, begun, in, out)
		} else {
			h.giveUp(me, begun, in)
		}
		sleep(ctx, pace)
	}
}

// settle gives the same commit until it is known what became of it.
func settle(ctx context.Context, l *stream.Log, in asked) (answered, bool) {
	c := events.Commit{Boundary: in.boundary, Expect: in.expect,
		Meta:   events.Meta{ID: in.id, Time: events.MillisUTC(time.Now()), Caller: events.Caller{Owner: "local", Actor: "me", UID: "cccccccccccccccccccccccccc"}},
		Events: []events.Event{events.SlotTerminalizing{UID: "cccccccccccccccccccccccccc", Reason: "append"}}}
	for {
		r, err := l.Commit(ctx, c)
		if err == nil {
			return answered{true, r.Sequence}, true
		}
		if f := fault.From(err); f.Code == fault.Conflict {
			for _, d := range f.Details {
				if d.Kind == eventlog.DetailConflict {
					n, perr := strconv.ParseUint(d.Facts["actual"], 10, 64)
					return answered{false, n}, perr == nil
				}
			}
		}
		if !sleep(ctx, pace) {
			return answered{}, false
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// goesOn waits until every client has had three more appends stored.
func (s *servers) goesOn(h *history, after string) {
	s.Helper()
	before := h.progress()
	for end := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		now, on := h.progress(), 0
		for c := range clients {
			if now[c] >= before[c]+3 {
				on++
			}
		}
		if on == clients {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("after %s only %d of %d clients go on within %s: %v, before %v", after, on, clients, within, maps.Clone(now), before)
		}
	}
}

// info is the stream's state as the cluster sees it.
func (s *servers) info(a *opened) (*jetstream.StreamInfo, error) {
	js, err := jetstream.New(a.nc, jetstream.WithDefaultTimeout(2*time.Second))
	if err != nil {
		return nil, err
	}
	st, err := js.Stream(s.Context(), events.StreamName(space))
	if err != nil {
		return nil, err
	}
	return st.CachedInfo(), nil
}

// whole waits until the stream has a leader, its replicas are current, and each
// server says that it is healthy.
func (s *servers) whole(a *opened) {
	s.Helper()
	for end := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		i, err := s.info(a)
		state, ok := replicas(i)
		for n := range s.nodes {
			if err == nil {
				err = s.healthy(n)
			}
		}
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("the servers are not whole within %s: %s, %v", within, state, err)
		}
	}
}

// replicas says how the leader sees the others, and whether all are current.
func replicas(i *jetstream.StreamInfo) (state string, ok bool) {
	if i == nil || i.Cluster == nil || i.Cluster.Leader == "" {
		return "no leader", false
	}
	state = fmt.Sprintf("%s leads at %d", i.Cluster.Leader, i.State.LastSeq)
	ok = len(i.Cluster.Replicas) == size-1
	for _, r := range i.Cluster.Replicas {
		ok = ok && r.Current && !r.Offline
		state += fmt.Sprintf("; %s: current %v, offline %v, %d behind, heard %s ago", r.Name, r.Current, r.Offline, r.Lag, r.Active)
	}
	return state, ok
}

// leader is the server that leads the stream.
func (s *servers) leader(a *opened) int {
	s.Helper()
	s.whole(a)
	i, err := s.info(a)
	if err != nil {
		s.Fatal(err)
	}
	for n := range s.nodes {
		if s.nodes[n].Name == i.Cluster.Leader {
			return n
		}
	}
	s.Fatalf("no server is %s", i.Cluster.Leader)
	return 0
}

func (s *servers) killLeader(a *opened) {
	l := s.leader(a)
	s.end(l, unix.SIGKILL)
	s.start(l)
}

// cutOff stops the leader until every client went on without it, also those
// that were connected to it, and then lets it come back with its old beliefs.
func (s *servers) cutOff(a *opened, h *history) {
	l := s.leader(a)
	s.signal(l, unix.SIGSTOP)
	begun := time.Now()
	s.goesOn(h, "the leader was cut off")
	s.Logf("without the leader every client went on after %s", time.Since(begun).Round(10*time.Millisecond))
	s.signal(l, unix.SIGCONT)
}

// roll restarts all servers as docs/proof.md says: the next one only when all
// are whole. A server that is told to end hands its leadership over first.
func (s *servers) roll(a *opened) {
	for n := range s.nodes {
		s.whole(a)
		s.end(n, unix.SIGTERM)
		s.start(n)
	}
}

// anew takes a follower's whole store away, as one does whose copy can't be
// read: it gets all of it from the others again.
func (s *servers) anew(a *opened) {
	n := (s.leader(a) + 1) % size
	s.end(n, unix.SIGTERM)
	if err := os.RemoveAll(s.nodes[n].Store); err != nil {
		s.Fatal(err)
	}
	s.start(n)
}
