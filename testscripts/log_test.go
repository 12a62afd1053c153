package testscripts

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"

	"berth"
	"berth/events"
	"berth/events/eventlog/logtest"
	"berth/events/eventlog/stream"
	"berth/internal/embedded"
	"berth/internal/prove/link"
)

// withServer runs the server of the script's data directory, while its manager
// is down: what a stranger or a newer program does to the log.
func withServer(ts *testscript.TestScript, f func(context.Context, jetstream.JetStream, *stream.Log) error) {
	m := managerOf(ts)
	if m.cmd != nil {
		ts.Fatalf("the manager is up: its log is its own")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	dir, err := berth.OpenDataDir(m.data, "default")
	ts.Check(err)
	defer dir.Close()
	srv, err := embedded.Start(ctx, embedded.Options{StoreDir: filepath.Join(m.data, "nats"), Name: "berth-" + string(dir.Identity.Instance), SyncAlways: true})
	ts.Check(err)
	defer srv.Stop()
	nc, err := srv.Connect()
	ts.Check(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	ts.Check(err)
	l, err := stream.Open(ctx, nc, stream.Config{Space: "default"})
	ts.Check(err)
	defer l.Close()
	ts.Check(f(ctx, js, l))
}

// cmdAppendEvent appends an event of any type to a boundary, with the right
// hash, as a newer program would: append-event BOUNDARY TYPE.
func cmdAppendEvent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: append-event BOUNDARY TYPE")
	}
	withServer(ts, func(ctx context.Context, js jetstream.JetStream, l *stream.Log) error {
		b := events.Boundary(args[0])
		rs, err := l.Load(ctx, b, 0)
		if err != nil || len(rs) == 0 {
			return errors.Join(err, errors.New("nothing is on "+args[0]))
		}
		last := rs[len(rs)-1]
		meta := last.Meta
		meta.ID = "019b76da-a800-7000-8000-000000000001"
		c := events.Commit{Boundary: b, Expect: last.Sequence, Meta: meta, Events: []events.Event{events.CommandAnswered{Command: "x", Fingerprint: "y"}}}
		body, _, err := events.Encode(c, last.Hash, nil)
		if err != nil {
			return err
		}
		newer := logtest.Seal(b, strings.Replace(string(body), "command.answered.v1", args[1], 1))
		_, err = js.Publish(ctx, b.Subject("default"), []byte(newer))
		return err
	})
}

// cmdNewerFormat marks the log as one of a later version.
func cmdNewerFormat(ts *testscript.TestScript, neg bool, args []string) {
	withServer(ts, func(ctx context.Context, js jetstream.JetStream, _ *stream.Log) error {
		s, err := js.Stream(ctx, events.StreamName("default"))
		if err != nil {
			return err
		}
		cfg := s.CachedInfo().Config
		cfg.Metadata["berth.format"] = "99"
		_, err = js.UpdateStream(ctx, cfg)
		return err
	})
}

// cmdFill writes goals until the log is full: each dry of effect, for a
// provider that is not there.
func cmdFill(ts *testscript.TestScript, neg bool, args []string) {
	for i := range 2000 {
		words := make([]string, 0, 64)
		for w := range 60 {
			words = append(words, strings.Repeat(string(rune('a'+(i+w)%26)), 400))
		}
		spawn := append([]string{"spawn", "fill-" + strconv.Itoa(i), "--provider", "drill", "-o", "json", "--"}, words...)
		if run(ts, append([]string{"berth"}, spawn...)) != 0 {
			break
		}
	}
	for i := range 2000 { // what is small may still fit
		if run(ts, []string{"berth", "spawn", "fit-" + strconv.Itoa(i), "--provider", "drill", "-o", "json", "--", "true"}) != 0 {
			return
		}
	}
	ts.Fatalf("the log did not become full")
}

// cmdExternal runs a NATS server of somebody else until the end of the script,
// and tells its URL in $EXTERNAL.
func cmdExternal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: external")
	}
	srv, err := embedded.Start(context.Background(), embedded.Options{StoreDir: ts.MkAbs("external"), Name: "external", SyncAlways: true, Listen: true})
	ts.Check(err)
	ts.Defer(srv.Stop)
	ts.Setenv("EXTERNAL", srv.ClientURL())
}

// cmdLink makes a link to the server of a URL that can be cut, and keeps its URL
// in LINK: link URL. `link cut` and `link mend` are about it.
func cmdLink(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: link URL|cut|mend")
	}
	m := managerOf(ts)
	switch {
	case m.link == nil:
		l, err := link.New(strings.TrimPrefix(args[0], "nats://"))
		ts.Check(err)
		ts.Defer(l.Close)
		m.link = l
		ts.Setenv("LINK", "nats://"+l.Addr())
	case args[0] == "cut":
		m.link.Cut()
	case args[0] == "mend":
		m.link.Mend()
	default:
		ts.Fatalf("there is a link already")
	}
}
