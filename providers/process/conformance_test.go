//go:build linux

package process

import (
	"path/filepath"
	"testing"
	"time"

	"berth/events"
	"berth/providers"
	"berth/providers/providertest"
)

// The suite shows R1-R92 on the real provider. On a machine too slow for
// the expiry, it takes a longer one.
func TestConformance(t *testing.T) {
	t.Parallel()
	plan := newRig(t).plan("while :; do echo tick; sleep 0.1; done")
	providertest.Run(t, providertest.Options{
		Open: func(t providertest.T) providers.Driver {
			d, err := New(Config{Dir: filepath.Join(t.TempDir(), "seats")})
			if err != nil {
				t.Fatalf("opening: %v", err)
			}
			return d
		},
		Plan:     events.Plan{Provider: Name, Image: plan.Image, Command: plan.Command, Options: plan.Options},
		Patience: patience, Expiry: time.Second,
	})
}
