package client_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"berth/commands"
	"berth/commands/client"
	"berth/commands/commandstest"
	"berth/commands/service"
	"berth/internal/embedded"
)

// What a read costs beside a bare micro request with a reply of that size.
func BenchmarkInspect(b *testing.B) {
	server, nc := embedded.ForTest(b, func(o *embedded.Options) { o.Listen, o.Port = true, -1 })
	asker, err := nats.Connect(server.ClientURL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(asker.Close)
	w := commandstest.New(b, commandstest.Config{})
	w.Spawn("demo")
	s, err := service.Start(service.Options{Conn: nc, Space: commandstest.Space, Instance: commandstest.Instance, Handler: w.Plane})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Stop)
	c := client.Connect(asker, commandstest.Space, commandstest.Caller)
	reply := w.Send(commands.Inspect.Contract, commands.Request{}, commands.Named{Name: "demo"}).Result
	m, err := micro.AddService(nc, micro.Config{Name: "bare", Version: "1.0.0"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Stop() })
	if err := m.AddEndpoint("bare", micro.HandlerFunc(func(r micro.Request) { _ = r.Respond(reply) })); err != nil {
		b.Fatal(err)
	}
	b.Run("berth", func(b *testing.B) {
		for b.Loop() {
			if _, err := client.Call(b.Context(), c, commands.Inspect, commands.Named{Name: "demo"}); err != nil {
				b.Fatal(err)
			}
		}
	})
	subject := commandstest.Address(commands.Inspect.Contract).Subject(commandstest.Space)
	b.Run("berth-raw", func(b *testing.B) {
		for b.Loop() {
			if _, err := asker.Request(subject, []byte(`{"input":{"name":"demo"}}`), nats.DefaultTimeout); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if _, err := asker.Request("bare", []byte(`{"input":{"name":"demo"}}`), nats.DefaultTimeout); err != nil {
				b.Fatal(err)
			}
		}
	})
}
