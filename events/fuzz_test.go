package events

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/events/fault"
)

// Whatever bytes stand under whatever type: they are read, or refused by a
// code, and what was read is written and read again.
func FuzzDecodeEvent(f *testing.F) {
	files, err := filepath.Glob("testdata/frozen/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		var s stored
		if err == nil {
			err = json.Unmarshal(b, &s)
		}
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s.Type, []byte(s.Data))
	}
	f.Add("slot.claimed.v99", []byte(`{}`))
	f.Add("slot.claimed.v01", []byte(`[]`))
	f.Fuzz(func(t *testing.T, typ string, data []byte) {
		e, err := Decode(typ, data)
		if err != nil {
			if c := fault.CodeOf(err); c != fault.UnsupportedVersion && c != fault.Internal {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		again, err := VersionedType(e)
		if err != nil || !strings.HasPrefix(typ, again[:strings.LastIndex(again, ".v")]+".v") {
			t.Fatalf("%s was read as %s: %v", typ, again, err)
		}
		b, err := json.Marshal(e)
		if err != nil {
			return // such as a time beyond the year 9999
		}
		if _, err := Decode(again, b); err != nil {
			t.Fatalf("%s: what was read can't be read again: %v\n%s", typ, err, b)
		}
	})
}

// The small values with a text or a JSON form of their own.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{`0.25`, `"0.25"`, `{"stepMs":1}`, `null`, `false`, strings.Repeat("A", hashText), "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Hash
		if h.UnmarshalText(b) == nil && h.String() != string(b) {
			t.Errorf("hash %q reads as %q", b, h)
		}
		var q Quantity
		if q.UnmarshalText(b) == nil {
			if again, err := ParseQuantity(q.String()); err != nil || again.Cmp(q) != 0 {
				t.Errorf("quantity %q reads as %s, and that as %s: %v", b, q, again, err)
			}
		}
		var l ExtendLimit
		if json.Unmarshal(b, &l) == nil {
			if _, err := json.Marshal(l); err != nil {
				t.Errorf("%q was read and can't be written: %v", b, err)
			}
		}
	})
}

// Every name and id: accepted as it stands and fit for a subject, or refused
// as a bad request.
func FuzzEveryID(f *testing.F) {
	for _, s := range []string{"web", "01890a5d-ac96-774b-bcce-b302099a8057", "abcdefghijklmnopqrstuvwxyz", "a.b", "*", ">", " ", "ä", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		is := func(what, got string, err error) {
			switch {
			case err != nil && fault.CodeOf(err) != fault.BadRequest:
				t.Errorf("%s %q: %v", what, s, err)
			case err == nil && (got != s || s == "" || strings.ContainsAny(s, "*> .\t\r\n\x00/")):
				t.Errorf("%s %q is accepted as %q", what, s, got)
			}
		}
		alias, err := ParseAlias(s)
		is("alias", string(alias), err)
		owner, err := ParseOwner(s)
		is("owner", string(owner), err)
		actor, err := ParseActor(s)
		is("actor", string(actor), err)
		space, err := ParseSpace(s)
		is("space", string(space), err)
		uid, err := ParseUID(s)
		is("uid", string(uid), err)
		instance, err := ParseInstanceID(s)
		is("instance", string(instance), err)
		operation, err := ParseOperationID(s)
		is("operation", string(operation), err)
		command, err := ParseCommandID(s)
		is("command", string(command), err)
		goal, err := ParseGoalID(s)
		is("goal", string(goal), err)
		environment, err := ParseEnvironmentID(s)
		is("environment", string(environment), err)
		event, err := ParseEventID(s)
		is("event", string(event), err)
	})
}
