// Package providertest is the conformance suite of the driver contract: every
// driver is held to the same checks, each of which names the rules that it
// shows. A capability that a driver's own probe claims is exercised; one that
// it denies must be refused (R89).
//
// Run runs it under `go test`. Conform runs it without, so that a program can
// offer it to people who write providers.
package providertest

import (
	"cmp"
	"runtime"
	"time"

	"berth/events"
	"berth/providers"
)

// T is what a check needs of a test; *testing.T has it. Fatalf and Skipf end
// the calling goroutine.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Skipf(format string, args ...any)
	TempDir() string
}

// Options says which driver is tried, and what can be asked of it.
type Options struct {
	// Open makes a driver for one check; the suite closes it.
	Open func(t T) providers.Driver
	// Plan is one that the driver can run; its command must go on until it is
	// stopped.
	Plan events.Plan
	// Patience bounds every call and every wait; zero is 30 seconds.
	Patience time.Duration
	// Expiry is a lifetime short enough to wait for; zero skips the check that
	// environments end by themselves.
	Expiry time.Duration
	// NoFence, NoHostPath, NoProviderFile and NoEpochs say why a part of the
	// contract is absent; it must then be refused. Empty: it is there.
	NoFence, NoHostPath, NoProviderFile, NoEpochs string
	// Now is the clock that the driver's deadlines are on; nil is the system's.
	Now func() time.Time
}

func (o Options) patience() time.Duration { return cmp.Or(o.Patience, 30*time.Second) }

// Check is one row of the suite.
type Check struct {
	Name  string
	Rules string // of the contract, or numbers of scenarios
	run   func(*bench)
}

// Checks is the suite, in the order of an environment's life.
var Checks = []Check{
	{"host-facts", "R77 R78 R81 R82", hostFacts},
	{"image-unchanged", "R16 R17", imageUnchanged},
	{"capability-set", "R1 R2 R3 R5 R12 R23", capabilitySet},
	{"whole-life", "R61 R64 R67 R92", wholeLife},
	{"same-id-same-answer", "R27 R86, scenario 3", sameID},
	{"same-id-other-arguments", "R27, scenario 3", otherArguments},
	{"one-environment-per-id", "R61 R92", oneEnvironment},
	{"many-at-once", "R61, scenario 57", manyAtOnce},
	{"unknown-is-not-found", "R31 R92", unknownEnvironment},
	{"foreign-reference", "R87 R92", foreignReference},
	{"reconcile-landed", "R27 R32 R86", reconcileLanded},
	{"reconcile-unseen", "R86 R92 H13", reconcileUnseen},
	{"exclude-is-a-fence", "H14, scenario 6", excludeFence},
	{"exclude-after-landing", "H14", excludeLanded},
	{"lost-answer", "R32 R86, scenarios 1 5", lostAnswer},
	{"bounded-by-context", "R85, scenario 81", bounded},
	{"older-epoch-refused", "decision 1, scenario 52", olderEpoch},
	{"extend-bounded", "R26 R28 R29 R30", extendBounded},
	{"extend-never-shortens", "R30, scenario 31", extendMonotone},
	{"ends-by-itself", "scenarios 30 33", endsByItself},
	{"pause-resume", "R9 R89", pauseResume},
	{"checkpoint", "R10 R89", checkpointed},
	{"restore", "R4 R63 R64 R89 H13", restored},
	{"export-provider-file", "R33 R35 R36 R37 R41", exportProviderFile},
	{"export-host-path", "R33 R34 R37 R39", exportHostPath},
	{"export-too-large", "R33 R37, scenario 63", exportTooLarge},
	{"screen", "R11", screenShown},
	{"unsupported-verb", "R89", unsupportedVerb},
	{"destroyed-stays-destroyed", "R61 R67, scenario 10", destroyed},
	{"list-is-consistent", "R61 R92", listed},
	{"logs-by-offset", "R36", logsByOffset},
	{"material-stays-inside", "R55 R71 R72, scenario 65", materialInside},
}

type tester[S any] interface {
	T
	Run(name string, f func(S)) bool
}

// Run runs every check as a subtest: providertest.Run(t, options).
func Run[S tester[S]](t S, o Options) {
	for _, c := range Checks {
		t.Run(c.Name, func(s S) { c.Run(s, o) })
	}
}

// Run runs one check against a driver of its own, and destroys what it made.
func (c Check) Run(t T, o Options) {
	t.Helper()
	b := newBench(t, o)
	defer b.close()
	c.run(b)
}

// Result is what became of one check outside of `go test`. Log says what was
// expected and what came instead, Sent the last calls before a failure with
// their answers. NotClaimed is set where the provider says that it can't, and
// refuses as it must; Skipped where the check was not asked for.
type Result struct {
	Name       string   `json:"name"`
	Rules      string   `json:"rules"`
	OK         bool     `json:"ok"`
	NotClaimed string   `json:"notClaimed,omitempty"`
	Skipped    string   `json:"skipped,omitempty"`
	Log        []string `json:"log,omitempty"`
	Sent       []string `json:"sent,omitempty"`
}

// Conform runs the suite without a test; dir makes an empty directory for a
// check. A driver that panics fails the check.
func Conform(o Options, dir func() string) []Result {
	var rs []Result
	for _, c := range Checks {
		t := &recorder{dir: dir, result: Result{Name: c.Name, Rules: c.Rules, OK: true}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v", p)
				}
			}()
			c.Run(t, o)
		}()
		<-done
		rs = append(rs, t.end())
	}
	return rs
}

// goexit ends a check as testing.T does.
func goexit() { runtime.Goexit() }
