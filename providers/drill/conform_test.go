package drill_test

import (
	"testing"
	"time"

	"berth/events"
	"berth/providers"
	"berth/providers/drill"
	"berth/providers/providertest"
)

func plan() events.Plan {
	return events.Plan{Provider: "drill", Image: events.Image{Kind: "template", Reference: "any"},
		Resources: events.Resources{CPUs: events.MustQuantity("0.25"), MemoryMiB: 128}, Lifetime: time.Hour, Command: []string{"sleep", "inf"}}
}

func options() providertest.Options {
	return providertest.Options{
		Open: func(t providertest.T) providers.Driver {
			d, err := drill.Open(drill.Config{Dir: t.TempDir()})
			if err != nil {
				t.Fatalf("%v", err)
			}
			return d
		},
		Plan:   plan(),
		Expiry: 50 * time.Millisecond,
	}
}

// TestConformance holds drill, without a script, to the driver contract.
func TestConformance(t *testing.T) { providertest.Run(t, options()) }
