package commands_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"berth/commands"
	"berth/events"
	"berth/projections"
)

// R73: who may only read, as a dashboard does, gets the whole record: inspect is
// a read, and its answer carries the record itself and no excerpt of it.
func TestWhoReadsGetsTheWholeRecord(t *testing.T) {
	inspect, err := commands.Find("inspect")
	if err != nil {
		t.Fatal(err)
	}
	if inspect.Kind != commands.Read || inspect.Capability != commands.CanRead {
		t.Errorf("inspect is a %s with %s", inspect.Kind, inspect.Capability)
	}
	if !carries(inspect.Out, reflect.TypeFor[projections.ManagedEnvironmentRecord](), 4) {
		t.Errorf("%s has no record", inspect.Out)
	}
}

// carries says whether a field of the type is of type want, at most so deep.
func carries(t, want reflect.Type, deep int) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t == want {
		return true
	}
	if t.Kind() != reflect.Struct || deep == 0 {
		return false
	}
	for i := range t.NumField() {
		if carries(t.Field(i).Type, want, deep-1) {
			return true
		}
	}
	return false
}

// R75: the record is derived for readers: no event is one, and the protocol that providers speak knows none.
func TestTheRecordIsOffTheWire(t *testing.T) {
	spec, err := os.ReadFile(filepath.Join("..", "providers", "hosted", "wire", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{projections.RecordVersion, reflect.TypeFor[projections.ManagedEnvironmentRecord]().Name()} {
		if strings.Contains(string(spec), s) {
			t.Errorf("the provider protocol speaks of %s", s)
		}
	}
	record := []byte(`{"providerRef":"a-reference"}`)
	for _, typ := range events.Types() {
		e, err := events.Decode(typ, record)
		if err != nil {
			continue
		}
		if kept, err := json.Marshal(e); err != nil || strings.Contains(string(kept), "a-reference") {
			t.Errorf("%s carries a record: %s %v", typ, kept, err)
		}
	}
}

// R88: options are data for a selection: text by name, that is refused where it looks like a secret, and
// which no refusal repeats.
func TestOptionsHoldSelectionDataOnly(t *testing.T) {
	spawn, err := commands.Find("spawn")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options string
		ok      bool
	}{
		"a choice":        {`{"isolation":"none"}`, true},
		"an object":       {`{"isolation":{"call":"hunter2"}}`, false},
		"a list":          {`{"isolation":["hunter2"]}`, false},
		"a token":         {`{"note":"token=hunter2"}`, false},
		"named a secret":  {`{"api_key":"hunter2"}`, false},
		"a bearer":        {`{"header":"Bearer hunter2"}`, false},
		"a key":           {`{"pem":"-----BEGIN PRIVATE KEY----- hunter2"}`, false},
		"a signed URL":    {`{"seed":"https://h/x?signature=hunter2"}`, false},
		"a user in a URL": {`{"seed":"https://u:hunter2@h/x"}`, false},
	} {
		err := spawn.Check(json.RawMessage(`{"name":"demo","options":` + c.options + `}`))
		if (err == nil) != c.ok || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// R15: the reference of a template is public text: no key, no bearer, no signed URL.
func TestATemplateIsNoSecret(t *testing.T) {
	spawn, err := commands.Find("spawn")
	if err != nil {
		t.Fatal(err)
	}
	for ref, ok := range map[string]bool{
		"agents/base:2026-01": true, "Bearer hunter2": false, "https://h/x?signature=hunter2": false, "https://u:hunter2@h/x": false, "api_key=hunter2": false,
	} {
		err := spawn.Check(json.RawMessage(`{"name":"demo","image":{"kind":"template","reference":"` + ref + `"}}`))
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", ref, err)
		}
	}
}
