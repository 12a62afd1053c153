package docker

import (
	"os"
	"path/filepath"
	"testing"

	"berth/events"
	"berth/events/fault"
)

func readFile(dir, name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	return string(raw), err
}

// TestCPUsAreExact: a quarter is a quarter, and what the engine can't count is
// refused, not rounded.
func TestCPUsAreExact(t *testing.T) {
	for text, want := range map[string]int64{"0.25": 250_000_000, "2": 2_000_000_000, "0.000000001": 1, "10": 10_000_000_000} {
		if n, err := nanoCPUs(events.MustQuantity(text)); err != nil || n != want {
			t.Errorf("%s: %d %v, want %d", text, n, err, want)
		}
	}
	if q, err := events.ParseQuantity("0.0000000001"); err == nil {
		if n, err := nanoCPUs(q); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("a tenth of a billionth: %d %v", n, err)
		}
	}
}

// TestImagesByDigestOnly (R13, R20): a tag is another image tomorrow.
func TestImagesByDigestOnly(t *testing.T) {
	for ref, ok := range map[string]bool{
		"example/seat@" + imageDigest: true, imageDigest: true, "registry.example:5000/a/b@" + imageDigest: true,
		"example/seat:latest": false, "seat": false, "": false, "seat@sha256:abc": false, "../x@" + imageDigest: false,
	} {
		if err := checkReference(events.Image{Kind: "oci", Reference: ref}); (err == nil) != ok {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if err := checkReference(events.Image{Kind: "template", Reference: imageDigest}); err == nil {
		t.Error("a template")
	}
}

// TestPlansAreRefusedByName (R8): each thing that this provider can't do fails
// a check of its own.
func TestPlansAreRefusedByName(t *testing.T) {
	b := newBench(t)
	host := "host"
	for name, change := range map[string]func(*events.Plan){
		"image":   func(p *events.Plan) { p.Image.Reference = "seat:latest" },
		"network": func(p *events.Plan) { p.Network = &host },
		"disk":    func(p *events.Plan) { p.Resources.DiskGiB = 1 },
		"options": func(p *events.Plan) { p.Options = map[string]string{"privileged": "true"} },
		"command": func(p *events.Plan) { p.Command = nil },
		"memory":  func(p *events.Plan) { p.Resources.MemoryMiB = -1 },
	} {
		p := plan()
		change(&p)
		got, err := b.d.Preflight(t.Context(), p)
		if c, failed := got.Failed(); err != nil || !failed || c.Name != name {
			t.Errorf("%s: %+v %v", name, c, err)
		}
	}
}

// TestGraceAtTheEdges: whole seconds, rounded up.
func TestGraceAtTheEdges(t *testing.T) {
	for text, want := range map[string]string{"": "10", "0s": "0", "1ms": "1", "1h": "3600", "1h1ns": "", "-1s": "", "soon": ""} {
		if got, err := grace(events.Arguments{Grace: text}); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
}

// TestDirectoryBelongsToOneProcess: two senders would make "never sent"
// unprovable.
func TestDirectoryBelongsToOneProcess(t *testing.T) {
	b := newBench(t)
	if _, err := Open(Config{Dir: b.dir, Socket: b.f.socket}); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Errorf("%v", err)
	}
	for name, c := range map[string]Config{"socket": {Dir: t.TempDir(), Socket: "docker.sock"}, "dir": {Dir: "rel"}} {
		if _, err := Open(c); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}
