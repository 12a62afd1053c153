package house

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// decides are the rooms in which it is decided what is done with an environment.
var decides = []string{"aggregates/", "sagas/", "commands/", "projections/"}

// namesProvider are the only places there that name a provider, and why.
var namesProvider = map[string]string{
	"commands/limits.go":     "the provider of a spawn that names none",
	"sagas/explore/world.go": "the world that is explored is made with the simulated one",
}

// R4: nothing is derived from a provider's name: whoever decides asks what a
// provider can do, and knows none by its name.
func TestNothingKnowsAProviderByItsName(t *testing.T) {
	tr := theTree(t)
	names, seen := []string{"process", "qemu", "docker", "fly", "drill", "hosted"}, map[string]bool{}
	for _, f := range tr.gos {
		if f.test || strings.Contains(f.name, "/sample/") || !slices.ContainsFunc(decides, func(room string) bool { return strings.HasPrefix(f.name, room) }) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok {
				return true
			}
			if s, err := strconv.Unquote(l.Value); err == nil && slices.Contains(names, s) {
				if seen[f.name] = true; namesProvider[f.name] == "" {
					t.Errorf("%s names the provider %q", tr.fset.Position(l.Pos()), s)
				}
			}
			return true
		})
	}
	for name := range namesProvider {
		if !seen[name] {
			t.Errorf("%s names no provider any more", name)
		}
	}
}
