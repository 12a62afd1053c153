package drill

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"berth/events/fault"
)

func TestScriptRefusesWhatItCannotMean(t *testing.T) {
	for name, c := range map[string]struct{ script, says string }{
		"not JSON":             {`{`, "EOF"},
		"something after":      {`{"rules":[]} {}`, "follows"},
		"unknown field":        {`{"rules":[{"verb":"start","fault":"refuse","when":3}]}`, "when"},
		"unknown top field":    {`{"rule":[]}`, "rule"},
		"no verb":              {`[{"fault":"refuse"}]`, "rule 1: verb is missing"},
		"unknown verb":         {`[{"verb":"fly","fault":"refuse"}]`, `unknown verb "fly"`},
		"no fault":             {`[{"verb":"start"}]`, "fault is missing"},
		"unknown fault":        {`[{"verb":"start","fault":"explode"}]`, `unknown fault "explode"`},
		"second rule":          {`[{"verb":"start","fault":"refuse"},{"verb":"start","fault":"explode"}]`, "rule 2"},
		"fault of other verbs": {`[{"verb":"start","fault":"list-empty"}]`, "no meaning for verb start"},
		"nth and times":        {`[{"verb":"start","fault":"refuse","nth":1,"times":2}]`, "exclude each other"},
		"negative nth":         {`[{"verb":"start","fault":"refuse","nth":-1}]`, "count from 1"},
		"nth over the edge":    {`[{"verb":"start","fault":"refuse","nth":1000000001}]`, "count from 1"},
		"negative delay":       {`[{"verb":"start","fault":"never-answer","delayMs":-1}]`, "negative"},
		"delay over the edge":  {`[{"verb":"start","fault":"never-answer","delayMs":86400001}]`, "more than a day"},
		"late without delay":   {`[{"verb":"start","fault":"accept-then-late-answer"}]`, "needs delayMs"},
		"refuse with delay":    {`[{"verb":"start","fault":"refuse","delayMs":1}]`, "takes no delayMs"},
		"code without use":     {`[{"verb":"start","fault":"vanish","code":"internal"}]`, "takes no code"},
		"unknown code":         {`[{"verb":"start","fault":"refuse","code":"oops"}]`, `unknown code "oops"`},
		"broken glob":          {`[{"verb":"start","alias":"[a","fault":"refuse"}]`, "glob"},
		"secret in a verb":     {`[{"verb":"token=hunter2hunter2","fault":"refuse"}]`, "[redacted]"},
	} {
		_, err := ParseScript([]byte(c.script))
		if fault.CodeOf(err) != fault.BadRequest || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want bad-request that says %q", name, err, c.says)
		}
	}
}

func TestScriptAccepts(t *testing.T) {
	for _, s := range []string{
		`{"rules":[]}`, `{}`, `[]`,
		`[{"verb":"*","alias":"web-*","times":1000000000,"fault":"never-answer","delayMs":86400000}]`,
		`[{"verb":"inspect","nth":1,"fault":"clock-offset","delayMs":-86400000}]`,
		`[{"verb":"start","fault":"refuse","code":"unavailable"}]`,
	} {
		if _, err := ParseScript([]byte(s)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	object, err1 := ParseScript([]byte(`{"rules":[{"verb":"start","fault":"refuse"}]}`))
	list, err2 := ParseScript([]byte(` [{"verb":"start","fault":"refuse"}]`))
	if err1 != nil || err2 != nil || !reflect.DeepEqual(object, list) {
		t.Errorf("a bare list is another script: %v %v %v %v", object, list, err1, err2)
	}
}

func TestScriptLimits(t *testing.T) {
	rule := Rule{Verb: "start", Fault: Refuse}
	at := Script{Rules: make([]Rule, MaxRules)}
	for i := range at.Rules {
		at.Rules[i] = rule
	}
	if err := at.Check(); err != nil {
		t.Errorf("%d rules: %v", MaxRules, err)
	}
	at.Rules = append(at.Rules, rule)
	if err := at.Check(); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("%d rules: %v", MaxRules+1, err)
	}
	if _, err := ParseScript(make([]byte, MaxScriptBytes+1)); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("a script over the limit: %v", err)
	}
}

// TestEveryFaultHasARow keeps the table, the list and the documentation of the
// faults together.
func TestEveryFaultHasARow(t *testing.T) {
	if len(faults) != len(Faults) {
		t.Errorf("%d faults in the list, %d in the table", len(Faults), len(faults))
	}
	for _, f := range Faults {
		k, ok := faults[f]
		if !ok {
			t.Errorf("fault %s has no row", f)
		}
		r := Rule{Verb: AnyVerb, Fault: f}
		if k.needsDelay {
			r.DelayMs = 1
		}
		if why := r.refusal(); why != "" {
			t.Errorf("the plainest rule of %s is refused: %s", f, why)
		}
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add([]byte(`{"rules":[{"verb":"start","alias":"a*","nth":1,"fault":"refuse","code":"unavailable"}]}`))
	f.Add([]byte(`[{"verb":"*","fault":"clock-offset","delayMs":-5}]`))
	f.Add([]byte(`{"rules":[{"verb":"start","alias":"[","fault":"refuse"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := ParseScript(raw)
		if err != nil {
			if fault.CodeOf(err) != fault.BadRequest {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		// What was accepted is accepted again, and means the same.
		out, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseScript(out)
		if err != nil || len(again.Rules) != len(s.Rules) {
			t.Fatalf("%s: %v", out, err)
		}
	})
}

// TestDocumentation: every fault and verb is in the user's page, and every
// script in it is accepted.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/drill.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Faults {
		if !strings.Contains(string(page), "`"+string(f)+"`") {
			t.Errorf("fault %s is not documented", f)
		}
	}
	for _, v := range Verbs {
		if !strings.Contains(string(page), "`"+string(v)+"`") {
			t.Errorf("verb %s is not documented", v)
		}
	}
	scripts := 0
	for _, part := range strings.Split(string(page), "```json\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		if !strings.HasPrefix(block, `{"rules"`) {
			continue
		}
		scripts++
		if _, err := ParseScript([]byte(block)); err != nil {
			t.Errorf("%v in\n%s", err, block)
		}
	}
	if scripts != 2 {
		t.Errorf("%d scripts", scripts)
	}
}
