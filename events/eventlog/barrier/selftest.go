package barrier

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// PinnedServer is the version of the server that the power-cut tests of this
// package run against. Another version needs those tests again.
const PinnedServer = "2.15.2"

const (
	trialPrefix = "BERTH_barrier_trial_"
	trialWrites = 8
	trialBytes  = 1024
)

// SelfTest shows, on a stream of its own, that this server writes a record into
// its block before it acknowledges it. msgs tells where a stream's blocks are.
// An error says why the group profile can't be used here; the caller falls back
// to the strict one. Sweep deletes the stream once another is there.
func SelfTest(ctx context.Context, nc *nats.Conn, msgs func(stream string) string) error {
	if v := nc.ConnectedServerVersion(); v != PinnedServer {
		return fmt.Errorf("the server is %s; the group profile is proved with %s", v, PinnedServer)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	// A name of its own each time: the server removes the files of a deleted
	// stream a little later, and refuses the same name until then.
	trial := trialPrefix + nuid.Next()
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: trial, Subjects: []string{trial}, Storage: jetstream.FileStorage,
		Compression: jetstream.S2Compression, AllowAtomicPublish: true,
	})
	if err != nil {
		return err
	}
	dir := msgs(trial)
	body := make([]byte, trialBytes)
	for range trialWrites {
		if _, err := rand.Read(body); err != nil {
			return err
		}
		before, err := newestSize(dir)
		if err != nil {
			return err
		}
		if _, err := js.Publish(ctx, trial, body); err != nil {
			return err
		}
		after, err := newestSize(dir)
		if err != nil {
			return err
		}
		if after < before+trialBytes {
			return fmt.Errorf("the server acknowledged %d bytes before they were in its block (%d, then %d bytes)", trialBytes, before, after)
		}
	}
	return nil
}

// Sweep deletes the streams of trials, those that were killed too. It is for
// when the log's stream is there: a moment after the last stream of an account
// the server removes the account's directory, and a stream that is created in
// that moment fails.
func Sweep(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	var all []string
	names := js.StreamNames(ctx)
	for name := range names.Name() {
		if strings.HasPrefix(name, trialPrefix) {
			all = append(all, name)
		}
	}
	err = names.Err()
	for _, name := range all {
		err = errors.Join(err, js.DeleteStream(ctx, name))
	}
	return err
}

// newestSize is the size of the newest block; none yet is zero.
func newestSize(dir string) (int64, error) {
	ns, err := blocks(dir)
	if err != nil || len(ns) == 0 {
		return 0, err
	}
	fi, err := os.Stat(block(dir, ns[len(ns)-1]))
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}
