package hosted_test

import (
	"context"
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/server"
)

// choosy is a driver with defaults of its own.
type choosy struct {
	providers.Driver
	is providers.Defaults
}

func (c choosy) Defaults(context.Context) (providers.Defaults, error) { return c.is, nil }

// What a spawn gets that does not say is for the driver behind the endpoint to
// tell; one that was heard once is believed while nobody answers, and asked
// again after a while.
func TestDefaultsAreThoseOfTheDriverThere(t *testing.T) {
	t.Parallel()
	e, plain := overDrill(t, faithful)
	if d, err := plain.Defaults(within(t)); err != nil || d != (providers.Defaults{}) {
		t.Errorf("a driver without defaults has %+v: %v", d, err)
	}
	e.stop()
	plain.Close()
	far := openDrill(t, faithful)
	defer far.Close()
	want := providers.Defaults{Image: &events.Image{Kind: "template", Reference: "minimal"}, CPUs: "1", Memory: "256MiB"}
	other := serveOn(t, server.Config{Driver: choosy{far, want}, Log: memory.New()})
	cfg, now := config(other.addr), time.Now()
	cfg.Clock = func() time.Time { return now }
	heard, unheard := client(t, cfg), client(t, cfg)
	defer heard.Close()
	defer unheard.Close()
	for range 2 {
		d, err := heard.Defaults(within(t))
		if err != nil || *d.Image != *want.Image || d.CPUs != want.CPUs || d.Memory != want.Memory {
			t.Fatalf("%+v: %v", d, err)
		}
		now = now.Add(time.Hour)
	}
	other.stop()
	if d, err := heard.Defaults(within(t)); err != nil || d.Memory != want.Memory {
		t.Errorf("it was heard once: %+v %v", d, err)
	}
	if _, err := unheard.Defaults(within(t)); !fault.From(err).Retryable || fault.From(err).Outcome != fault.NotExecuted {
		t.Errorf("it was never heard: %v", err)
	}
}
