//go:build linux

package qemu

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/providers"
	"berth/providers/providertest"
)

// The whole suite boots a machine for most of its checks, so it is part of
// the long proof only.
func TestConformance(t *testing.T) {
	if os.Getenv("BERTH_PROVE") == "" {
		t.Skip("NO CONFORMANCE RUN: it boots many machines; BERTH_PROVE=1 runs it")
	}
	needMachines(t)
	providertest.Run(t, providertest.Options{
		Open: func(t providertest.T) providers.Driver {
			dir := t.TempDir()
			if err := os.Symlink(boots, filepath.Join(dir, bootDir)); err != nil {
				t.Fatalf("opening: %v", err)
			}
			d, err := New(Config{Dir: dir})
			if err != nil {
				t.Fatalf("opening: %v", err)
			}
			return d
		},
		Plan:     plan("while :; do echo tick; sleep 0.1; done"),
		Patience: patience, Expiry: 45 * time.Second,
	})
}
