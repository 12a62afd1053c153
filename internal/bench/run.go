package bench

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"berth/events/fault"
)

// The parts that can be measured.
const (
	PartLog      = "log"      // commits beside publishes
	PartCommands = "commands" // inspect and spawn
	PartGoals    = "goals"    // acceptances at once
	PartAttach   = "attach"   // keys and output of a terminal beside a bare one
	PartReplay   = "replay"   // rebuilding every projection
	PartMicroVM  = "microvm"  // boots, golden states and pauses of microVMs, where this host can run them
	PartFleet    = "fleet"    // memory, start after a kill, idling
	PartHosted   = "hosted"   // calls over HTTPS, and many uncertain operations
	PartExport   = "export"   // a file over HTTPS
)

// Parts are all of them, in the order in which they run.
var Parts = []string{PartLog, PartCommands, PartGoals, PartAttach, PartReplay, PartFleet, PartHosted, PartExport, PartMicroVM}

// Defaults and limits of Options.
const (
	DefaultEvents  = 200_000
	DefaultLive    = 2_000
	DefaultSamples = 400
	DefaultRounds  = 3
	DefaultIdle    = 10 * time.Second
	MaxEvents      = 20_000_000
	MaxLive        = 10_000 // of the drill provider
	MaxSamples     = 100_000
	MaxRounds      = 99
	MaxIdle        = time.Hour

	DefaultUncertain = 1_000
	MaxUncertain     = 10_000
	DefaultExport    = 512 << 20
	MaxExport        = 64 << 30
	// FullEvents and FullLive are the sizes that the bars are set for.
	FullEvents = 1_000_000
	FullLive   = 10_000
	FullExport = 4 << 30
)

// Options says how much is measured. Zero values take the defaults.
type Options struct {
	Dir     string        // where to work, on the disk that is to be measured; empty: a temporary directory
	Events  int           // in the log, of replay and fleet
	Live    int           // environments of the drill provider, of fleet
	Samples int           // single operations of each side, for a median
	Rounds  int           // repetitions of what takes long
	Idle    time.Duration // how long an idle manager is watched
	// Uncertain is how many operations are left without an answer, of hosted;
	// Export how many bytes the file of export has.
	Uncertain int
	Export    int64
	// Progress is told what is being done; nil tells nobody.
	Progress func(what string)
}

func (o Options) withDefaults() (Options, error) {
	for _, f := range []struct {
		name      string
		value     *int
		def, most int
	}{
		{"events", &o.Events, DefaultEvents, MaxEvents}, {"live", &o.Live, DefaultLive, MaxLive},
		{"samples", &o.Samples, DefaultSamples, MaxSamples}, {"rounds", &o.Rounds, DefaultRounds, MaxRounds},
		{"uncertain", &o.Uncertain, DefaultUncertain, MaxUncertain},
	} {
		if *f.value == 0 {
			*f.value = f.def
		}
		if *f.value < 1 || *f.value > f.most {
			return o, fault.New(fault.BadRequest, "%s: %d is not between 1 and %d", f.name, *f.value, f.most)
		}
	}
	if o.Idle == 0 {
		o.Idle = DefaultIdle
	}
	if o.Idle < 0 || o.Idle > MaxIdle {
		return o, fault.New(fault.BadRequest, "idle: %s is not between 0 and %s", o.Idle, MaxIdle)
	}
	if o.Export == 0 {
		o.Export = DefaultExport
	}
	if o.Export < 1 || o.Export > MaxExport {
		return o, fault.New(fault.BadRequest, "export: %d bytes are not between 1 and %d", o.Export, int64(MaxExport))
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o, nil
}

// Run measures the named parts, or all if none is named. What it writes is
// removed again. Rows that were measured before an error are returned with it.
func Run(ctx context.Context, parts []string, o Options) (r Report, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return r, err
	}
	for _, p := range parts {
		if !slices.Contains(Parts, p) {
			return r, fault.New(fault.BadRequest, "there is nothing named %q to measure: %s", p, strings.Join(Parts, ", "))
		}
	}
	dir, err := os.MkdirTemp(o.Dir, "berth-bench-")
	if err != nil {
		return r, fault.New(fault.BadRequest, "no directory to work in: %s", err)
	}
	defer os.RemoveAll(dir)
	for _, p := range Parts {
		if len(parts) > 0 && !slices.Contains(parts, p) {
			continue
		}
		if p == PartMicroVM && len(parts) == 0 && microVMs() != nil {
			o.Progress("microvm: left out, this host can't run any")
			continue
		}
		o.Dir = filepath.Join(dir, p)
		if err := os.Mkdir(o.Dir, 0o700); err != nil {
			return r, err
		}
		rows, err := map[string]func(context.Context, Options) ([]Row, error){
			PartLog: measureLog, PartCommands: measureCommands, PartGoals: measureGoals, PartAttach: measureAttach, PartReplay: measureReplay, PartFleet: measureFleet,
			PartHosted: measureHosted, PartExport: measureExport, PartMicroVM: measureMicroVM,
		}[p](ctx, o)
		r.Rows = append(r.Rows, rows...)
		if err != nil {
			return r, err
		}
		if err := os.RemoveAll(o.Dir); err != nil {
			return r, err
		}
	}
	return r, nil
}
