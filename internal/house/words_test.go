package house

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// forbidden words, each written in two parts so that this file passes its own
// rule: marks of unfinished work, and places of one machine.
var forbidden = []struct {
	re  *regexp.Regexp
	why string
}{
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`), "finish it, or write it down in an issue"},
	{regexp.MustCompile(`(^|[\s"'=(` + "`" + `])/wo` + `rk/`), "a path of one machine"},
	{regexp.MustCompile(`/tmp/te` + `am`), "a path of one machine"},
	{regexp.MustCompile(`bash_` + `jobs`), "a path of one machine"},
	{regexp.MustCompile(`\b(proxy|sum)\.golang\.` + `org`), "where modules come from is the machine's business"},
	{regexp.MustCompile(`registry\.npmjs\.` + `org`), "where packages come from is the machine's business"},
}

// The repository speaks of Berth alone and has no unfinished corners.
func TestNoForbiddenWords(t *testing.T) {
	tr := theTree(t)
	check := func(name string, b []byte) {
		for i, line := range bytes.Split(b, []byte("\n")) {
			for _, w := range forbidden {
				if m := w.re.Find(line); m != nil {
					t.Errorf("%s:%d: %q: %s", name, i+1, m, w.why)
				}
			}
		}
	}
	for _, f := range tr.gos {
		check(f.name, f.src)
	}
	for name, b := range tr.texts {
		check(name, b)
	}
}

var linkRE = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// A relative link in a document leads somewhere.
func TestLinksInDocumentsResolve(t *testing.T) {
	tr := theTree(t)
	for name, b := range tr.texts {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, m := range linkRE.FindAllSubmatch(b, -1) {
			to := string(m[1])
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			if _, err := os.Stat(filepath.Join(tr.root, filepath.FromSlash(path.Join(path.Dir(name), to)))); err != nil {
				t.Errorf("%s links to %s, which is not there", name, to)
			}
		}
	}
}

// ARCHITECTURE.md is a map of one sitting and names every room and every
// package that has code.
func TestTheMapNamesEveryRoom(t *testing.T) {
	tr := theTree(t)
	m := string(tr.texts["ARCHITECTURE.md"])
	if m == "" || len(m) > maxMapBytes {
		t.Fatalf("ARCHITECTURE.md has %d bytes; it must exist and have at most %d", len(m), maxMapBytes)
	}
	var rooms []string
	for _, f := range tr.gos {
		if r := roomOf(f.pkg); r != "." && !slices.Contains(rooms, r) {
			rooms = append(rooms, r)
		}
	}
	for _, r := range rooms {
		if !strings.Contains(m, "`"+r+"/") {
			t.Errorf("ARCHITECTURE.md does not name the room `%s/`", r)
		}
	}
}

// The first two commands that a newcomer reads are the two that must work.
func TestReadmeStartsWithTheTwoCommands(t *testing.T) {
	b := string(theTree(t).texts["README.md"])
	up, test := strings.Index(b, "go run ./cmd/berth up"), strings.Index(b, "go test ./...")
	if up < 0 || test < up || strings.Count(b[:max(test, 0)], "\n") > 25 {
		t.Errorf("README.md must show `go run ./cmd/berth up` and then `go test ./...` in its first 25 lines")
	}
}

var (
	citationRE = regexp.MustCompile(`\b(R[1-9][0-9]?|E[1-9][0-9]?|H1[0-9]|[Dd]ecision [1-9][0-9]?|[Ss]cenario [1-9][0-9]?)\b`)
	definedRE  = regexp.MustCompile(`(?m)^(?:- ([REH][0-9]+) |([0-9]+)\. )`)
	scenarioRE = regexp.MustCompile(`(?m)^- \*\*([0-9]+)\.\*\* `)
)

// A number that a comment cites is a rule that docs/rules.md states, or a
// scenario of docs/scenarios.md.
func TestCitedRulesAreStated(t *testing.T) {
	tr := theTree(t)
	stated := map[string]bool{}
	for _, m := range definedRE.FindAllSubmatch(tr.texts["docs/rules.md"], -1) {
		stated[string(m[1])] = true
		stated["decision "+string(m[2])] = true
	}
	for _, m := range scenarioRE.FindAllSubmatch(tr.texts["docs/scenarios.md"], -1) {
		stated["scenario "+string(m[1])] = true
	}
	for _, f := range tr.gos {
		for _, g := range f.ast.Comments {
			for _, m := range citationRE.FindAllString(g.Text(), -1) {
				if !stated[strings.ToLower(m[:1])+m[1:]] && !stated[m] {
					t.Errorf("%s cites %s, which docs/ does not state", tr.fset.Position(g.Pos()), m)
				}
			}
		}
	}
}
