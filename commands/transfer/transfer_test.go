package transfer_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"berth/commands/transfer"
	"berth/events/fault"
	"berth/internal/embedded"
)

func bucket(t *testing.T) (context.Context, *nats.Conn, *transfer.Bucket) {
	t.Helper()
	_, nc := embedded.ForTest(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx, nc, transfer.NewBucket(nc, "default", "iiiiiiiiiiiiiiiiiiiiiiiiii")
}

// What a sender puts there is taken out whole, at every size around a chunk,
// and can be put there again after it was removed.
func TestWhatIsSentComesOut(t *testing.T) {
	ctx, nc, b := bucket(t)
	for _, n := range []int{0, 1, 128<<10 - 1, 128 << 10, 128<<10 + 1, 700_000} {
		want := bytes.Repeat([]byte{7}, n)
		if there, err := b.Has(ctx, "x"); there || err != nil {
			t.Fatalf("before: %v, %v", there, err)
		}
		if err := transfer.Send(ctx, nc, b.Name(), "x", bytes.NewReader(want)); err != nil {
			t.Fatal(err)
		}
		if there, err := b.Has(ctx, "x"); !there || err != nil {
			t.Fatalf("after: %v, %v", there, err)
		}
		var got bytes.Buffer
		if err := b.Fetch(ctx, "x", 1<<20, &got); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%d bytes of %d came out: %v", got.Len(), n, err)
		}
		if err := b.Remove(ctx, "x"); err != nil {
			t.Fatal(err)
		}
		if err := b.Remove(ctx, "x"); err != nil {
			t.Fatalf("removed twice: %v", err)
		}
	}
}

// No more is read than was announced, but for the one byte that tells it.
func TestFetchIsBounded(t *testing.T) {
	ctx, nc, b := bucket(t)
	if _, err := b.Has(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	if err := transfer.Send(ctx, nc, b.Name(), "x", strings.NewReader("four")); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := b.Fetch(ctx, "x", 2, &got); err != nil || got.Len() != 3 {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
	if err := b.Fetch(ctx, "y", 2, &got); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("what is not there: %v", err)
	}
}

// A bucket that is full, or was never made, is told, and nothing was executed.
func TestSendIsRefused(t *testing.T) {
	ctx, nc, b := bucket(t)
	err := transfer.Send(ctx, nc, b.Name(), "x", strings.NewReader("x"))
	if e := fault.From(err); e == nil || e.Code != fault.Unavailable || e.Outcome != fault.NotExecuted {
		t.Errorf("no bucket: %v", err)
	}
	if _, err := b.Has(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	err = transfer.Send(ctx, nc, b.Name(), "x", bytes.NewReader(make([]byte, transfer.MaxBytes)))
	if e := fault.From(err); e == nil || e.Code != fault.ResourceExhausted || e.Outcome != fault.NotExecuted {
		t.Errorf("a full bucket: %v", err)
	}
}
