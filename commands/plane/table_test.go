package plane_test

import (
	"encoding/json"
	"strings"
	"testing"

	"berth/commands"
	"berth/commands/commandstest"
	"berth/events/fault"
)

// E1, rules part 3: every command of the table refuses, as not executed and
// without a trace in the log, what is not of its envelope, not of its input, or
// not its caller's to ask. A new row is tested by being in the table.
func TestE1EveryCommandRefusesWhatIsNotItsOwn(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	for _, row := range commands.Table {
		for name, c := range strays(t, row) {
			r := w.Plane.Handle(t.Context(), c.to, []byte(c.body), "")
			if r.OK || r.Error.Code != c.code || r.Error.Outcome != fault.NotExecuted || r.Error.Message == "" {
				t.Errorf("%s, %s: want %s, not executed; it is answered %+v %s", row.Name, name, c.code, r.Error, r.Result)
			}
			if r.Error != nil && !strings.Contains(r.Error.Message, c.names) {
				t.Errorf("%s, %s: %q does not name %s", row.Name, name, r.Error.Message, c.names)
			}
		}
	}
	if tip := w.Tip(); tip != 0 {
		t.Errorf("refusals appended: the tip is %d", tip)
	}
}

// stray is a request that must be refused with a code, naming what is wrong.
type stray struct {
	to    commands.Address
	body  string
	code  fault.Code
	names string
}

// strays are the requests that a command must refuse, by what is wrong.
func strays(t *testing.T, row *commands.Contract) map[string]stray {
	t.Helper()
	good := commandstest.Address(row)
	envelope := func(input string) string { return `{"id":"x","input":` + input + `}` }
	body := envelope(row.Example)
	out := map[string]stray{
		"not JSON":          {good, `hello`, fault.BadRequest, "request"},
		"half a document":   {good, body[:len(body)-1], fault.BadRequest, ""},
		"a list":            {good, `[]`, fault.BadRequest, "request"},
		"an unknown member": {good, `{"id":"x","surprise":1}`, fault.BadRequest, "surprise"},
		"a repeated member": {good, `{"id":"x","id":"y","input":` + row.Example + `}`, fault.BadRequest, "id"},
		"a bad id":          {good, `{"id":"a b","input":` + row.Example + `}`, fault.BadRequest, "id"},
		"too long":          {good, envelope(row.Example[:len(row.Example)-1] + strings.Repeat(" ", commands.MaxRequest) + "}"), fault.BadRequest, "bytes"},
		"a list as input":   {good, envelope(`[]`), fault.BadRequest, "input"},
		"an unknown field":  {good, envelope(with(t, row.Example, "surprise", 1)), fault.BadRequest, "surprise"},
	}
	if row.Kind == commands.Write || row.Kind == commands.Goal {
		if !row.Keyed {
			out["no id"] = stray{good, `{"input":` + row.Example + `}`, fault.BadRequest, "id"}
		}
	} else {
		out["a dry run"] = stray{good, `{"id":"x","dryRun":true,"input":` + row.Example + `}`, fault.BadRequest, "dryRun"}
	}
	properties, _ := row.InputSchema()["properties"].(commands.Schema)
	for field, s := range properties {
		p, _ := s.(commands.Schema)
		var wrong any = true
		if p["type"] == "boolean" {
			wrong = "yes"
		}
		out["a "+field+" of another type"] = stray{good, envelope(with(t, row.Example, field, wrong)), fault.BadRequest, field}
		for what, v := range beyond(p) {
			example := row.Example
			if field == "resumeSource" { // means nothing without the claim that it is of
				example = with(t, example, "resume", strings.Repeat("a", 26))
			}
			out["a "+field+" "+what] = stray{good, envelope(with(t, example, field, v)), fault.BadRequest, field}
		}
	}
	for name, a := range elsewhere(row, good) {
		out[name] = stray{a.to, body, a.code, ""}
	}
	return out
}

// beyond are values just outside the limits that a field's schema declares.
func beyond(p commands.Schema) map[string]any {
	out := map[string]any{}
	if n, ok := p["maxLength"].(int64); ok {
		out["that is too long"] = strings.Repeat("a", int(n)+1)
	}
	if n, ok := p["maximum"].(int64); ok {
		out["that is too large"] = n + 1
	}
	if n, ok := p["minimum"].(int64); ok {
		out["that is too small"] = n - 1
	}
	if p["pattern"] != nil {
		out["of another form"] = "a b\n"
	}
	if p["enum"] != nil {
		out["that is none of those declared"] = "no such value"
	}
	return out
}

// elsewhere are the addresses at which a command must not be served.
func elsewhere(row *commands.Contract, good commands.Address) map[string]stray {
	out := map[string]stray{}
	foreign, other := good, good
	foreign.Caller.Owner = "mallory"
	if foreign.Owner != "" {
		foreign.Owner = "mallory"
	}
	out["a caller of another owner"] = stray{to: foreign, code: fault.PermissionDenied}
	other.Target = "jjjjjjjjjjjjjjjjjjjjjjjjjj"
	out["another instance"] = stray{to: other, code: fault.FailedPrecondition}
	for _, m := range commands.Modes {
		a := good
		a.Mode, a.Owner = m, ""
		if m == commands.ModeOwner || m == commands.ModeAny {
			a.Owner = "mallory"
		}
		c := fault.BadRequest
		for _, has := range row.Modes {
			if m == has {
				c = fault.PermissionDenied
			}
		}
		if c == fault.PermissionDenied && a.Owner == "" {
			continue // its own mode, which names nobody
		}
		out["mode "+string(m)+" about another owner"] = stray{to: a, code: c}
	}
	return out
}

// with is an example with one field set to a value.
func with(t *testing.T, example, field string, value any) string {
	t.Helper()
	doc := map[string]any{}
	if err := json.Unmarshal([]byte(example), &doc); err != nil {
		t.Fatal(err)
	}
	doc[field] = value
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
