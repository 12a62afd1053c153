package fly

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"berth/events"
	"berth/events/fault"
)

// TestParse: --fly names a file, never a token.
func TestParse(t *testing.T) {
	c, err := Parse("app=trial,token-file=/x/token,region=fra,slots=3,cpus=4,memory-mib=2048")
	if err != nil || c.App != "trial" || c.TokenFile != "/x/token" || c.Region != "fra" || c.Slots != 3 || c.CPUs != 4 || c.MemoryMiB != 2048 {
		t.Errorf("%+v %v", c, err)
	}
	for _, bad := range []string{"", "app=trial", "token-file=/x", "app=Trial,token-file=/x", "app=trial,token-file=/x,token=s3cr3t-value",
		"app=trial,token-file=/x,slots=0", "app=trial,token-file=/x,slots=1001", "app=trial,token-file=/x,region=a/b"} {
		if _, err := Parse(bad); fault.CodeOf(err) != fault.BadRequest || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, base := range []string{"http://api.example/v1", "https://u:p@api.example", "ftp://x", "://"} {
		if _, err := Open(Config{Dir: t.TempDir(), App: "trial", TokenFile: "/x", BaseURL: base}); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// TestTokenFileIsPrivate: what others may read, is too long or is no token is
// refused before anything is sent, and its text is never shown.
func TestTokenFileIsPrivate(t *testing.T) {
	for name, prepare := range map[string]func(string) error{
		"others may read it": func(p string) error { return os.Chmod(p, 0o644) },
		"missing":            os.Remove,
		"empty":              func(p string) error { return os.WriteFile(p, []byte(" \n"), 0o600) },
		"two lines":          func(p string) error { return os.WriteFile(p, []byte("abc-canary\nX-Header: 1"), 0o600) },
		"too long":           func(p string) error { return os.WriteFile(p, bytes.Repeat([]byte("a"), MaxToken+1), 0o600) },
	} {
		b := newBench(t)
		if err := prepare(b.cfg.TokenFile); err != nil {
			t.Fatal(err)
		}
		_, err := b.d.HostFacts(t.Context())
		if fault.CodeOf(err) != fault.Unauthenticated || strings.Contains(err.Error(), "canary") || b.f.count("GET app") != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlansAreRefusedByName (R8): each thing that Fly can't do fails a check of
// its own.
func TestPlansAreRefusedByName(t *testing.T) {
	b := newBench(t)
	network := "private"
	for change, f := range map[string]func(*events.Plan){
		"image":    func(p *events.Plan) { p.Image.Reference = "seat:latest" },
		"size":     func(p *events.Plan) { p.Resources.CPUs = events.MustQuantity("0.25") },
		"size 2":   func(p *events.Plan) { p.Resources.MemoryMiB = 255 },
		"size 3":   func(p *events.Plan) { p.Options = map[string]string{OptionCPUKind: "fast"} },
		"network":  func(p *events.Plan) { p.Network = &network },
		"disk":     func(p *events.Plan) { p.Resources.DiskGiB = 1 },
		"capture":  func(p *events.Plan) { p.Options = map[string]string{OptionCapture: "/home/seat/x"} },
		"capture2": func(p *events.Plan) { p.Options = map[string]string{OptionCapture: "/a'; rm -rf /"} },
		"options":  func(p *events.Plan) { p.Options = map[string]string{"x": "y"} },
		"command":  func(p *events.Plan) { p.Command = nil },
	} {
		p := plan()
		f(&p)
		got, err := b.d.Preflight(t.Context(), p)
		if c, failed := got.Failed(); err != nil || !failed || c.Name != strings.TrimRight(change, " 23") {
			t.Errorf("%s: %+v %v", change, c, err)
		}
	}
	b.f.will("GET app", answer404)
	got, err := b.d.Preflight(t.Context(), plan())
	if c, failed := got.Failed(); err != nil || !failed || c.Name != "app" {
		t.Errorf("an app that is not there: %+v %v", c, err)
	}
}

// TestLogsAreRefused (R89): there are none, and that is said.
func TestLogsAreRefused(t *testing.T) {
	b := newBench(t)
	b.before(events.VerbStop)
	var buf bytes.Buffer
	if _, err := b.d.Logs(t.Context(), b.id, b.ref, 0, false, &buf); fault.CodeOf(err) != fault.Unimplemented {
		t.Errorf("%v", err)
	}
}
