package service

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"berth/commands"
	"berth/events"
	"berth/internal/embedded"
)

const (
	space    events.Space      = "test"
	instance events.InstanceID = "iiiiiiiiiiiiiiiiiiiiiiiiii"
	// patience is how long a test waits for what must come.
	patience = 60 * time.Second
)

// Only what is below an inbox prefix is an inbox.
func TestInboxes(t *testing.T) {
	s := &Service{o: Options{Inboxes: []string{"_INBOX", "mine.inbox."}}}
	for subject, want := range map[string]bool{
		"_INBOX.abc": true, "_INBOX.abc.1": true, "mine.inbox.x": true,
		"": false, "_INBOX": false, "_INBOX.": false, "_INBOXabc.x": false, "_INBOX.*": false, "_INBOX.>": false, "_INBOX.a b": false, "_INBOX..a": false,
		"mine.inbox": false, "mine.x": false, "berth.test.event.seat.a.b": false, "$JS.API.INFO": false, "$SYS.x": false,
		"_INBOX." + strings.Repeat("a", events.MaxSubject): false,
	} {
		if s.inbox(subject) != want {
			t.Errorf("%q is an inbox: %v", subject, !want)
		}
	}
	// Not even a prefix that covers them makes the log's subjects inboxes.
	s.o.Inboxes = []string{"berth", "$JS"}
	for _, subject := range []string{"berth.test.event.seat.a.b", "$JS.API.INFO"} {
		if s.inbox(subject) {
			t.Errorf("%q is an inbox", subject)
		}
	}
}

func TestVersions(t *testing.T) {
	for in, want := range map[string]string{"v1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3-rc.1", "": "0.0.0", "devel": "0.0.0"} {
		if got := semver(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

type handler func(ctx context.Context, a commands.Address) commands.Reply

func (h handler) Handle(ctx context.Context, a commands.Address, _ []byte, _ string) commands.Reply {
	return h(ctx, a)
}

func start(t *testing.T, h handler) (*Service, *nats.Conn) {
	t.Helper()
	server, nc := embedded.ForTest(t, nil)
	s, err := Start(Options{Conn: nc, Space: space, Instance: instance, Handler: h})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	asker, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(asker.Close)
	return s, asker
}

func subject(command string) string {
	return commands.Address{Target: commands.Any, Command: command, Mode: commands.ModeNone, Caller: events.Caller{Owner: "local", Actor: "me", UID: "cccccccccccccccccccccccccc"}}.Subject(space)
}

// What is being handled when the manager stops is answered; what only waits is
// ended, so that it holds nothing up.
func TestStopAnswersWhatItHandles(t *testing.T) {
	entered, release := make(chan struct{}, 2), make(chan struct{})
	s, nc := start(t, func(ctx context.Context, a commands.Address) commands.Reply {
		entered <- struct{}{}
		if a.Command == "wait" {
			<-ctx.Done()
			close(release)
		} else {
			<-release
		}
		return commands.Reply{OK: true, Result: json.RawMessage(`"` + a.Command + `"`)}
	})
	answers := make(chan string, 2)
	for _, c := range []string{"wait", "status"} {
		go func() {
			m, err := nc.Request(subject(c), nil, patience)
			if err != nil {
				answers <- err.Error()
				return
			}
			answers <- string(m.Data)
		}()
	}
	<-entered
	<-entered
	s.Stop()
	for range 2 {
		if a := <-answers; a != `{"ok":true,"result":"wait"}` && a != `{"ok":true,"result":"status"}` {
			t.Error(a)
		}
	}
}

// Every command is served for any instance and for this one, with the headers
// of an error that other services set.
func TestEveryCommandIsServed(t *testing.T) {
	s, nc := start(t, func(_ context.Context, a commands.Address) commands.Reply {
		return commands.Reply{OK: true, Result: json.RawMessage(`"` + a.Target + `"`)}
	})
	for _, c := range commands.Table {
		for _, target := range []string{commands.Any, string(instance)} {
			m, err := nc.Request(strings.Replace(subject(c.Name), ".any.", "."+target+".", 1), nil, patience)
			if err != nil || string(m.Data) != `{"ok":true,"result":"`+target+`"}` {
				t.Fatalf("%s for %s: %v", c.Name, target, err)
			}
		}
	}
	m, err := nc.Request(commands.Prefix(space)+"any.status.everyone._.local.me.cccccccccccccccccccccccccc", nil, patience)
	if err != nil || m.Header.Get(commands.HeaderErrorCode) != "400" || m.Header.Get(commands.HeaderError) != "bad-request" {
		t.Errorf("a bad subject is answered with %v, %v", m, err)
	}
	if n := s.Counts(); n["refused"] != 1 || n["handled"] != uint64(2*len(commands.Table)+1) {
		t.Errorf("counts: %v", n)
	}
}

// Discovery answers a client's inbox, and never writes a subject that a client
// names: the answer of a service is published with the manager's permissions,
// so that a seat's boundary would be broken for ever by one request.
func TestDiscoveryWritesNoForeignSubject(t *testing.T) {
	s, nc := start(t, func(context.Context, commands.Address) commands.Reply { return commands.Reply{OK: true} })
	const victim = "berth.test.event.seat.local.demo"
	stray, err := nc.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	asked := uint64(0)
	for _, verb := range []micro.Verb{micro.PingVerb, micro.InfoVerb, micro.StatsVerb} {
		for _, kind := range []string{"", "berth"} {
			control, err := micro.ControlSubject(verb, kind, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, to := range []string{victim, "$JS.API.STREAM.PURGE.BERTH_test", "elsewhere"} {
				if err := nc.PublishRequest(control, to, nil); err != nil {
					t.Fatal(err)
				}
				asked++
			}
			var id micro.ServiceIdentity // answered after all of those before it, on the same subscription
			m, err := nc.Request(control, nil, patience)
			if err != nil {
				t.Fatalf("%s: %s", control, err)
			}
			if err := json.Unmarshal(m.Data, &id); err != nil || id.Name != "berth" || id.Metadata["instance"] != string(instance) {
				t.Errorf("%s answered %s", control, m.Data)
			}
		}
	}
	if got := s.Counts()["misdirected"]; got != asked {
		t.Errorf("%d of %d requests were dropped", got, asked)
	}
	for {
		n, _, err := stray.Pending()
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		m, err := stray.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(m.Subject, "$SRV.") && !strings.HasPrefix(m.Subject, nats.InboxPrefix) {
			t.Errorf("%s was written", m.Subject)
		}
	}
}
