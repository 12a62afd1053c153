package house

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Events and aggregates are functions: no clock, no randomness, no I/O, no
// goroutine. Replay and simulation rest on it (law 4).
func TestPurePackagesArePure(t *testing.T) {
	tr := theTree(t)
	seen := map[string]bool{}
	for _, f := range tr.gos {
		marked := isMarkedPure(f)
		if f.inTest || !marked && (f.test || !isPure(f.pkg)) {
			continue
		}
		seen[roomOf(f.pkg)] = true
		for _, im := range f.imports {
			if why := impureImport(im); why != "" && !(marked && slices.Contains(pureMarkedMay, im)) {
				t.Errorf("%s imports %s: %s", f.name, im, why)
			}
		}
		names := importNames(f)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if what := impureNode(n, names); what != "" {
				t.Errorf("%s: %s in pure code; take it in with the input", tr.fset.Position(n.Pos()), what)
			}
			return true
		})
	}
	if !seen["events"] {
		t.Error("no file of package events was looked at; the rule is not looking where the code is")
	}
}

func isPure(pkg string) bool {
	in := func(tree string) bool { return under(pkg, tree) }
	return slices.ContainsFunc(purePackages, in) && !slices.ContainsFunc(notPure, in)
}

// isMarkedPure says that a file declares itself pure, with a line //house:pure:
// a kernel or a fold in a package that has a shell too.
func isMarkedPure(f goFile) bool {
	for _, g := range f.ast.Comments {
		for _, c := range g.List {
			if c.Text == "//house:pure" {
				return true
			}
		}
	}
	return false
}

func impureImport(im string) string {
	if slices.Contains(pureAllowed, im) {
		return ""
	}
	for bad, why := range pureForbidden {
		if under(im, bad) {
			return why
		}
	}
	first, _, _ := strings.Cut(im, "/")
	if !strings.Contains(first, ".") {
		return ""
	}
	for good := range pureThirdParty {
		if under(im, good) {
			return ""
		}
	}
	return "a library that pureThirdParty in rules.go does not list"
}

// importNames maps the name that a file uses for an import to its path.
func importNames(f goFile) map[string]string {
	names := map[string]string{}
	for _, im := range f.ast.Imports {
		p, err := strconv.Unquote(im.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if im.Name != nil {
			name = im.Name.Name
		}
		names[name] = p
	}
	return names
}

func impureNode(n ast.Node, names map[string]string) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a goroutine"
	case *ast.SelectStmt:
		return "a select"
	case *ast.SelectorExpr:
		x, ok := n.X.(*ast.Ident)
		if !ok {
			return ""
		}
		if slices.Contains(pureCalls[names[x.Name]], n.Sel.Name) {
			return fmt.Sprintf("%s.%s", x.Name, n.Sel.Name)
		}
	}
	return ""
}

// The rule refuses what it should.
func TestPureRuleRefuses(t *testing.T) {
	for im, pure := range map[string]bool{
		"os": false, "os/exec": false, "net/url": true, "net/http": false, "math/rand/v2": false, "context": false,
		"github.com/nats-io/nats.go": false, "strings": true, "time": true, "math/big": true,
		"github.com/cockroachdb/apd/v3": true, "berth/events": true,
	} {
		if why := impureImport(im); (why == "") != pure {
			t.Errorf("%s: pure=%v, want %v", im, why == "", pure)
		}
	}
}
