package house

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var (
	delegatedRowRE = regexp.MustCompile(`(?m)^\| ([HV]\d{1,2}) \|([^|]*)\|([^|]*)\|$`)
	shownRE        = regexp.MustCompile("`([^`]+)`")
)

// docs/delegated.md has a row for each rule of delegated seats and of their
// recovery. What it names as a proof is there, and a rule that nothing shows
// says why.
func TestDelegatedRulesAreAccounted(t *testing.T) {
	tr := theTree(t)
	page := string(tr.texts["docs/delegated.md"])
	rows := map[string][]string{}
	for _, m := range delegatedRowRE.FindAllStringSubmatch(page, -1) {
		rows[m[1]] = append(rows[m[1]], m[2], m[3])
	}
	var all []string
	for i := range 20 {
		all = append(all, fmt.Sprintf("H%d", i+1))
	}
	for i := range 8 {
		all = append(all, fmt.Sprintf("V%d", i+1))
	}
	for _, r := range all {
		row := rows[r]
		if len(row) != 2 || strings.TrimSpace(row[0]+row[1]) == "" {
			t.Errorf("docs/delegated.md: %s needs one row, with what shows it or why nothing does", r)
			continue
		}
		for _, m := range shownRE.FindAllStringSubmatch(row[0], -1) {
			if !proved(tr, m[1]) {
				t.Errorf("docs/delegated.md: %s names %s, which is not there", r, m[1])
			}
		}
	}
}

// proved says that a test, a conformance check or a script of that name is there.
func proved(tr *tree, name string) bool {
	if s, ok := strings.CutPrefix(name, "script: "); ok {
		return tr.texts["testscripts/scripts/"+s+".txtar"] != nil
	}
	check, isCheck := strings.CutPrefix(name, "conformance: ")
	pkg, fn, _ := strings.Cut(name, ".")
	for _, f := range tr.gos {
		switch {
		case isCheck && f.name == "providers/providertest/suite.go" && strings.Contains(string(f.src), `{"`+check+`", `),
			!isCheck && f.inTest && f.pkg == module+"/"+pkg && strings.Contains(string(f.src), "func "+fn+"("):
			return true
		}
	}
	return false
}
