//go:build linux

package kill

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"berth/commands"
	"berth/events"
	"berth/providers/drill"
)

// sampled is how many places `go test` tries, and seed chooses them: the same
// ones until BERTH_KILL_SEED says otherwise.
const (
	sampled     = 6
	defaultSeed = 1
)

func proving() bool { return os.Getenv("BERTH_PROVE") == "1" }

func chosen() *rand.Rand {
	seed, err := strconv.ParseUint(os.Getenv("BERTH_KILL_SEED"), 10, 64)
	if err != nil {
		seed = defaultSeed
	}
	return rand.New(rand.NewPCG(seed, seed))
}

// drillWorld is a world whose provider misbehaves by rules.
func drillWorld(t *testing.T, rules []drill.Rule) *world {
	t.Helper()
	w := newWorld(t)
	raw, err := json.Marshal(drill.Script{Rules: append([]drill.Rule{}, rules...)})
	w.must(err)
	script := filepath.Join(filepath.Dir(w.dir), "script.json")
	w.must(os.WriteFile(script, raw, 0o600))
	w.flags = []string{"--drill", script}
	return w
}

// extension is asked for; the drill provider adds ten minutes at a time.
const extension = 25 * time.Minute

// done is how often each verb must have landed at the end of a life.
var done = map[events.Verb]int{
	events.VerbReserve: 1, events.VerbProvision: 1, events.VerbStart: 1, events.VerbExtend: 3, events.VerbPause: 1, events.VerbResume: 1,
	events.VerbCheckpoint: 1, events.VerbRestore: 1, events.VerbExport: 1, events.VerbStop: 1, events.VerbDestroy: 1,
}

// drillLife is a whole life, a clean stop, and one more start that must find
// everything as it was.
func drillLife(w *world) {
	w.Helper()
	if w.cmd == nil {
		w.up()
	}
	l := w.live(commands.SpawnInput{Provider: "drill", TTL: "1h", Ready: "5m", Command: []string{"true"}}, extension)
	w.down()
	w.missed = w.crash
	w.crash, w.list = "", ""
	w.up()
	r := w.settled(l, done)
	w.drilled(l, r)
}

func killedAt(t *testing.T, place at, rules []drill.Rule) {
	t.Helper()
	w := drillWorld(t, rules)
	w.crash = place.String()
	drillLife(w)
	switch {
	case w.missed == "":
	case place.nth == 1 && slices.Contains(generated(), place):
		t.Errorf("the manager never passed %s", place)
	default:
		// How often progress is recorded depends on who is quicker.
		t.Logf("the manager did not pass %s this time", place)
	}
}

// lost are the scripts that lose an answer, so that the questions about it are
// points too.
var lost = map[string][]drill.Rule{
	"lost reserve": {{Verb: "reserve", Nth: 1, Fault: drill.AcceptThenDrop}},
	"lost start":   {{Verb: "start", Nth: 1, Fault: drill.AcceptThenDrop}},
	"lost restore": {{Verb: "restore", Nth: 1, Fault: drill.AcceptThenDrop}},
	"lost export":  {{Verb: "export", Nth: 1, Fault: drill.ErrorAfterAccept}},
	"lost destroy": {{Verb: "destroy", Nth: 1, Fault: drill.AcceptThenDrop}},
}

// The manager is killed before and after every append and every call of a
// whole life with the drill provider (law 1; scenarios 1, 3, 8, 41, 46, 48).
// `go test` tries a sample of what the table of steps generates.
func TestKilledAtEveryPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("starts managers and servers; -short leaves it out")
	}
	all := generated()
	if !proving() {
		chosen().Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		t.Logf("%d kill points of %d generated; BERTH_PROVE=1 tries all", sampled, len(all))
		all = all[:sampled]
		for _, place := range all {
			t.Run(place.String(), func(t *testing.T) { t.Parallel(); killedAt(t, place, nil) })
		}
		return
	}
	passed := points(t, nil)
	for _, place := range all {
		if !slices.Contains(passed, place) {
			t.Errorf("no life passes %s, which the table of steps has", place)
		}
	}
	all = merge(all, passed)
	t.Logf("%d kill points without a fault", len(all))
	for _, place := range all {
		t.Run(place.String(), func(t *testing.T) { t.Parallel(); killedAt(t, place, nil) })
	}
}

// The same while an answer is lost: also before and after every question.
func TestKilledWhileUncertain(t *testing.T) {
	if testing.Short() {
		t.Skip("starts managers and servers; -short leaves it out")
	}
	if !proving() {
		for _, place := range []at{{"ask:reconcile:after", 1}} {
			t.Run(place.String(), func(t *testing.T) { t.Parallel(); killedAt(t, place, lost["lost reserve"]) })
		}
		return
	}
	for script, rules := range lost {
		t.Run(script, func(t *testing.T) {
			all := points(t, rules)
			t.Logf("%s: %d kill points", script, len(all))
			for _, place := range all {
				t.Run(place.String(), func(t *testing.T) { t.Parallel(); killedAt(t, place, rules) })
			}
		})
	}
}

// The next manager is killed too, on its way through what the first left.
func TestKilledTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("starts managers and servers; -short leaves it out")
	}
	rng, tries := chosen(), 1
	if proving() {
		tries = 60
	}
	t.Logf("%d kill points in pairs", tries)
	all := generated()
	for range tries {
		first, second := all[rng.IntN(len(all))], at{"*", 1 + rng.IntN(8)}
		t.Run(fmt.Sprintf("%s then %s", first, second), func(t *testing.T) {
			t.Parallel()
			w := drillWorld(t, nil)
			w.crash, w.after = first.String(), second.String()
			drillLife(w)
			if w.kills == 0 {
				t.Errorf("the manager never passed %s", first)
			}
		})
	}
}

// points listens to one life in which nothing is killed.
func points(t *testing.T, rules []drill.Rule) []at {
	t.Helper()
	var out []at
	t.Run("listen", func(t *testing.T) {
		w := drillWorld(t, rules)
		list := filepath.Join(filepath.Dir(w.dir), "points")
		w.list = list
		drillLife(w)
		out = listened(t, list)
	})
	return out
}
