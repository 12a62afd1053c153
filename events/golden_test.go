package events

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestFrozen reads one event of every type and version that was ever released.
// A file is written once, by BERTH_FREEZE=1 go test ./events, when a type or a
// version is new, and never changed after that.
func TestFrozen(t *testing.T) {
	files, err := filepath.Glob("testdata/frozen/*.json")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, f := range files {
		have[strings.TrimSuffix(filepath.Base(f), ".json")] = true
	}
	for _, typ := range Types() {
		if !have[typ] && os.Getenv("BERTH_FREEZE") == "1" {
			freeze(t, typ)
			files = append(files, frozenPath(typ))
		} else if !have[typ] {
			t.Errorf("event type %s has no file in testdata/frozen: run BERTH_FREEZE=1 go test ./events and commit it", typ)
		}
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { thaw(t, f) })
	}
}

func frozenPath(typ string) string { return filepath.Join("testdata", "frozen", typ+".json") }

func freeze(t *testing.T, typ string) {
	name := typ[:strings.LastIndex(typ, ".v")]
	e, err := registry[name].decode([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.New(reflect.TypeOf(e)).Elem()
	populate(v, 1)
	b, err := json.MarshalIndent(stored{Type: typ, Data: mustJSON(t, v.Interface())}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(frozenPath(typ), append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// thaw decodes a file and looks for every member of it in the result.
func thaw(t *testing.T, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	e, err := Decode(s.Type, s.Data)
	if err != nil {
		t.Fatal(err)
	}
	if reflect.TypeOf(e).Kind() == reflect.Pointer {
		t.Fatal("events are decoded by value")
	}
	if empty := emptyField(reflect.ValueOf(e)); empty != "" {
		t.Errorf("field %s of the frozen %s is empty, so it proves nothing about it", empty, s.Type)
	}
	var want, got any
	if err := json.Unmarshal(s.Data, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(mustJSON(t, e), &got); err != nil {
		t.Fatal(err)
	}
	if lost := lostMember("data", want, got); lost != "" {
		t.Errorf("%s of the frozen %s is not kept", lost, s.Type)
	}
	var plain bytes.Buffer // and the fast reader agrees with the standard one
	slow := reflect.New(reflect.TypeOf(e))
	if err := json.Compact(&plain, s.Data); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(plain.Bytes(), slow.Interface()); err != nil {
		t.Fatal(err)
	}
	if fast, err := Decode(s.Type, plain.Bytes()); err != nil || !reflect.DeepEqual(fast, slow.Elem().Interface()) {
		t.Errorf("%s: %+v is not what encoding/json reads: %+v %v", s.Type, fast, slow.Elem(), err)
	}
}

// lostMember is the path of something in want that got does not have.
func lostMember(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return path
		}
		for k, v := range w {
			if lost := lostMember(path+"."+k, v, g[k]); lost != "" {
				return lost
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return path
		}
		for i := range w {
			if lost := lostMember(path+"[]", w[i], g[i]); lost != "" {
				return lost
			}
		}
	default:
		if !reflect.DeepEqual(want, got) {
			return path
		}
	}
	return ""
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// populate sets every field to something that is not zero and, in one event,
// not twice the same.
func populate(v reflect.Value, n int) int {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMilli(1_700_000_000_000 + int64(n)).UTC()))
		return n + 1
	case Quantity:
		v.Set(reflect.ValueOf(MustQuantity("0.25")))
		return n + 1
	case json.RawMessage:
		v.SetBytes([]byte(`{"k":"v"}`))
		return n + 1
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text" + string(rune('a'+n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Uint8:
		v.SetUint(uint64(n % 256))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return populate(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return populate(v.Index(0), n)
	case reflect.Array:
		for i := range v.Len() {
			n = populate(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), reflect.ValueOf("value").Convert(v.Type().Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			n = populate(v.Field(i), n)
		}
	default:
		panic("events: can't populate " + v.Type().String())
	}
	return n + 1
}

// emptyField names a field that is zero; a file frozen before a field was
// added may lack it, if it is marked omitempty.
func emptyField(v reflect.Value) string {
	switch v.Interface().(type) {
	case time.Time, Quantity, ExtendLimit, json.RawMessage:
		return ""
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		return emptyField(v.Elem())
	}
	if v.Kind() != reflect.Struct {
		return ""
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if v.Field(i).IsZero() && !strings.Contains(f.Tag.Get("json"), "omit") {
			return f.Name
		}
		if in := emptyField(v.Field(i)); in != "" {
			return f.Name + "." + in
		}
	}
	return ""
}
