package house

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// Every package says what it is for, once, where `go doc` shows it.
func TestEveryPackageHasADocComment(t *testing.T) {
	said := map[string]bool{}
	for _, f := range theTree(t).gos {
		if f.inTest {
			continue
		}
		d := f.ast.Doc
		said[f.pkg] = said[f.pkg] || d != nil && strings.TrimSpace(d.Text()) != ""
	}
	for pkg, ok := range said {
		if !ok {
			t.Errorf("package %s has no doc comment", pkg)
		}
	}
}

// Every exported name says what it is. A comment on a group of constants or
// variables speaks for the group.
func TestExportedNamesAreDocumented(t *testing.T) {
	tr := theTree(t)
	for _, f := range tr.gos {
		if f.inTest || f.ast.Name.Name == "main" {
			continue
		}
		for _, d := range f.ast.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: exported %s has no comment", tr.fset.Position(name.Pos()), name.Name)
			}
		}
	}
}

func undocumented(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d) && !conventional[d.Name.Name]) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		return undocumentedSpecs(d)
	}
	return nil
}

func exportedReceiver(d *ast.FuncDecl) bool {
	exported := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.IsExported() {
			exported = true
		}
		return !exported
	})
	return exported
}

func undocumentedSpecs(d *ast.GenDecl) []*ast.Ident {
	var names []*ast.Ident
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && s.Comment == nil && (d.Doc == nil || d.Lparen.IsValid() && d.Tok == token.TYPE) {
				names = append(names, s.Name)
			}
		case *ast.ValueSpec:
			if d.Doc != nil || s.Doc != nil || s.Comment != nil {
				continue
			}
			for _, n := range s.Names {
				if n.IsExported() {
					names = append(names, n)
				}
			}
		}
	}
	return names
}

// A file has one reason to change, and a function fits on a screen or two.
func TestFilesAndFunctionsStayShort(t *testing.T) {
	tr := theTree(t)
	for _, f := range tr.gos {
		limit := maxFileLines
		if f.inTest {
			limit = maxTestFileLines
		}
		if f.lines > limit {
			t.Errorf("%s has %d lines, at most %d: split it by reason", f.name, f.lines, limit)
		}
		if f.inTest {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			if n := tr.fset.Position(fn.End()).Line - tr.fset.Position(fn.Pos()).Line + 1; n > maxFuncLines {
				t.Errorf("%s: %s has %d lines, at most %d", tr.fset.Position(fn.Pos()), fn.Name.Name, n, maxFuncLines)
			}
		}
	}
}

// A test that is skipped says why: what the machine can't do must be visible.
func TestSkipsGiveAReason(t *testing.T) {
	tr := theTree(t)
	for _, f := range tr.gos {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || !f.test || !strings.Contains(" t b f tb ts s ", " "+x.Name+" ") {
				return true
			}
			if sel.Sel.Name == "SkipNow" || (sel.Sel.Name == "Skip" || sel.Sel.Name == "Skipf") && len(call.Args) == 0 {
				t.Errorf("%s: %s.%s without a reason", tr.fset.Position(call.Pos()), x.Name, sel.Sel.Name)
			}
			return true
		})
	}
}
