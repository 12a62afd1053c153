package commands

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"berth/events/fault"
)

var update = flag.Bool("update", false, "write the generated documents")

// The generated documents say what the table says.
func TestGeneratedDocuments(t *testing.T) {
	schemas, err := SchemasJSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"commands.md": []byte(Markdown()), "commands.schema.json": append(schemas, '\n')} {
		path := filepath.Join("..", "docs", name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the table says (%v): go test ./commands -run Generated -update", path, err)
		}
	}
}

func compile(t *testing.T, s Schema) *jsonschema.Schema {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", doc); err != nil {
		t.Fatal(err)
	}
	out, err := c.Compile("s.json")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every row is whole: its schemas compile, its example is accepted by the
// schema and by the decoder, and an unknown field by neither.
func TestEveryRowIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Table {
		if seen[c.Name] || c.Doc == "" || c.Capability == "" || len(c.Modes) == 0 || c.Timeout <= 0 || c.Timeout > MaxTimeout {
			t.Errorf("the row of %s is not whole, or there twice", c.Name)
		}
		seen[c.Name] = true
		in := compile(t, c.InputSchema())
		compile(t, c.OutputSchema())
		if err := c.Check(json.RawMessage(c.Example)); err != nil {
			t.Errorf("%s: its example is refused: %v", c.Name, err)
		}
		validate := func(doc string) error {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
			if err != nil {
				t.Fatal(err)
			}
			return in.Validate(v)
		}
		if err := validate(c.Example); err != nil {
			t.Errorf("%s: its example is not of its schema: %v", c.Name, err)
		}
		var doc map[string]any
		if err := json.Unmarshal([]byte(c.Example), &doc); err != nil {
			t.Fatal(err)
		}
		doc["surprise"] = 1
		b, _ := json.Marshal(doc)
		if err := validate(string(b)); err == nil {
			t.Errorf("%s: its schema is open", c.Name)
		}
		err := c.Check(b)
		if f := fault.From(err); f == nil || f.Code != fault.BadRequest || !strings.Contains(f.Message, "surprise") || f.Outcome != fault.NotExecuted {
			t.Errorf("%s: an unknown field is answered %v", c.Name, err)
		}
	}
}

func TestPermissionsNameEveryCommand(t *testing.T) {
	for _, c := range Table {
		if !slices.ContainsFunc(Permissions(), func(p PermissionRow) bool { return p.Command == c.Name && p.Capability == c.Capability }) {
			t.Errorf("%s has no permission row", c.Name)
		}
	}
	if first := Digest(); len(first) != 64 || Digest() != first {
		t.Error("the digest of the contract is not stable")
	}
	if _, err := Find("nothing"); fault.CodeOf(err) != fault.Unimplemented {
		t.Errorf("an unknown command is %v", err)
	}
}
