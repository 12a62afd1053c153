package commands

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Markdown is docs/commands.md: the whole contract for people.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Commands\n\nGenerated from the contract table (`go test ./commands -run Generated -update`); do not edit.\n\n")
	b.WriteString("A request is one message to\n\n    berth.<space>.cmd.<any|instance>.<command>.<mode>.<target owner|_>.<owner>.<actor>.<uid>\n\n")
	b.WriteString("with a JSON object: `id` (of the request; a repeated id gets the same answer), `input`, and optionally `minSequence`, `timeoutMs` and `dryRun`. ")
	b.WriteString("The answer is `{\"ok\":true,\"result\":...}`, or `{\"ok\":false,\"error\":...}` with a code, a message and an outcome: `executed`, `not-executed` or `unknown`. ")
	b.WriteString("Inputs are closed: an unknown field is refused by name.\n\n")
	b.WriteString("| command | kind | target | modes | capability | |\n|---|---|---|---|---|---|\n")
	for _, c := range Table {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s | `%s` | %s |\n", c.Name, c.Name, c.Kind, c.Target, modesOf(c), c.Capability, c.Doc)
	}
	b.WriteString("\nEvery command may be refused with: " + codes(CommonRefusals) + ".\n")
	for _, c := range Table {
		section(&b, c)
	}
	return b.String()
}

func modesOf(c *Contract) string {
	var m []string
	for _, x := range c.Modes {
		m = append(m, string(x))
	}
	return strings.Join(m, ", ")
}

func codes[T ~string](l []T) string {
	var out []string
	for _, c := range l {
		out = append(out, "`"+string(c)+"`")
	}
	return strings.Join(out, ", ")
}

func section(b *strings.Builder, c *Contract) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\nDeadline %s.", c.Name, c.Doc, c.Timeout)
	if len(c.Refusals) > 0 {
		fmt.Fprintf(b, " Refused also with %s.", codes(c.Refusals))
	}
	b.WriteString("\n")
	rows(b, "input", c.InputSchema())
	rows(b, "result", c.OutputSchema())
	fmt.Fprintf(b, "\nExample of an input: `%s`\n", c.Example)
}

func rows(b *strings.Builder, what string, s Schema) {
	props, _ := s["properties"].(Schema)
	if len(props) == 0 {
		fmt.Fprintf(b, "\nThe %s has no fields.\n", what)
		return
	}
	required, _ := s["required"].([]any)
	fmt.Fprintf(b, "\n| %s | type | | |\n|---|---|---|---|\n", what)
	var names []string
	for n := range props {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		p, _ := props[n].(Schema)
		need := ""
		if slices.Contains(required, any(n)) && what == "input" {
			need = "required"
		}
		doc, _ := p["description"].(string)
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", n, typeOf(p), need, doc)
	}
}

func typeOf(p Schema) string {
	switch t := p["type"].(type) {
	case string:
		return t
	case []any:
		return fmt.Sprint(t[0])
	}
	if p["anyOf"] != nil {
		return "object or null"
	}
	return "any"
}

// PermissionRow is what a credential with a capability may publish, for the
// authority's tables: the tokens of the subject after berth.<space>.cmd.,
// with the caller's own triple to be filled in.
type PermissionRow struct {
	Capability Capability `json:"capability"`
	Command    string     `json:"command"`
	Mode       Mode       `json:"mode"`
	Subject    string     `json:"subject"` // after berth.<space>.cmd.
}

// Permissions lists every row that the table implies.
func Permissions() []PermissionRow {
	var out []PermissionRow
	for _, c := range Table {
		for _, m := range c.Modes {
			owner := noOwner
			switch m {
			case ModeOwner:
				owner = "<owner>"
			case ModeAny:
				owner = "*"
			}
			out = append(out, PermissionRow{c.Capability, c.Name, m, "*." + c.Name + "." + string(m) + "." + owner + ".<owner>.<actor>.<uid>"})
		}
	}
	return out
}

// SchemasJSON is docs/commands.schema.json: the closed schema of every input
// and the permission rows. `describe` serves those of results too.
func SchemasJSON() ([]byte, error) {
	inputs := map[string]Schema{}
	for _, c := range Table {
		inputs[c.Name] = c.InputSchema()
	}
	return json.MarshalIndent(map[string]any{"$comment": "generated from the contract table of package commands", "inputs": inputs, "permissions": Permissions()}, "", " ")
}
