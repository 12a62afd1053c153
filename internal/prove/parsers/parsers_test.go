package parsers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..", "..")

// reads says by its name that a function takes something apart.
var reads = regexp.MustCompile(`^([Pp]arse|[Dd]ecode|Unmarshal(JSON|Text)$|Restore$|CheckText$|CheckCapabilities$)`)

// also are readers of files and frames, whose names say nothing.
var also = []string{
	"events/eventlog/checkpoint.Read", "projections.decodeSnapshot", "providers/adapter.load", "providers/drill.replayLines",
	"providers/process/seatdir.LoadJournal", "providers/qemu/wire.Read",
}

// through names the fuzz target that reaches a parser without naming it.
var through = map[string]string{
	"events.decodeWith":          "FuzzDecodeEvent",
	"events.UnmarshalJSON":       "FuzzUnmarshal",
	"events/fault.UnmarshalJSON": "FuzzUnmarshalError",
	"commands.DecodeInput":       "FuzzDecode",
	"commands.ParseCaller":       "FuzzParseAddress",
	"events.parse":               "FuzzEveryID",
	"events.parseUUID":           "FuzzEveryID",
}

// not lists what needs no target, and why.
var not = map[string]string{
	"internal/cli.parseTime":  "is time.ParseDuration or commands.ParseTime, which has a target; one here would build the whole program for fuzzing",
	"..parse":                 "reads the identity that this program itself wrote; a target in the root would build the whole program for fuzzing",
	"providers/qemu.parseTSC": "reads the host's own /proc/cpuinfo, which nobody else writes",
}

type found struct {
	parsers map[string]bool     // PACKAGE.Name
	targets map[string][]string // package: fuzz targets
	named   map[string]bool     // PACKAGE.Name that a target of the package names
}

// Every parser has a fuzz target in its package.
func TestEveryParserIsFuzzed(t *testing.T) {
	f := scan(t)
	for p := range f.parsers {
		pkg := path.Dir(p) + "/" + strings.SplitN(path.Base(p), ".", 2)[0]
		pkg = strings.TrimPrefix(pkg, "./")
		switch {
		case f.named[p], not[p] != "":
		case through[p] != "" && slices.Contains(f.targets[pkg], through[p]):
		default:
			t.Errorf("%s: no fuzz target of its package names it; write one, or say in this file what reaches it", p)
		}
	}
	if len(f.parsers) < 20 {
		t.Errorf("only %d parsers were found: the pattern finds nothing", len(f.parsers))
	}
}

// What is listed here is there.
func TestListsAreTrue(t *testing.T) {
	f := scan(t)
	listed := slices.Concat(also, slices.Collect(maps.Keys(through)), slices.Collect(maps.Keys(not)))
	for _, p := range listed {
		if !f.parsers[p] {
			t.Errorf("%s is listed and not there any more", p)
		}
	}
}

func scan(t *testing.T) found {
	t.Helper()
	f := found{parsers: map[string]bool{}, targets: map[string][]string{}, named: map[string]bool{}}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // a temporary file of another test, gone meanwhile
		}
		rel, err := filepath.Rel(root, p)
		switch rel = filepath.ToSlash(rel); {
		case err != nil:
			return err
		case d.IsDir() && rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || rel == "internal/prove"):
			return filepath.SkipDir
		case !strings.HasSuffix(rel, ".go"):
			return nil
		}
		return f.file(p, path.Dir(rel))
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f found) file(name, pkg string) error {
	tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(name, "_test.go")
	for _, d := range tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		switch {
		case !ok:
		case test && strings.HasPrefix(fn.Name.Name, "Fuzz"):
			f.targets[pkg] = append(f.targets[pkg], fn.Name.Name)
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					f.named[pkg+"."+id.Name] = true
				}
				return true
			})
		case !test && (reads.MatchString(fn.Name.Name) && takes(fn) || slices.Contains(also, pkg+"."+fn.Name.Name)):
			f.parsers[pkg+"."+fn.Name.Name] = true
		}
	}
	return nil
}

// takes says that an input of a function is text or bytes.
func takes(fn *ast.FuncDecl) bool {
	for _, p := range fn.Type.Params.List {
		switch x := p.Type.(type) {
		case *ast.Ident:
			if x.Name == "string" {
				return true
			}
		case *ast.ArrayType:
			if id, ok := x.Elt.(*ast.Ident); ok && x.Len == nil && id.Name == "byte" {
				return true
			}
		case *ast.SelectorExpr:
			if x.Sel.Name == "RawMessage" || x.Sel.Name == "Reader" {
				return true
			}
		}
	}
	return false
}
