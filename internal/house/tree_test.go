package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// goFile is one parsed Go file of the module, whatever its build tags say.
type goFile struct {
	name    string // slash path from the root of the module
	pkg     string // import path of its directory
	test    bool   // _test.go, or a package that exists for tests
	inTest  bool   // _test.go
	lines   int
	ast     *ast.File
	imports []string
	src     []byte
}

// tree is everything that the rules look at, read once.
type tree struct {
	root  string
	fset  *token.FileSet
	gos   []goFile
	texts map[string][]byte // every other text file up to maxText bytes
}

const maxText = 1 << 20

var loadTree = sync.OnceValues(func() (*tree, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return nil, err
	}
	tr := &tree{root: root, fset: token.NewFileSet(), texts: map[string][]byte{}}
	return tr, filepath.WalkDir(root, tr.visit)
})

func (tr *tree) visit(p string, d fs.DirEntry, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a temporary file of somebody else, gone meanwhile
	}
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(tr.root, p)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	if d.IsDir() {
		hidden := strings.HasPrefix(rel, ".") && rel != "." && rel != ".ci"
		if hidden || rel == "data" || rel == "dist" || d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		return nil
	}
	if !d.Type().IsRegular() {
		return nil
	}
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > maxText {
		return nil
	}
	if err != nil {
		return err
	}
	b, err := os.ReadFile(p)
	if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.IndexByte(b, 0) >= 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return tr.add(rel, b)
}

// add puts one text file into the tree; Go files are parsed, except examples
// below testdata.
func (tr *tree) add(rel string, b []byte) error {
	if !strings.HasSuffix(rel, ".go") || strings.Contains("/"+rel, "/testdata/") {
		tr.texts[rel] = b
		return nil
	}
	f, err := parser.ParseFile(tr.fset, rel, b, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	g := goFile{name: rel, pkg: path.Join(module, path.Dir(rel)), ast: f, lines: bytes.Count(b, []byte("\n")), src: b}
	g.inTest = strings.HasSuffix(rel, "_test.go")
	g.test = g.inTest || supportsTests(g.pkg)
	for _, im := range f.Imports {
		g.imports = append(g.imports, strings.Trim(im.Path.Value, `"`))
	}
	tr.gos = append(tr.gos, g)
	return nil
}

// supportsTests says that a package exists for tests: logtest, providertest,
// the simulation.
func supportsTests(pkg string) bool {
	last := path.Base(pkg)
	return strings.HasSuffix(last, "test") || last == "sim" || roomOf(pkg) == "testscripts"
}

// roomOf is the first element below the module, "." for the root package.
func roomOf(pkg string) string {
	rest, ok := strings.CutPrefix(pkg, module+"/")
	if !ok {
		return "."
	}
	room, _, _ := strings.Cut(rest, "/")
	return room
}

// under says that pkg is tree or below it.
func under(pkg, tree string) bool {
	tree = strings.TrimSuffix(tree, "/")
	return pkg == tree || strings.HasPrefix(pkg, tree+"/")
}

func ours(pkg string) bool { return under(pkg, module) }

func theTree(t *testing.T) *tree {
	t.Helper()
	tr, err := loadTree()
	if err != nil {
		t.Fatalf("reading the module: %v", err)
	}
	return tr
}

// listed is what `go list` says of one package of the build, tests included.
type listed struct {
	ImportPath string
	Name       string
	ForTest    string
	Standard   bool
	Imports    []string
	Deps       []string
	Module     *struct{ Path, Version, Dir string }
}

// loadBuild runs `go list` once for all tests: every package that is compiled
// for the program or for its tests.
var loadBuild = sync.OnceValues(func() (map[string]listed, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-test",
		"-json=ImportPath,Name,ForTest,Standard,Imports,Deps,Module", "./...")
	cmd.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, &listError{err, stderr.String()}
	}
	all := map[string]listed{}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
	return all, nil
})

type listError struct {
	err    error
	stderr string
}

func (e *listError) Error() string { return "go list: " + e.err.Error() + "\n" + e.stderr }

func theBuild(t *testing.T) map[string]listed {
	t.Helper()
	all, err := loadBuild()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
