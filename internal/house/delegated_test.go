package house

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var (
	delegatedRowRE = regexp.MustCompile(`(?m)^\| ([HVD]\d{1,2}) \|([^|]*)\|([^|]*)\|$`)
	shownRE        = regexp.MustCompile("`([^`]+)`")
)

// The pages of delegated seats, of their recovery and of delegated intents have a
// row for each rule. What it names as a proof is there, and a rule that nothing
// shows says why.
func TestDelegatedRulesAreAccounted(t *testing.T) {
	tr := theTree(t)
	for _, p := range []struct {
		page, letter string
		most         int
	}{{"docs/delegated.md", "H", 20}, {"docs/delegated.md", "V", 8}, {"docs/intents.md", "D", 20}} {
		rows := map[string][]string{}
		for _, m := range delegatedRowRE.FindAllStringSubmatch(string(tr.texts[p.page]), -1) {
			rows[m[1]] = append(rows[m[1]], m[2], m[3])
		}
		for n := range p.most {
			r := fmt.Sprintf("%s%d", p.letter, n+1)
			row := rows[r]
			if len(row) != 2 || strings.TrimSpace(row[0]+row[1]) == "" {
				t.Errorf("%s: %s needs one row, with what shows it or why nothing does", p.page, r)
				continue
			}
			for _, m := range shownRE.FindAllStringSubmatch(row[0], -1) {
				if !proved(tr, m[1]) {
					t.Errorf("%s: %s names %s, which is not there", p.page, r, m[1])
				}
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
