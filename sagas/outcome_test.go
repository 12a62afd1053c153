package sagas

import (
	"testing"

	"berth/aggregates"
	"berth/events"
	"berth/providers"
)

// R65: host, architecture and engine of the record come from host facts.
func TestTheRecordsEngineIsTheHosts(t *testing.T) {
	s := aggregates.Seat{}
	s.Environment.Plan.Provider = "far"
	for want, host := range map[string]events.HostFacts{
		"qemu": {Host: "h", Engines: []events.Engine{{Name: "qemu", Version: "7"}}},
		"far":  {Host: "h"},
	} {
		e := Probed(s, events.ImageDescription{}, providers.Preflight{}, host)[0].(events.EnvironmentProbed)
		if e.Engine != want || e.Host != "h" {
			t.Errorf("engine %q on host %q, want %q", e.Engine, e.Host, want)
		}
	}
}
