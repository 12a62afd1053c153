package explore

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"berth/aggregates"
	"berth/sagas"
)

var (
	update = flag.Bool("update", false, "write docs/states.md from the tables and what was walked")
	long   = os.Getenv("BERTH_PROVE") != ""
)

// sample is walked by every `go test`: together it takes every edge of every
// table and every step.
var sample = []Budget{
	{Faults: 1}, {Crashes: 1}, {Commands: 1}, {Changes: 1}, {Commands: 1, Poor: true},
	{Commands: 2, Reserved: true, Prompt: true, Only: "provision, start, cancel"},
	{Faults: 3, Prompt: true}, {Commands: 2, Prompt: true, Only: "pause, resume"}, {Commands: 2, Prompt: true, Only: "checkpoint, restore"}, {Changes: 2, Prompt: true}, {Lives: 1, Prompt: true},
	{Commands: 1, Changes: 1, Prompt: true, Only: "pause, checkpoint"}, {Faults: 1, Commands: 1, Lives: 1, Prompt: true, Brief: true, Only: "write-off"}, {Faults: 1, Commands: 2, Prompt: true, Only: "cancel, checkpoint, write-off"},
	{Crashes: 1, Commands: 1, Intent: true, Prompt: true, Only: "retire by intent, let go, write-off"}, {Faults: 1, Commands: 1, Intent: true, Prompt: true, Only: "write-off"},
	{Commands: 2, Prompt: true, Only: "turn, retire, cancel"}, {Crashes: 1, Commands: 1, Prompt: true, Only: "turn"},
}

// whole is walked beside the sample with BERTH_PROVE=1.
var whole = []Budget{
	{Faults: 3}, {Commands: 3}, {Changes: 2}, {Crashes: 2}, {Faults: 2, Crashes: 1}, {Faults: 2, Commands: 1}, {Faults: 1, Commands: 2},
	{Crashes: 1, Commands: 1}, {Crashes: 1, Changes: 1}, {Faults: 1, Changes: 1}, {Commands: 2, Changes: 1},
	{Faults: 1, Commands: 1, Changes: 1}, {Faults: 1, Crashes: 1, Commands: 1, Prompt: true}, {Commands: 1, Lives: 1}, {Crashes: 1, Lives: 1},
	{Faults: 1, Lives: 1}, {Faults: 1, Commands: 2, Lives: 1, Prompt: true, Brief: true}, {Faults: 1, Commands: 2, Poor: true},
	{Faults: 1, Crashes: 1, Commands: 1}, {Faults: 1, Crashes: 2}, {Faults: 2, Changes: 1},
	{Faults: 1, Crashes: 1, Commands: 2, Prompt: true, Only: "checkpoint, restore"}, {Commands: 2, Changes: 1, Prompt: true, Only: "checkpoint, restore"},
	{Crashes: 2, Commands: 1, Intent: true, Prompt: true}, {Faults: 1, Crashes: 1, Intent: true}, {Faults: 1, Crashes: 1, Commands: 1, Intent: true, Prompt: true, Only: "write-off"},
	{Faults: 1, Commands: 1, Reserved: true}, {Commands: 2, Reserved: true}, {Crashes: 1, Commands: 1, Reserved: true, Prompt: true},
}

const limit = 3_000_000 // most states of one walk

// A walk allocates much and keeps little: collecting less often is faster.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// walked adds up several walks.
type walked struct {
	states, transitions int
	checks              map[string]int
	edges               map[Edge]bool
	steps               map[string]bool
}

func (a *walked) add(r Report) {
	a.states, a.transitions = a.states+r.States, a.transitions+r.Transitions
	for l, n := range r.Checks {
		a.checks[l] += n
	}
	maps.Copy(a.edges, r.Edges)
	maps.Copy(a.steps, r.Steps)
}

// sampled is the sample, walked once for all tests.
var sampled = walked{checks: map[string]int{}, edges: map[Edge]bool{}, steps: map[string]bool{}}

