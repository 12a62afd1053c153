package testscripts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"berth/internal/cli"
	"berth/providers/qemu"
)

// cmdExits runs a program and expects one exit code: exits CODE prog args...
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := run(ts, args[1:]); got != want {
		ts.Fatalf("%s ended with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func run(ts *testscript.TestScript, args []string) int {
	err := ts.Exec(args[0], args[1:]...)
	var x *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &x):
		return x.ExitCode()
	}
	ts.Fatalf("%s: %v", args[0], err)
	return -1
}

// cmdUntil runs a program until it succeeds and its standard output matches:
// until REGEXP program [args...].
func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP program [args...]")
	}
	re, err := regexp.Compile(args[0])
	ts.Check(err)
	deadline := time.Now().Add(patience)
	for {
		code := run(ts, args[1:])
		if code == 0 && re.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s: %q was not printed within %s", strings.Join(args[1:], " "), args[0], patience)
		}
		time.Sleep(pause)
	}
}

// cmdRefused runs a program, with {} in its arguments replaced by a number,
// until it ends with a code: refused CODE program [args...]. What is measured
// now and then, such as free disk, is seen a moment later.
func cmdRefused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: refused CODE program [args...]")
	}
	deadline := time.Now().Add(patience)
	for n := 0; ; n++ {
		words := make([]string, 0, len(args))
		for _, w := range args[1:] {
			words = append(words, strings.ReplaceAll(w, "{}", strconv.Itoa(n)))
		}
		if strconv.Itoa(run(ts, words)) == args[0] {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s did not end with %s within %s", strings.Join(args[1:], " "), args[0], patience)
		}
		time.Sleep(pause)
	}
}

// cmdJSON looks into the JSON that the last program printed: json PATH WANT.
// A path is names and indices with dots; len is a length. WANT is the text, or
// an expression between slashes. ! means: differs.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] json PATH WANT")
	}
	got, err := look(ts.ReadFile("stdout"), args[0])
	ts.Check(err)
	same := got == args[1]
	if re, ok := strings.CutPrefix(args[1], "/"); ok && strings.HasSuffix(re, "/") {
		same, err = regexp.MatchString(strings.TrimSuffix(re, "/"), got)
		ts.Check(err)
	}
	if same == neg {
		ts.Fatalf("%s is %s (want %s)", args[0], got, args[1])
	}
}

// cmdSave keeps a value of the last program's JSON in a variable: save NAME PATH.
func cmdSave(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: save NAME PATH")
	}
	got, err := look(ts.ReadFile("stdout"), args[1])
	ts.Check(err)
	ts.Setenv(args[0], got)
}

// cmdLoad keeps a file's text in a variable: load NAME FILE.
func cmdLoad(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: load NAME FILE")
	}
	ts.Setenv(args[0], ts.ReadFile(args[1]))
}

// look finds a value in a document, as text: strings bare, everything else as
// JSON, and "absent" for what is not there.
func look(doc, path string) (string, error) {
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		return "", fmt.Errorf("the output is not one JSON document: %w", err)
	}
	for _, k := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[k]
			if k == "len" {
				next = float64(len(x))
			} else if !ok {
				return "absent", nil
			}
			v = next
		case []any:
			i, err := strconv.Atoi(k)
			switch {
			case k == "len":
				v = float64(len(x))
			case err != nil || i >= len(x):
				return "absent", nil
			default:
				v = x[i]
			}
		default:
			return "absent", nil
		}
	}
	if s, ok := v.(string); ok {
		return s, nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// cmdSHA256 checks the digest of a file: sha256 FILE WANT.
func cmdSHA256(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sha256 FILE WANT")
	}
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(ts.ReadFile(args[0])))); got != args[1] {
		ts.Fatalf("%s has digest %s, want %s", args[0], got, args[1])
	}
}

// cmdGlob says whether files match a pattern: [!] glob PATTERN.
func cmdGlob(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] glob PATTERN")
	}
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if (len(found) > 0) == neg {
		ts.Fatalf("%s matches %v", args[0], found)
	}
}

// cmdCanary looks for a secret in everything that a script left behind, the
// files below a directory: canary SECRET DIR.
func cmdCanary(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: canary SECRET DIR")
	}
	ts.Check(filepath.WalkDir(ts.MkAbs(args[1]), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(b, []byte(args[0])) {
			return fmt.Errorf("%s holds the secret", path)
		}
		return err
	}))
}

// cmdHTTP asks the manager's HTTP listener and expects a status: http STATUS PATH.
func cmdHTTP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: http STATUS PATH")
	}
	code, body, err := get(ts.Getenv("HTTP"), args[1])
	ts.Check(err)
	_, _ = io.WriteString(ts.Stdout(), body)
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s: status %d, want %s\n%s", args[1], code, args[0], body)
	}
}

func get(base, path string) (int, string, error) {
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	c := http.Client{Timeout: 30 * time.Second}
	r, err := c.Get(base + path)
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return r.StatusCode, string(b), err
}

// machine is what the process provider can do here: whether it isolates seats,
// and the option that says how it limits them.
var machine = sync.OnceValues(func() (isolates bool, option string) {
	option = "limits=cgroups"
	checks, err := cli.MachineChecks(context.Background())
	for _, c := range checks {
		switch {
		case c.OK:
		case c.Name == "limits":
			option = "limits=none"
		default:
			fmt.Fprintf(os.Stderr, "scripts with real seats are skipped: %s: %s\n", c.Name, c.Detail)
			return false, option
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "scripts with real seats are skipped: %v\n", err)
	}
	return err == nil, option
})

// condition knows what a machine must have for some scripts.
func condition(c string) (bool, error) {
	switch c {
	case "tmpfs":
		return canMount(), nil
	case "seats":
		ok, _ := machine()
		return ok, nil
	case "machines":
		return os.Getenv("BERTH_PROVE") != "" && qemu.Available() == nil, nil
	}
	return false, fmt.Errorf("unknown condition %s", c)
}
