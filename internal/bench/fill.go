package bench

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"berth/events"
	"berth/events/fault"
	"berth/projections/sample"
)

const (
	space         = events.Space("bench")
	publishWindow = 4096
	// publishPatience is how long a full window may wait for a slow disk.
	publishPatience = time.Minute
)

// filler writes sample lives with their hash chains, as fast as the server
// takes them: how they came into the log is not what is measured.
type filler struct {
	g       *sample.Generator
	chain   map[events.Boundary]events.Hash
	commits uint64
	events  uint64
	retired int
}

// newFiller makes lives that all go well, from claim to retirement, each with
// a name of its own: three boundaries for every 34 events or so. So many live
// side by side.
func newFiller(held int) *filler {
	return &filler{
		g:     sample.New(sample.Options{Seed: 1, Names: held, Owners: 100, Calm: true, Fresh: true}),
		chain: map[events.Boundary]events.Hash{},
	}
}

// next is the next commit with its encoding.
func (f *filler) next() (events.Commit, []byte, error) {
	c, _ := f.g.Next() // lives that are followed by others never end
	body, h, err := events.Encode(c, f.chain[c.Boundary], nil)
	if err != nil {
		return c, nil, err
	}
	f.chain[c.Boundary] = h
	f.commits++
	f.events += uint64(len(c.Events))
	for _, e := range c.Events {
		if _, ok := e.(events.SlotRetired); ok {
			f.retired++
		}
	}
	return c, body, nil
}

// fill goes on until at least so many events were written in all.
func (f *filler) fill(ctx context.Context, nc *nats.Conn, total int) error {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(publishWindow))
	if err != nil {
		return err
	}
	for f.events < uint64(total) {
		c, body, err := f.next()
		if err != nil {
			return err
		}
		if _, err := js.PublishAsync(c.Boundary.Subject(space), body, jetstream.WithStallWait(publishPatience)); err != nil {
			return fault.New(fault.Unavailable, "the log can't be filled: %s", err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// blockBytes is what the blocks of a stream take on disk.
func blockBytes(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".blk") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		n += info.Size()
		return nil
	})
	return n, err
}
