//go:build linux

package qemu

import (
	"testing"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// R51: a machine reaches an https source with network user, and no socket of
// this host.
func TestSourcesThatAMachineReaches(t *testing.T) {
	d, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	user := "user"
	https := events.BearerSource{Kind: events.BearerHTTPS, URL: "https://authority.example"}
	if err := providers.ExposeBearer(d, events.Plan{Network: &user}, https); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"no network": providers.ExposeBearer(d, events.Plan{}, https),
		"a socket":   providers.ExposeBearer(d, events.Plan{Network: &user}, events.BearerSource{Kind: events.BearerSocket, Path: "/run/x"}),
	} {
		if fault.CodeOf(err) != fault.FailedPrecondition {
			t.Errorf("%s: %v", name, err)
		}
	}
}
