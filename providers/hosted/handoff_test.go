package hosted_test

import (
	"testing"

	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/server"
)

// undelegated is a driver that does not begin delegated seats.
type undelegated struct{ providers.Driver }

// H5: the provider that would stage a hand-off is the one on the other machine,
// and it is asked; no answer is not a no.
func TestTheProviderThereIsAskedForHandoffs(t *testing.T) {
	t.Parallel()
	e, d := overDrill(t, faithful)
	if err := d.TakesHandoff(within(t)); err != nil {
		t.Errorf("a driver that takes them: %v", err)
	}
	e.stop()
	d.Close()
	if err := d.TakesHandoff(within(t)); err == nil || !fault.From(err).Retryable || fault.From(err).Outcome != fault.NotExecuted {
		t.Errorf("nobody answers: %v", err)
	}
	far := openDrill(t, faithful)
	defer far.Close()
	other := serveOn(t, server.Config{Driver: undelegated{far}, Log: memory.New()})
	defer other.stop()
	c := client(t, config(other.addr))
	defer c.Close()
	if err := c.TakesHandoff(within(t)); fault.CodeOf(err) != fault.Unimplemented || fault.From(err).Outcome != fault.NotExecuted {
		t.Errorf("a driver that does not: %v", err)
	}
}
