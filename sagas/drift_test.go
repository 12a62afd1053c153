package sagas

import (
	"testing"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/events"
)

// A network that is not the recorded one is news once, and so is its end; the
// record keeps the one that was chosen (R25).
func TestNetworkDriftIsNews(t *testing.T) {
	s := aggregates.Seat{Environment: environment.State{ID: "0198c5a0-0000-7000-8000-000000000001", Record: environment.Running, Network: "none"}}
	for _, step := range []struct {
		observed, drift string
		news            bool
	}{{"none", "", false}, {"host", "host", true}, {"host", "host", false}, {"", "host", false}, {"none", "", true}} {
		es := Observed(s, events.Facts{State: events.StateRunning, Network: step.observed})
		if (len(es) > 0) != step.news {
			t.Errorf("observed %q: events %v", step.observed, es)
		}
		for _, e := range es {
			s.Environment = s.Environment.Apply(events.Meta{}, e)
		}
		if s.Environment.Drift != step.drift || s.Environment.Network != "none" {
			t.Errorf("observed %q: %q, drift %q", step.observed, s.Environment.Network, s.Environment.Drift)
		}
	}
}
