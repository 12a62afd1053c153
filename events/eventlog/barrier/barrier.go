package barrier

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"berth/events"
	"berth/events/fault"
)

// waiting is how many commits may queue for one fsync before callers block.
const waiting = 4096

// Barrier syncs one stream's blocks. It is safe for concurrent use.
type Barrier struct {
	dir     string
	waits   chan wait
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once
	durable atomic.Uint64

	// Of the loop alone:
	n    int
	file *os.File
	dead error
}

type wait struct {
	sequence uint64
	done     chan error
}

// Open begins a barrier over the directory of a stream's blocks, as
// <store>/jetstream/<account>/streams/<stream>/msgs. It first syncs what a
// killed process may have left in the page cache: all blocks, the stream's own
// files and the directories up to store.
func Open(store, msgs string) (*Barrier, error) {
	if err := syncAll(store, msgs); err != nil {
		return nil, fault.New(fault.Unavailable, "the log's files can't be synced: %s", events.Scrub(err.Error())).WithOutcome(fault.NotExecuted)
	}
	b := &Barrier{dir: msgs, waits: make(chan wait, waiting), stop: make(chan struct{}), stopped: make(chan struct{})}
	go b.run()
	return b, nil
}

// Wait returns nil once every record up to sequence is synced; sequence must
// have been acknowledged by the server, or been seen by a reader. Any other
// return says that this is not known.
func (b *Barrier) Wait(ctx context.Context, sequence uint64) error {
	if sequence <= b.durable.Load() {
		return nil
	}
	w := wait{sequence, make(chan error, 1)}
	select {
	case b.waits <- w:
	case <-ctx.Done():
		return ctx.Err()
	case <-b.stopped:
		return errClosed
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-b.stopped:
		select {
		case err := <-w.done: // answered just before
			return err
		default:
			return errClosed
		}
	}
}

var errClosed = errors.New("the barrier is closed")

// Durable is the highest sequence that a finished fsync covered since Open.
func (b *Barrier) Durable() uint64 { return b.durable.Load() }

// Close ends the barrier. Whoever still waits is told that it is closed.
func (b *Barrier) Close() error {
	b.once.Do(func() { close(b.stop) })
	<-b.stopped
	return nil
}

func (b *Barrier) run() {
	defer close(b.stopped)
	defer func() {
		if b.file != nil {
			b.file.Close()
		}
	}()
	var ws []wait
	for {
		select {
		case <-b.stop:
			return
		case w := <-b.waits:
			ws = append(ws[:0], w)
		}
		for more := true; more; {
			select {
			case w := <-b.waits:
				ws = append(ws, w)
			default:
				more = false
			}
		}
		if b.dead == nil {
			b.dead = b.sync()
		}
		if b.dead == nil {
			for _, w := range ws {
				b.durable.Store(max(b.durable.Load(), w.sequence))
			}
		}
		for _, w := range ws {
			w.done <- b.dead
		}
	}
}

// sync makes durable what the server had written when it began.
func (b *Barrier) sync() error {
	if b.file == nil {
		ns, err := blocks(b.dir)
		if err != nil {
			return err
		}
		if len(ns) == 0 {
			return fmt.Errorf("no blocks in %s", b.dir)
		}
		b.n = ns[len(ns)-1]
		if b.file, err = os.Open(block(b.dir, b.n)); err != nil {
			return err
		}
		if err := syncPath(b.dir); err != nil {
			return err
		}
	}
	for {
		// Look for the next block before syncing this one: if it is there, this
		// one is sealed and the sync covers all of it. The other way round loses
		// what was written here between the sync and the roll-over.
		next, err := os.Open(block(b.dir, b.n+1))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := b.file.Sync(); err != nil {
			return err
		}
		if next == nil {
			return nil
		}
		b.file.Close()
		b.file, b.n = next, b.n+1
		if err := syncPath(b.dir); err != nil {
			return err
		}
	}
}

func block(dir string, n int) string { return filepath.Join(dir, strconv.Itoa(n)+".blk") }

// blocks is the numbers of the blocks in a directory, rising.
func blocks(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ns []int
	for _, e := range entries {
		if s, ok := strings.CutSuffix(e.Name(), ".blk"); ok {
			if n, err := strconv.Atoi(s); err == nil {
				ns = append(ns, n)
			}
		}
	}
	slices.Sort(ns)
	return ns, nil
}

// syncAll syncs every block, the files beside the blocks' directory, and the
// directories from there up to store.
func syncAll(store, msgs string) error {
	ns, err := blocks(msgs)
	if err != nil {
		return err
	}
	for _, n := range ns {
		if err := syncPath(block(msgs, n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	stream := filepath.Dir(msgs)
	entries, err := os.ReadDir(stream)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		if err := syncPath(filepath.Join(stream, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	store = filepath.Clean(store)
	for dir := msgs; ; dir = filepath.Dir(dir) {
		if err := syncPath(dir); err != nil {
			return err
		}
		if dir == store || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
