// Package transfer is an instance's own bucket for transcripts: who sends one
// puts it there, and the instance takes it out and removes it. No transcript is
// in a request.
package transfer

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"berth/events"
	"berth/events/fault"
)

// Limits of a bucket.
const (
	// MaxBytes is how much waits in it at a time; more is refused by the server.
	MaxBytes = 64 << 20
	// KeepFor is how long the server keeps what nobody took out.
	KeepFor = 30 * time.Minute
)

// Name is the bucket of an instance.
func Name(space events.Space, id events.InstanceID) string {
	return "berth_transfer_" + string(space) + "_" + string(id)
}

// Bucket is the instance's end of it. The bucket is made when it is first
// needed. It is safe for concurrent use.
type Bucket struct {
	name string
	conn *nats.Conn

	mu    sync.Mutex
	store jetstream.ObjectStore
}

// NewBucket sends nothing.
func NewBucket(nc *nats.Conn, space events.Space, id events.InstanceID) *Bucket {
	return &Bucket{name: Name(space, id), conn: nc}
}

// Name is how a sender finds it.
func (b *Bucket) Name() string { return b.name }

func (b *Bucket) open(ctx context.Context) (jetstream.ObjectStore, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.store != nil {
		return b.store, nil
	}
	js, err := jetstream.New(b.conn)
	if err == nil {
		b.store, err = js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: b.name, Description: "transcripts on their way to a manager", TTL: KeepFor, MaxBytes: MaxBytes, Storage: jetstream.FileStorage,
		})
	}
	return b.store, said("can't be made", err)
}

// Has says whether an object is there, whole. The bucket is there after it.
func (b *Bucket) Has(ctx context.Context, object string) (bool, error) {
	s, err := b.open(ctx)
	if err != nil {
		return false, err
	}
	_, err = s.GetInfo(ctx, object)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, said("can't be read", err)
}

// Fetch copies an object of at most most bytes; one byte more than that tells
// a longer one, and is not refused here.
func (b *Bucket) Fetch(ctx context.Context, object string, most int64, to io.Writer) error {
	s, err := b.open(ctx)
	if err != nil {
		return err
	}
	r, err := s.Get(ctx, object)
	if err != nil {
		return said("can't be read", err)
	}
	defer r.Close()
	_, err = io.Copy(to, io.LimitReader(r, most+1))
	if errors.Is(err, jetstream.ErrDigestMismatch) {
		return nil // the receiver's own digest says the same
	}
	return said("can't be read", err)
}

// Remove removes an object; one that is not there is removed.
func (b *Bucket) Remove(ctx context.Context, object string) error {
	s, err := b.open(ctx)
	if err != nil {
		return err
	}
	if err := s.Delete(ctx, object); !errors.Is(err, jetstream.ErrObjectNotFound) {
		return said("can't be removed from", err)
	}
	return nil
}

func said(what string, err error) error {
	if err == nil {
		return nil
	}
	code := fault.Unavailable
	if strings.Contains(err.Error(), "maximum bytes") {
		code = fault.ResourceExhausted
	}
	return fault.New(code, "the transfer bucket %s: %s", what, events.Scrub(err.Error())).WithOutcome(fault.NotExecuted).WithHint("try again; `berth doctor` looks at the server")
}
