package berth

import (
	"slices"
	"testing"
	"time"

	"berth/events/fault"
)

// Adapters are registered by name only, and a Docker Engine that has
// environments of this directory stays reachable without the flag.
func TestAdaptersAreChosenByName(t *testing.T) {
	d := &DataDir{Path: t.TempDir()}
	open := func(o Options) ([]string, error) {
		t.Helper()
		bundles, closers, err := openAdapters(d, o, time.Now)
		var names []string
		for _, b := range bundles {
			names = append(names, b.Driver.Name())
		}
		for _, end := range closers {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
		return names, err
	}
	if names, err := open(Options{}); err != nil || names != nil {
		t.Errorf("nothing was named: %v %v", names, err)
	}
	for _, o := range []Options{{Docker: "docker.sock"}, {Fly: "app=trial"}, {Fly: "app=trial,token=x"}} {
		if _, err := open(o); fault.ExitOf(err) != fault.ExitBadConfig {
			t.Errorf("%+v: %v", o, err)
		}
	}
	o := Options{Docker: "/nowhere/docker.sock", Fly: "app=trial,token-file=/nowhere/token"}
	if names, err := open(o); err != nil || !slices.Equal(names, []string{"docker", "fly"}) {
		t.Errorf("%v %v", names, err)
	}
	if names, err := open(Options{}); err != nil || !slices.Equal(names, []string{"docker"}) {
		t.Errorf("afterwards: %v %v", names, err)
	}
}