func walkSample(t *testing.T) {
	t.Helper()
	if sampled.states > 0 {
		return
	}
	budgets := sample
	if testing.Short() {
		budgets = sample[:4] // a walk is one goroutine: the race detector learns nothing more
	}
	for _, b := range budgets {
		sampled.add(must(t, b))
	}
}

func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("the short walks do not take every edge")
	}
}

func must(t *testing.T, b Budget) Report {
	t.Helper()
	r, err := Walk(Product(), b, limit)
	t.Log(r)
	switch {
	case err != nil:
		t.Errorf("%v: %v", b, err)
	case r.Ends == 0:
		t.Errorf("%v: no life came to its end", b)
	case !r.Complete:
		t.Errorf("%v: the walk is larger than its limit: raise the limit or lower the budget", b)
	}
	return r
}

// Every state that the core reaches keeps the laws, whatever is lost, refused,
// killed, stalled or asked, and from each of them everything can still end.
// With BERTH_PROVE=1 the budgets are the large ones.
func TestEveryStateKeepsTheLaws(t *testing.T) {
	walkSample(t)
	all := sampled
	all.checks = maps.Clone(sampled.checks)
	if long {
		for _, b := range whole {
			all.add(must(t, b))
		}
	}
	t.Logf("explored: %d states, %d transitions", all.states, all.transitions)
	for _, l := range Laws {
		if l.Number == "livelock" {
			all.checks[l.Number] = all.states
		}
		if l.Number == "independence" {
			continue
		}
		t.Logf("%-12s asserted %9d times: %s", l.Number, all.checks[l.Number], l.Text)
		if all.checks[l.Number] == 0 && !testing.Short() {
			t.Errorf("%s is never asserted", l.Number)
		}
	}
}

// Every declared edge is taken, no other is, and every step of the kernel
// speaks.
func TestEveryEdgeIsTaken(t *testing.T) {
	skipShort(t)
	walkSample(t)
	for _, d := range Differences(sampled.edges) {
		t.Error(d)
	}
	for _, s := range sagas.Steps {
		if !sampled.steps[s.Name] {
			t.Errorf("the step %s of %s never speaks", s.Name, s.Saga)
		}
	}
}

// A page that says what was walked must notice what was not.
func TestDifferencesAreNoticed(t *testing.T) {
	skipShort(t)
	walkSample(t)
	seen := maps.Clone(sampled.edges)
	gone := Edge{"slot", "provisioning", "activate", "active"}
	wild := Edge{"slot", "retired", "activate", "active"}
	delete(seen, gone)
	seen[wild] = true
	want := []string{"declared and never reached: " + gone.String(), "reached and not declared: " + wild.String()}
	if got := Differences(seen); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Two names change nothing of each other, and neither is ever in a state that
// it does not reach alone: what lets one name be walked for both.
func TestNamesAreIndependent(t *testing.T) {
	most := 1_500
	if long {
		most = 300_000
	}
	for _, b := range []Budget{{}, {Crashes: 1}} {
		r, err := Pair(Product(), b, most)
		if t.Logf("two names, to at most %d states: %s", most, r); err != nil {
			t.Errorf("%v: %v", b, err)
		}
		if r.Checks["independence"] == 0 {
			t.Errorf("%v: nothing was compared", b)
		}
	}
}

// docs/states.md is what is declared and what was walked.
func TestDocs(t *testing.T) {
	skipShort(t)
	walkSample(t)
	page := Page(sampled.edges)
	for _, s := range aggregates.Statuses {
		if !strings.Contains(page, string(s)) {
			t.Errorf("the page does not name the status %s", s)
		}
	}
	path := filepath.Join("..", "..", "docs", "states.md")
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page {
		t.Errorf("%s is not what was walked: run go test ./sagas/explore -run TestDocs -update", path)
	}
}
