package mutate

import (
	"bytes"
	"context"
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mutant is one way to break the program: in file, the only place where old
// stands becomes broken, and a test of pkg must fail; run narrows its tests
// where the package has slow ones.
type mutant struct{ what, file, old, broken, pkg, run string }

var root = filepath.Join("..", "..", "..")

// patience bounds one mutant: building included, and one that makes its tests
// wait for ever is noticed too.
const patience = 5 * time.Minute

func mutants() []mutant { return append(append([]mutant{}, core...), edge...) }

// source is the file with the mutant in it.
func (m mutant) source(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), m.old); n != 1 {
		t.Fatalf("%s has %d places like this, and the mutant needs one; write it anew for the code as it is:\n%s", m.file, n, m.old)
	}
	return []byte(strings.Replace(string(b), m.old, m.broken, 1))
}

// Every mutant still fits the code that it is to break.
func TestMutantsFit(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutants() {
		if seen[m.what] {
			t.Errorf("%s: told twice", m.what)
		}
		seen[m.what] = true
		t.Run(m.what, func(t *testing.T) {
			if _, err := parser.ParseFile(token.NewFileSet(), m.file, m.source(t), parser.SkipObjectResolution); err != nil {
				t.Error(err)
			}
		})
	}
}

// A test fails for every mutant. It takes minutes.
func TestMutantsAreKilled(t *testing.T) {
	if os.Getenv("BERTH_PROVE") == "" {
		t.Skip("SKIPPED: mutants take minutes; make prove-mutate runs them")
	}
	killed, whole := 0, map[mutant]bool{}
	for _, m := range mutants() {
		t.Run(m.what, func(t *testing.T) {
			same := mutant{pkg: m.pkg, run: m.run}
			if _, known := whole[same]; !known {
				whole[same] = same.survives(t)
			}
			switch {
			case !whole[same]:
				t.Fatalf("the tests of %s fail without any mutant", m.pkg)
			case m.survives(t):
				t.Errorf("no test of %s noticed: in %s\n%s\nbecame\n%s", m.pkg, m.file, m.old, m.broken)
			default:
				killed++
			}
		})
	}
	t.Logf("%d of %d mutants killed", killed, len(mutants()))
}

// overlay writes the file that tells the compiler of the mutant.
func (m mutant) overlay(t *testing.T) string {
	dir := t.TempDir()
	genuine, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	broken, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	b, err := json.Marshal(map[string]map[string]string{"Replace": {genuine: broken}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{broken: m.source(t), overlay: b} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

// survives runs the tests with the mutant in place, or the tree as it is if
// the mutant breaks nothing.
func (m mutant) survives(t *testing.T) bool {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args := []string{"test", "-short", "-count=1", "-failfast", "-vet=off", "-timeout=2m"}
	if m.file != "" {
		args = append(args, "-overlay="+m.overlay(t))
	}
	if m.run != "" {
		args = append(args, "-run="+m.run)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, m.pkg)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "BERTH_PROVE=", "BERTH_SEEDS=")
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		t.Fatalf("go test %s did not end within %s", m.pkg, patience)
	case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")), err != nil && !bytes.Contains(out, []byte("FAIL")):
		t.Fatalf("the mutant does not build, which shows nothing:\n%s", out)
	case bytes.Contains(out, []byte("no tests to run")):
		t.Fatalf("-run %s finds no test in %s", m.run, m.pkg)
	}
	return err == nil
}
