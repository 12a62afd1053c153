package aggregates_test

import (
	"flag"
	"os"
	"testing"
)

// The properties run on fixed seeds, so that a run is the same everywhere;
// -rapid.seed and -rapid.checks on the command line explore further.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.seed": "20260301", "rapid.nofailfile": "true", "rapid.checks": "60"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}
