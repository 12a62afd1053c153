package connector

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/events"
	"berth/events/fault"
)

// Every row is whole: a window within what a spawn may ask for, and words for
// what a person asks first.
func TestTableIsWhole(t *testing.T) {
	for _, r := range Table {
		if r.Doc == "" || r.Prompt == "" || r.Resume == "" || r.Window < time.Second || r.Window > 10*time.Minute {
			t.Errorf("%s: %+v", r.Name, r)
		}
		if r.Sign != nil && r.Sign.Check() != nil {
			t.Errorf("%s declares a sign that nothing gives", r.Name)
		}
		for _, e := range r.Exits {
			if e.Code < 1 || e.Code > 125 && e.Code != 127 || e.Meaning == "" || Meaning(r.Name, e.Code) != e.Meaning || events.CheckText("meaning", e.Meaning) != nil {
				t.Errorf("%s: exit code %+v", r.Name, e)
			}
		}
		if Meaning(r.Name, 0) != "" || Meaning("telepathy", 1) != "" {
			t.Errorf("%s: an exit code that is not declared has a meaning", r.Name)
		}
		var given []string
		if r.Takes != TakesNone {
			given = []string{"agent", "--flag"}
		}
		if err := r.CheckCommand(given); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
		if back := r.Given(r.Command(given)); !slices.Equal(back, given) {
			t.Errorf("%s: of %q was made a command line of %q", r.Name, given, back)
		}
		for i, w := range r.Command(given) {
			if w == "" || events.CheckTextMulti("word", w) != nil {
				t.Errorf("%s: word %d of its command is no public text", r.Name, i)
			}
		}
	}
	if got := mustFind(t, Exec).Command([]string{"agent"}); !slices.Equal(got, []string{"agent"}) {
		t.Errorf("exec runs %q", got)
	}
}

func mustFind(t *testing.T, name string) Row {
	t.Helper()
	r, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatAConnectorHasNoUseForIsRefused(t *testing.T) {
	for name, command := range map[string][]string{Shell: {"date"}, ACP: nil} {
		if err := mustFind(t, name).CheckCommand(command); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s with %q: %v", name, command, err)
		}
	}
	if err := mustFind(t, ACP).CheckSign("started"); fault.CodeOf(err) != fault.BadRequest {
		t.Error(err)
	}
	for _, r := range Table {
		if err := r.CheckSign(""); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
	if _, err := Find("telepathy"); fault.CodeOf(err) != fault.BadRequest || !strings.Contains(err.Error(), "exec, shell, acp") {
		t.Error(err)
	}
}

func TestParseSign(t *testing.T) {
	good := map[string]*events.ReadySign{
		"started": nil, "fd": {Kind: events.SignFD}, "port:8080": {Kind: events.SignPort, Port: 8080},
		"pattern:^ready: .*$":                               {Kind: events.SignPattern, Pattern: "^ready: .*$"},
		"pattern:" + strings.Repeat("x", events.MaxPattern): {Kind: events.SignPattern, Pattern: strings.Repeat("x", events.MaxPattern)},
	}
	for s, want := range good {
		got, err := ParseSign(s)
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
		if back := FormatSign(got); back != s {
			t.Errorf("%q is written as %q", s, back)
		}
	}
	for _, s := range []string{"", "now", "fd:4", "port", "port:", "port:0", "port:65536", "port:http", "pattern", "pattern:", "pattern:(", "pattern:a*",
		"pattern:" + strings.Repeat("x", events.MaxPattern+1)} {
		if _, err := ParseSign(s); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// An instance says of each connector whether it is usable, and why not; one
// without any leaves the class (rules.md part 3).
func TestReports(t *testing.T) {
	none := errors.New("not there")
	a := Available{Offered: []string{Shell}, Look: func(string) error { return none }}
	for _, r := range a.Reports() {
		if r.State != StateUnavailable || r.Reason == "" || r.Binaries == nil {
			t.Errorf("%+v", r)
		}
	}
	if a.Any() {
		t.Error("no connector is usable")
	}
	if _, err := a.Use(Shell); fault.CodeOf(err) != fault.FailedPrecondition || fault.From(err).Outcome != fault.NotExecuted {
		t.Error(err)
	}
	a.Look = func(string) error { return nil }
	if _, err := a.Use(Shell); err != nil || !a.Any() {
		t.Error(err)
	}
	if err := (Available{Offered: []string{"telepathy"}}).Check(); fault.CodeOf(err) != fault.BadRequest {
		t.Error(err)
	}
	if !(Available{}).Any() {
		t.Error("an instance offers all by default")
	}
}

// Whatever is accepted as a sign can be given, and is written the same way.
func FuzzParseSign(f *testing.F) {
	for _, s := range []string{"started", "fd", "port:8080", "pattern:^ready$", "pattern:(", "port:-1", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sign, err := ParseSign(s)
		if err != nil {
			if fault.CodeOf(err) != fault.BadRequest {
				t.Fatal(err)
			}
			return
		}
		if sign == nil {
			return
		}
		if err := sign.Check(); err != nil || sign.String() == "" {
			t.Fatalf("%q was accepted: %v", s, err)
		}
	})
}
