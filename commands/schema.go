package commands

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SchemaDialect is the JSON Schema version of every schema.
const SchemaDialect = "https://json-schema.org/draft/2020-12/schema"

// Schema is a JSON Schema document.
type Schema map[string]any

// InputSchema is the closed schema of a command's input.
func (c *Contract) InputSchema() Schema { return document(c, "input", c.In, true) }

// OutputSchema is the schema of its result: open, since fields may be added.
func (c *Contract) OutputSchema() Schema { return document(c, "result", c.Out, false) }

func document(c *Contract, what string, t reflect.Type, closed bool) Schema {
	s := schemaOf(t, closed, nil)
	s["$schema"] = SchemaDialect
	s["$id"] = "urn:berth:command:" + c.Name + ":" + what
	s["title"] = c.Name + " " + what
	return s
}

var (
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
)

// schemaOf reflects a type as encoding/json writes it. within guards against
// types that hold themselves: those are any value.
func schemaOf(t reflect.Type, closed bool, within []reflect.Type) Schema {
	for _, w := range within {
		if w == t {
			return Schema{}
		}
	}
	within = append(within, t)
	switch {
	case t == reflect.TypeFor[time.Time]():
		return Schema{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return Schema{}
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem(), closed, within)
	case t.Implements(jsonMarshaler):
		return Schema{}
	case t.Implements(textMarshaler):
		return Schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.String:
		return Schema{"type": "string"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Schema{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Schema{"type": "integer", "minimum": 0}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return Schema{"type": "string", "contentEncoding": "base64"}
		}
		return nullable(Schema{"type": "array", "items": schemaOf(t.Elem(), closed, within)}, closed)
	case reflect.Map:
		return nullable(Schema{"type": "object", "additionalProperties": schemaOf(t.Elem(), closed, within)}, closed)
	case reflect.Struct:
		return structSchema(t, closed, within)
	}
	return Schema{}
}

// nullable admits null in results, where Go writes it for what is empty.
func nullable(s Schema, closed bool) Schema {
	if !closed {
		s["type"] = []any{s["type"], "null"}
	}
	return s
}

func structSchema(t reflect.Type, closed bool, within []reflect.Type) Schema {
	props, required := Schema{}, []any{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "":
				add(f.Type)
				continue
			case name == "-" || !f.IsExported():
				continue
			case name == "":
				name = f.Name
			}
			p := schemaOf(f.Type, closed, within)
			annotate(p, f.Tag)
			if !strings.Contains(options, "omit") {
				required = append(required, name)
				if !closed && f.Type.Kind() == reflect.Pointer && p["type"] != nil {
					p = Schema{"anyOf": []any{p, Schema{"type": "null"}}}
				}
			}
			props[name] = p
		}
	}
	add(t)
	s := Schema{"type": "object", "properties": props, "required": required}
	if closed {
		s["additionalProperties"] = false
	}
	return s
}

// annotate takes the limits and the documentation from a field's tags.
func annotate(s Schema, tag reflect.StructTag) {
	if d := tag.Get("doc"); d != "" {
		s["description"] = d
	}
	if p := tag.Get("pattern"); p != "" {
		s["pattern"] = p
	}
	if e := tag.Get("enum"); e != "" {
		var values []any
		for v := range strings.SplitSeq(e, ",") {
			values = append(values, v)
		}
		s["enum"] = values
	}
	for key, as := range map[string]string{"max": "maximum", "maxItems": "maxItems", "maxLength": "maxLength"} {
		if n, err := strconv.ParseInt(tag.Get(key), 10, 64); err == nil {
			s[as] = n
			if key == "max" {
				s["minimum"] = least(tag)
			}
		}
	}
}

// least is the smallest number that a field takes: zero unless it says so.
func least(tag reflect.StructTag) int64 {
	n, err := strconv.ParseInt(tag.Get("min"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Description is one command in the answer of `describe`.
type Description struct {
	Name       string     `json:"name"`
	Kind       Kind       `json:"kind"`
	Target     Targets    `json:"target"`
	Modes      []Mode     `json:"modes"`
	Capability Capability `json:"capability"`
	TimeoutMs  int64      `json:"timeoutMs"`
	Refusals   []string   `json:"refusals"`
	Doc        string     `json:"doc"`
	Input      Schema     `json:"input"`
	Result     Schema     `json:"result"`
}

// Describe is the row as a document.
func (c *Contract) Describe() Description {
	d := Description{Name: c.Name, Kind: c.Kind, Target: c.Target, Modes: c.Modes, Capability: c.Capability, TimeoutMs: c.Timeout.Milliseconds(),
		Doc: c.Doc, Input: c.InputSchema(), Result: c.OutputSchema()}
	for _, r := range slices.Concat(c.Refusals, CommonRefusals) {
		d.Refusals = append(d.Refusals, string(r))
	}
	return d
}

// Digest is the hex SHA-256 of every description: two programs with the same
// digest speak the same contract.
func Digest() string {
	h := sha256.New()
	for _, c := range Table {
		b, err := json.Marshal(c.Describe())
		if err != nil {
			panic("commands: a description does not marshal: " + err.Error())
		}
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}
