package house

import (
	"slices"
	"strings"
	"testing"
)

// Imports between rooms point down only (blueprint section 3, decision 20).
// Tests and test support may look at any room below the program.
func TestImportsPointDown(t *testing.T) {
	for _, f := range theTree(t).gos {
		row, known := arrows[roomOf(f.pkg)]
		if !known {
			t.Errorf("%s: room %q has no row in rules.go; say what it may import and why", f.name, roomOf(f.pkg))
			continue
		}
		if f.test {
			continue
		}
		for _, im := range f.imports {
			if !ours(im) {
				continue
			}
			for _, why := range broken(f.pkg, im, row) {
				t.Errorf("%s imports %s: %s", f.name, im, why)
			}
		}
	}
}

// broken lists the reasons why pkg must not import im.
func broken(pkg, im string, row arrow) []string {
	from, to := roomOf(pkg), roomOf(im)
	if _, ok := top[pkg]; ok {
		row = arrows["cmd"]
	}
	var whys []string
	allowed := slices.ContainsFunc(wider, func(w struct{ pkg, im, why string }) bool { return w.pkg == pkg && w.im == im })
	if from != to && !slices.Contains(row.may, to) && !allowed {
		whys = append(whys, row.why)
	}
	if what, ok := top[im]; ok && from != "." && from != "cmd" && top[pkg] == "" {
		whys = append(whys, "it "+what+", which only the composition root does")
	}
	for _, n := range narrow {
		if !strings.HasPrefix(im+"/", strings.TrimSuffix(n.path, "/")+"/") || im+"/" == n.path {
			continue
		}
		fits := func(by string) bool { return by == from || under(pkg, by) && strings.Contains(by, "/") }
		if top[pkg] == "" && !slices.ContainsFunc(n.by, fits) {
			whys = append(whys, n.why)
		}
	}
	return whys
}

// The rules themselves: a table that allows everything would pass every tree.
func TestArrowsRefuseWhatTheyShould(t *testing.T) {
	for _, c := range []struct {
		pkg, im string
		ok      bool
	}{
		{"berth/aggregates/slot", "berth/events", true},
		{"berth/events", "berth/aggregates/slot", false},
		{"berth/aggregates/slot", "berth/sagas", false},
		{"berth/sagas", "berth/providers", true},
		{"berth/sagas", "berth/providers/drill", false},
		{"berth/providers/drill", "berth/providers", true},
		{"berth/providers", "berth/aggregates/environment", false},
		{"berth/projections", "berth/sagas", false},
		{"berth/commands", "berth/sagas", true},
		{"berth/commands", "berth/internal/embedded", false},
		{"berth/internal/bench", "berth/internal/embedded", true},
		{"berth/internal/bench", "berth/providers/drill", true},
		{"berth/internal/ids", "berth/commands", false},
		{"berth", "berth/internal/embedded", true},
		{"berth", "berth/providers/process", true},
		{"berth", "berth/internal/house", false},
		{"berth/sagas", "berth/events/eventlog/stream", false},
		{"berth/events/eventlog/stream", "berth/events/eventlog", true},
		{"berth/events/eventlog/barrier", "berth/events/eventlog/stream", true},
		{"berth/cmd/berth", "berth", true},
		{"berth/commands", "berth", false},
		{"berth/events/eventlog/checkpoint", "berth/internal/durable", true},
		{"berth/events/eventlog/checkpoint", "berth/internal/ids", false},
		{"berth/events/eventlog", "berth/internal/durable", false},
	} {
		if why := broken(c.pkg, c.im, arrows[roomOf(c.pkg)]); (len(why) == 0) != c.ok {
			t.Errorf("%s importing %s: allowed=%v, want %v (%v)", c.pkg, c.im, len(why) == 0, c.ok, why)
		}
	}
	for room, row := range arrows {
		if row.why == "" {
			t.Errorf("the row of %q has no reason", room)
		}
	}
}

// The server is started in one place, and everybody else has a connection:
// an embedded and an external server are then the same thing.
func TestOnlyTheRootKnowsTheServer(t *testing.T) {
	const server = "github.com/nats-io/nats-server/v2"
	for _, f := range theTree(t).gos {
		if f.test || slices.Contains(serverImporters, f.pkg) {
			continue
		}
		for _, im := range f.imports {
			if under(im, server) {
				t.Errorf("%s imports %s: only %v may; take a *nats.Conn", f.name, im, serverImporters)
			}
		}
	}
	for _, p := range theBuild(t) {
		room := roomOf(p.ImportPath)
		if !ours(p.ImportPath) || p.ForTest != "" || room == "." || room == "cmd" || room == "testscripts" ||
			top[p.ImportPath] != "" || strings.HasSuffix(p.ImportPath, ".test") || supportsTests(p.ImportPath) {
			continue
		}
		if slices.ContainsFunc(p.Deps, func(d string) bool { return under(d, server) }) {
			t.Errorf("%s depends on nats-server through something it imports", p.ImportPath)
		}
	}
}
