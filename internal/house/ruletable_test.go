package house

import (
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/rules-tests.md from the tests")

// lastRule is the number of the last rule of the driver contract.
const lastRule = 92

var (
	ruleRE  = regexp.MustCompile(`\bR(\d{1,2})\b(?:-R?(\d{1,2})\b)?`)
	checkRE = regexp.MustCompile(`\{"([a-z-]+)", "([^"]*R\d[^"]*)", \w+\}`)
	textRE  = regexp.MustCompile(`(?m)^- (R\d{1,2}) (.+)$`)
	rowRE   = regexp.MustCompile(`(?m)^\| (R\d{1,2}) \|[^|]*\| (.*) \|$`)
)

// notYet are the rules about something that this repository does not have, with the
// reason. One that a test cites has no place here.
var notYet = map[int]string{
	48: "the request for a bearer is made by the guest's own program, and whoever answers it is not Berth: the launch request names both halves, the credential and the source, and no part here makes the request",
	50: "Berth answers no request for a bearer: what the answer holds is up to the authority behind the source",
}

// wide is how many rules a range may span to be about each of them: R1-R92 in
// a sentence is about none.
const wide = 12

// rulesIn lists the numbers that a text cites.
func rulesIn(s string) []int {
	var rs []int
	for _, m := range ruleRE.FindAllStringSubmatch(s, -1) {
		from, _ := strconv.Atoi(m[1])
		to := from
		if m[2] != "" {
			to, _ = strconv.Atoi(m[2])
		}
		for r := from; r <= to && to-from < wide; r++ {
			rs = append(rs, r)
		}
	}
	return rs
}

// ruleTests maps every rule to the tests that cite it: checks of the
// conformance suite, and test functions in whose comment or body it stands.
func ruleTests(tr *tree) map[int][]string {
	tests := map[int][]string{}
	add := func(s, name string) {
		for _, r := range rulesIn(s) {
			if !slices.Contains(tests[r], name) {
				tests[r] = append(tests[r], name)
			}
		}
	}
	for _, f := range tr.gos {
		if f.name == "providers/providertest/suite.go" {
			for _, m := range checkRE.FindAllSubmatch(f.src, -1) {
				add(string(m[2]), "conformance: "+string(m[1]))
			}
		}
		if !f.inTest || f.name == "internal/house/ruletable_test.go" {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") && !strings.HasPrefix(fn.Name.Name, "Fuzz") {
				continue
			}
			begin := fn.Pos()
			if fn.Doc != nil {
				begin = fn.Doc.Pos()
			}
			add(string(f.src[tr.fset.Position(begin).Offset:tr.fset.Position(fn.End()).Offset]), strings.TrimPrefix(f.pkg, module+"/")+"."+fn.Name.Name)
		}
	}
	for name, b := range tr.texts {
		if strings.HasPrefix(name, "testscripts/scripts/") {
			add(string(b), "script: "+strings.TrimSuffix(filepath.Base(name), ".txtar"))
		}
	}
	for _, names := range tests {
		slices.Sort(names)
	}
	return tests
}

const ruleTablePage = "docs/rules-tests.md"

// docs/rules-tests.md maps the rules of the driver contract to the tests that
// cite them. It is written anew with -update. What it says must not become
// less than it says: a rule whose last test is gone fails here; a new test does
// not.
func TestRuleTableGenerated(t *testing.T) {
	tr := theTree(t)
	tests := ruleTests(tr)
	if *update {
		if err := os.WriteFile(filepath.Join(tr.root, ruleTablePage), []byte(ruleTable(tr, tests)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	rows := rowRE.FindAllSubmatch(tr.texts[ruleTablePage], -1)
	if len(rows) != lastRule {
		t.Fatalf("%s has %d rows, want %d: run go test ./internal/house -run Generated -update", ruleTablePage, len(rows), lastRule)
	}
	for i, m := range rows {
		if string(m[1]) != fmt.Sprintf("R%d", i+1) {
			t.Errorf("row %d is of %s", i+1, m[1])
		}
		if notYet[i+1] != "" && len(tests[i+1]) > 0 {
			t.Errorf("R%d is listed as shown by nothing, and %s cites it", i+1, tests[i+1])
		}
		if len(tests[i+1]) == 0 && notYet[i+1] == "" {
			t.Errorf("R%d: no test cites it, and nothing says why it can't be shown", i+1)
		}
		if string(m[2]) != noTest && len(tests[i+1]) == 0 {
			t.Errorf("R%d: %s names tests, but none cites it any more", i+1, ruleTablePage)
		}
	}
}

const noTest = "**none**"

func ruleTable(tr *tree, tests map[int][]string) string {
	texts := map[string]string{}
	for _, m := range textRE.FindAllStringSubmatch(string(tr.texts["docs/rules.md"]), -1) {
		texts[m[1]] = strings.ReplaceAll(m[2], "|", `\|`)
	}
	var rows strings.Builder
	var without []string
	for r := 1; r <= lastRule; r++ {
		id := fmt.Sprintf("R%d", r)
		cell := strings.Join(tests[r], ", ")
		if cell == "" {
			cell, without = noTest, append(without, id)
		}
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", id, texts[id], cell)
	}
	said := "Every rule is cited by a test."
	if len(without) > 0 {
		said = fmt.Sprintf("No test cites %s.\n", strings.Join(without, ", "))
	}
	for _, r := range slices.Sorted(maps.Keys(notYet)) {
		said += fmt.Sprintf("\n- R%d is about what is not here: %s.", r, notYet[r])
	}
	return "# The rules of the driver contract, and their tests\n\n" +
		"Generated by `go test ./internal/house -run Generated -update`; not edited by hand. A test is listed if it cites the\n" +
		"rule: that says where to look, not that every word of the rule is shown. `conformance` is the suite in\n" +
		"`providers/providertest`, which runs over every driver, local and through HTTPS.\n\n" + said + "\n\n" +
		"| rule | what it says | tests |\n|---|---|---|\n" + rows.String()
}

// Numbers are found alone and in ranges.
func TestRulesInText(t *testing.T) {
	for s, want := range map[string][]int{
		"(R1, R12)": {1, 12}, "R3-R5": {3, 4, 5}, "R77 R78, scenario 3": {77, 78}, "R76-R84": {76, 77, 78, 79, 80, 81, 82, 83, 84},
		"the rules R1-R92": nil, "HR5 R100 r7": nil,
	} {
		if got := rulesIn(s); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}
