package client_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/client"
	"berth/commands/commandstest"
	"berth/commands/service"
	"berth/events/fault"
	"berth/internal/embedded"
)

// A wait that was sent to a manager that is gone is asked again of the one that
// came after it, at another address, without waiting for the first's answer.
func TestAWaitGoesOnAtAnotherAddress(t *testing.T) {
	first, nc := embedded.ForTest(t, nil)
	second, other := embedded.ForTest(t, nil)
	h := hold{make(chan struct{}, 8), make(chan struct{})}
	defer close(h.release)
	serveOn(t, nc, commandstest.Config{Idle: true}, service.Options{Handler: h})
	m := serveOn(t, other, commandstest.Config{}, service.Options{})

	line, err := first.Connect(nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	c := client.Connect(line, commandstest.Space, commandstest.Caller)
	defer c.Close()
	again := 0
	c.Redial(func(old *nats.Conn) (*nats.Conn, error) {
		if old != line {
			t.Error("another connection was lost")
		}
		if again++; again == 1 {
			return nil, fault.New(fault.Unavailable, "it is not there yet")
		}
		return second.Connect()
	})
	ctx := within(t)
	done := make(chan error, 1)
	go func() {
		_, err := c.WaitStatus(ctx, "demo", "", 0, aggregates.StatusRunning)
		done <- err
	}()
	<-h.entered
	first.Stop()
	if _, err := client.Call(ctx, m.client, commands.Spawn, commandstest.Drill("demo")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if again < 2 {
		t.Errorf("it asked %d times where the manager is", again)
	}
	if !line.IsClosed() {
		t.Error("the lost connection was not closed")
	}
}
