package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"berth/commands"
	"berth/events/fault"
)

// result is one run of the program in this process.
type result struct {
	code           int
	stdout, stderr string
}

func run(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	if env["HOME"] == "" {
		env = map[string]string{"HOME": t.TempDir()}
	}
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code := Run(ctx, Program{Args: args, Env: func(k string) string { return env[k] }, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	return result{code, out.String(), errs.String()}
}

// Bad input is refused with code 2 before anything is asked: no manager is
// there, and nobody is missed.
func TestBadInputIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	for _, c := range []struct{ args, names string }{
		{"nonsense", "nonsense"},
		{"ls -o xml", "--output"},
		{"ls --timeout 0s", "--timeout"},
		{"ls --timeout soon", "--timeout"},
		{"ls --status sleepy", "status"},
		{"spawn a b -- c", "too many"},
		{"spawn demo --cpus -1 -- true", "cpus"},
		{"spawn demo --cpus NaN -- true", "cpus"},
		{"spawn demo --memory 1.5 -- true", "memory"},
		{"provider conform --hosted far --cpus 0", "cpus"},
		{"provider conform --hosted far --memory 1023KiB", "memory"},
		{"spawn demo --memory 99999999TiB -- true", "memory"},
		{"spawn demo --ttl never -- true", "ttl"},
		{"spawn demo --ttl -1h -- true", "ttl"},
		{"spawn demo --goal a.b -- true", "goal"},
		{"spawn demo --image host -- true", "--image"},
		{"spawn demo --option x -- true", "--option"},
		{"spawn chat_x -- true", "name"},
		{"spawn a/../b -- true", "name"},
		{"spawn demo -- echo password=hunter2", "command"},
		{"extend demo", "by"},
		{"extend demo --by 1h --until 2026-01-01T00:00:00Z", "by"},
		{"extend demo --until tomorrow", "--until"},
		{"export demo", "--to"},
		{"export demo --to /nowhere/at/all/x.tar", "--to"},
		{"export demo --to x.tar --max-bytes lots", "--max-bytes"},
		{"export demo --to x.tar --max-bytes 0", "--max-bytes"},
		{"retire demo --grace 1y", "grace"},
		{"write-off demo", "reason"},
		{"goal cancel g --mode quickly", "mode"},
		{"replay --at someday", "at"},
		{"replay --at 5 --verify", "at"},
		{"usage --rates /nowhere.json", "nowhere"},
		{"ls --server nats://127.0.0.1:1 --creds /nowhere.creds", "--creds"},
		{"inspect " + strings.Repeat("x", 65), "name"},
		{"logs demo --from -1", "from"},
	} {
		r := run(t, nil, strings.Fields(c.args)...)
		if r.code != int(fault.ExitUsage) || !strings.Contains(r.stderr, c.names) || r.stdout != "" {
			t.Errorf("berth %s: code %d, want 2 with %q\n%s%s", c.args, r.code, c.names, r.stdout, r.stderr)
		}
		if strings.Contains(r.stderr, "hunter2") {
			t.Errorf("berth %s: the secret is shown", c.args)
		}
	}
}

// An error is one JSON line with all of its fields with -o json, wherever -o
// stands, and two lines for a person.
func TestErrorsHaveOneShape(t *testing.T) {
	for _, args := range [][]string{{"extend", "demo", "-o", "json"}, {"-o=json", "extend", "demo"}, {"extend", "demo", "--output=json", "--bogus"}, {"nonsense", "-ojson"}} {
		r := run(t, nil, args...)
		var body map[string]map[string]any
		if err := json.Unmarshal([]byte(r.stderr), &body); err != nil || strings.Count(r.stderr, "\n") != 1 {
			t.Fatalf("%v: %q is not one JSON line (%v)", args, r.stderr, err)
		}
		for _, f := range []string{"code", "message", "hint", "outcome", "retryable", "details", "id"} {
			if _, ok := body["error"][f]; !ok {
				t.Errorf("%v: no field %s in %s", args, f, r.stderr)
			}
		}
		if body["error"]["outcome"] != string(fault.NotExecuted) || body["error"]["details"] == nil {
			t.Errorf("%v: %s", args, r.stderr)
		}
	}
	r := run(t, nil, "extend", "demo")
	if !strings.HasPrefix(r.stderr, "berth: error: ") {
		t.Errorf("for a person: %q", r.stderr)
	}
	// What belongs to the seat's command is not ours.
	if r := run(t, nil, "spawn", "a", "b", "--", "x", "-o", "json"); !strings.HasPrefix(r.stderr, "berth: error: ") {
		t.Errorf("after --: %q", r.stderr)
	}
}

// Nobody there: exit code 8, nothing executed, and what to do.
func TestNobodyAnswers(t *testing.T) {
	for _, args := range [][]string{{"ls"}, {"ls", "--server", "nats://127.0.0.1:1"}, {"spawn", "demo", "--", "true"}} {
		r := run(t, nil, append([]string{"-o", "json"}, args...)...)
		if r.code != int(fault.ExitUnavailable) || !strings.Contains(r.stderr, `"not-executed"`) || !strings.Contains(r.stderr, "berth up") {
			t.Errorf("%v: code %d %s", args, r.code, r.stderr)
		}
	}
}

// A password in a URL is not repeated.
func TestURLsAreScrubbed(t *testing.T) {
	r := run(t, nil, "ls", "--server", "nats://user:hunter2canary@127.0.0.1:1")
	if strings.Contains(r.stderr, "hunter2canary") || r.code != int(fault.ExitUnavailable) {
		t.Errorf("code %d %s", r.code, r.stderr)
	}
}

func TestHelpExitCodesListsEveryCode(t *testing.T) {
	r := run(t, nil, "help", "exit-codes")
	for _, row := range fault.Table {
		if !strings.Contains(r.stdout, string(row.Code)) {
			t.Errorf("no %s in help exit-codes", row.Code)
		}
	}
	for _, n := range []string{" 0 ", " 7 ", " 8 ", " 10 ", " 14 ", "130 "} {
		if !strings.Contains(r.stdout, n) {
			t.Errorf("no exit code %s", n)
		}
	}
}

// Every command has a sentence of help and, unless it only groups others, an
// example; and every command of the contract that is a verb has one.
func TestEveryVerbIsThere(t *testing.T) {
	root := (&app{Program: Program{Env: os.Getenv}}).root()
	have := map[string]bool{}
	for _, c := range root.Commands() {
		have[c.Name()] = true
		if c.Short == "" && !c.Hidden {
			t.Errorf("%s has no help", c.Name())
		}
	}
	wire := map[string]string{"environment-host-facts": "hosts", "health": "doctor", "status": "doctor", "wait": "goal", "export-read": "export", "goals": "goal", "goal-cancel": "goal",
		"persona-define": "persona", "persona-remove": "persona", "persona-list": "persona", "persona-show": "persona", "shutdown": "stop", "transcript-receive": "transcript",
		"intents": "intent", "intent-admit": "intent", "intent-use": "intent", "intent-release": "intent"}
	for _, c := range commands.Table {
		name := c.Name
		if w := wire[name]; w != "" {
			name = w
		}
		if !have[name] {
			t.Errorf("command %s has no verb", c.Name)
		}
	}
	for _, v := range []string{"up", "drill", "completion", "version"} {
		if c, _, err := root.Find([]string{v}); err != nil || (c.Name() != v && v != "completion") {
			t.Errorf("no verb %s", v)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := run(t, nil, "completion", shell); r.code != 0 || !strings.Contains(r.stdout, "berth") {
			t.Errorf("completion %s: code %d", shell, r.code)
		}
	}
}

// Where a manager is looked for, and its order, is in place.go; here is where
// data is kept when nobody says so.
func TestDataDirectory(t *testing.T) {
	for _, c := range []struct {
		flag string
		env  map[string]string
		want string
	}{
		{"/d", map[string]string{"BERTH_DATA": "/e", "HOME": "/h"}, "/d"},
		{"", map[string]string{"BERTH_DATA": "/e", "HOME": "/h"}, "/e"},
		{"", map[string]string{"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/berth"},
		{"", map[string]string{"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/berth"},
		{"", map[string]string{}, ""},
	} {
		a := &app{data: c.flag, Program: Program{Env: func(k string) string { return c.env[k] }}}
		got, err := a.dataDir()
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%v: %q, %v", c, got, err)
		}
	}
}

// What comes from the log or a provider can't draw on a terminal.
func TestTextOfOthersIsHarmless(t *testing.T) {
	var b bytes.Buffer
	tb := (&app{}).table("A", "B")
	tb.add("x\x1b[31mred\r\n", "")
	tb.print(&b)
	if strings.ContainsAny(b.String(), "\x1b\r") || !strings.Contains(b.String(), "-") {
		t.Errorf("%q", b.String())
	}
}

func TestWrittenTimesAndSizes(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	if got, _ := parseTime("--until", "2h", now); !got.Equal(now.Add(2 * time.Hour)) {
		t.Error(got)
	}
	for d, want := range map[time.Duration]string{time.Second: "1s", 90 * time.Second: "1m30s", 61 * time.Minute: "1h1m", 49 * time.Hour: "2d1h"} {
		if got := shortDuration(d); got != want {
			t.Errorf("%s: %s", d, got)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 128 << 20: "128 MiB"} {
		if got := humanSize(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// A failure of `up` has a code of its own, also for bad flags.
func TestStartFailures(t *testing.T) {
	for _, c := range [][]string{{"up", "--durability", "maybe"}, {"up", "--max-bytes", "much"}, {"up", "--log-level", "loud"}, {"up", "--space", "a b"}} {
		if r := run(t, nil, c...); r.code != int(fault.ExitBadConfig) {
			t.Errorf("%v: code %d %s", c, r.code, r.stderr)
		}
	}
	kept := fault.New(fault.Conflict, "x").WithDetail(fault.DetailPortInUse)
	if !errors.Is(startFailure(kept), kept) || startFailure(nil) != nil {
		t.Error("a refusal with its own code is changed")
	}
}

func TestInputFilesAreBounded(t *testing.T) {
	f := filepath.Join(t.TempDir(), "in")
	for n, ok := range map[int]bool{10: true, 11: false} {
		if err := os.WriteFile(f, bytes.Repeat([]byte("x"), n), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readInput(f, 10); (err == nil) != ok {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// An interrupt ends a client with 130 and says that the work goes on.
func TestInterrupted(t *testing.T) {
	var errs bytes.Buffer
	a := &app{output: formatTable, Program: Program{Stderr: &errs}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := a.fail(ctx, context.Canceled); code != int(fault.ExitInterrupted) || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("code %d %s", code, errs.String())
	}
	if code := a.fail(t.Context(), &exitError{fault.ExitFailure}); code != 1 {
		t.Errorf("code %d", code)
	}
}

// The flag library takes a word in backquotes for the name of the value, so
// that none may stand in the text of a flag.
func TestFlagsNameTheirValuesByType(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "`") {
				t.Errorf("%s --%s: %s", c.CommandPath(), f.Name, f.Usage)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{Program: Program{Env: os.Getenv}}).root())
}
