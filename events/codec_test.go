package events

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/events/fault"
)

var testID = EventID("01890a5d-ac96-774b-bcce-b30209900000")

func testCommit() Commit {
	at := time.UnixMilli(1_700_000_000_123).UTC()
	return Commit{
		Boundary: SeatBoundary("local", "web"), Expect: 41,
		Meta: Meta{ID: testID, Time: at, Caller: Caller{"local", "web", "abcdefghijklmnopqrstuvwxyz"},
			Writer: Writer{"abcdefghijklmnopqrstuvwxyz", 7}, Command: "c-1", Fingerprint: "f", Operation: "op-0123456789abcdef", Trace: "00-a-b-01"},
		Events: []Event{
			OperationDispatched{Environment: "e", Operation: "op-0123456789abcdef", Verb: VerbStart, Deadline: at},
			OperationConfirmed{Environment: "e", Operation: "op-0123456789abcdef", Facts: Facts{State: StateRunning, ObservedAt: at}},
		},
	}
}

func TestEncodeParse(t *testing.T) {
	c := testCommit()
	prior := Hash{1, 2, 3}
	batch := &Batch{ID: "b", Index: 1, Count: 2, Boundaries: []Boundary{"uid.a", c.Boundary}}
	for _, b := range []*Batch{nil, batch} {
		body, h, err := Encode(c, prior, b)
		if err != nil {
			t.Fatal(err)
		}
		r := ParseRecord(c.Boundary, 42, body)
		want := Record{Sequence: 42, Previous: 41, Boundary: c.Boundary, Meta: c.Meta, Events: c.Events, Prior: prior, Hash: h, Batch: b}
		if !reflect.DeepEqual(r, want) {
			t.Fatalf("\n%+v\nis not\n%+v", r, want)
		}
		if moved := ParseRecord("seat.local.other", 42, body); moved.Broken == nil {
			t.Error("a commit moved to another boundary reads as if it belonged there")
		}
	}
}

// TestScannerAgreesWithJSON holds the hand-written reader of the envelope to
// encoding/json, on what Encode writes and on damaged copies of it.
func TestScannerAgreesWithJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9_.-]{0,20}`), rapid.String())
		c := testCommit()
		c.Expect = rapid.Uint64().Draw(t, "expect")
		c.Meta.Time = time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "time")).UTC()
		c.Meta.Command = CommandID(text.Draw(t, "command"))
		c.Meta.Fingerprint, c.Meta.Trace = text.Draw(t, "fingerprint"), text.Draw(t, "trace")
		c.Meta.Caller.Actor = Actor(text.Draw(t, "actor"))
		c.Meta.Writer.Epoch = rapid.Uint64().Draw(t, "epoch")
		c.Events = append(c.Events, OperationExcluded{Evidence: text.Draw(t, "evidence")}, SlotTerminalizing{Reason: text.Draw(t, "reason")})
		var prior Hash
		copy(prior[:], rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "prior"))
		body, _, err := Encode(c, prior, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(body) {
			t.Fatalf("not JSON: %s", body)
		}
		if rapid.Bool().Draw(t, "damage") {
			i := rapid.IntRange(0, len(body)-1).Draw(t, "at")
			body[i] = rapid.Byte().Draw(t, "byte")
		}
		checkScan(t, body)
	})
}

type fataler interface{ Fatalf(string, ...any) }

// checkScan compares the two readers, where the fast one accepts.
func checkScan(t fataler, body []byte) {
	fast, ok := scanEnvelope(body)
	if !ok {
		return
	}
	var slow envelope
	if err := json.Unmarshal(body, &slow); err != nil {
		for _, e := range fast.Events { // data is judged by its own reader
			if !json.Valid(e.Data) {
				return
			}
		}
		t.Fatalf("the scanner accepts what encoding/json refuses (%v): %s", err, body)
	}
	if !reflect.DeepEqual(fast, slow) {
		t.Fatalf("scanner %+v\njson    %+v\nbody    %s", fast, slow, body)
	}
}

func TestScannerTakesWhatIsWritten(t *testing.T) {
	body, _, err := Encode(testCommit(), Hash{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := scanEnvelope(body); !ok {
		t.Fatalf("the fast reader does not take %s", body)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for typ, code := range map[string]fault.Code{
		"slot.claimed": fault.UnsupportedVersion, "slot.claimed.v2": fault.UnsupportedVersion, "slot.claimed.v0": fault.UnsupportedVersion,
		"slot.claimed.v01": fault.UnsupportedVersion, "slot.claimed.vx": fault.UnsupportedVersion, "slot.dreamt.v1": fault.UnsupportedVersion, "": fault.UnsupportedVersion,
	} {
		if _, err := Decode(typ, []byte("{}")); fault.CodeOf(err) != code {
			t.Errorf("%q: %v", typ, err)
		}
	}
	for _, data := range []string{"", "null", "[]", "7", "{", `{"uid":7}`, `{"uid":"a"}x`} {
		if _, err := Decode("slot.activated.v1", []byte(data)); fault.CodeOf(err) != fault.Internal {
			t.Errorf("%q: %v", data, err)
		}
	}
	if _, err := Decode("slot.activated.v1", []byte(`{"uid":"a","later":{"x":1}}`)); err != nil {
		t.Errorf("a member that is not known must be ignored: %v", err)
	}
}

func TestUpcast(t *testing.T) {
	old := row{name: TypeSlotRetired, version: 3, decode: registry[TypeSlotRetired].decode, older: []upcast{
		func(b []byte) ([]byte, error) {
			return []byte(strings.Replace(string(b), "lifecycle", "lifecycleUid", 1)), nil
		},
		func(b []byte) ([]byte, error) {
			return []byte(strings.Replace(string(b), "lifecycleUid", "uid", 1)), nil
		},
	}}
	table := index(old)
	for version, data := range map[string]string{"1": `{"lifecycle":"a"}`, "2": `{"lifecycleUid":"a"}`, "3": `{"uid":"a"}`} {
		e, err := decodeWith(table, TypeSlotRetired+".v"+version, []byte(data))
		if err != nil || e != (SlotRetired{UID: "a"}) {
			t.Errorf("version %s: %+v %v", version, e, err)
		}
	}
	if _, err := decodeWith(table, TypeSlotRetired+".v4", []byte("{}")); fault.CodeOf(err) != fault.UnsupportedVersion {
		t.Error(err)
	}
}

func TestEventIDAt(t *testing.T) {
	seen := map[EventID]bool{}
	for i := range 64 {
		id := testID.At(i)
		if _, err := ParseEventID(string(id)); err != nil || seen[id] {
			t.Fatalf("event %d has id %s: %v", i, id, err)
		}
		seen[id] = true
	}
	if got := EventID("01890a5d-ac96-774b-bcce-00000000ffff").At(1); got != "01890a5d-ac96-774b-bcce-000000010000" {
		t.Fatal(got)
	}
}

func TestChainNext(t *testing.T) {
	a, b := ChainNext(Hash{}, 1, Hash{1}), ChainNext(Hash{}, 2, Hash{1})
	if a == b || a == ChainNext(Hash{}, 1, Hash{2}) || a == ChainNext(Hash{9}, 1, Hash{1}) {
		t.Fatal("the chain does not depend on all of its inputs")
	}
}

func BenchmarkParseRecord(b *testing.B) {
	body, _, err := Encode(testCommit(), Hash{1}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if r := ParseRecord("seat.local.web", 42, body); r.Broken != nil {
			b.Fatal(r.Broken)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	body, _, err := Encode(testCommit(), Hash{1}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"v":1,"events":[{"type":"slot.retired.v1","data":{}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		checkScan(t, body)
		r := ParseRecord("seat.local.web", 42, body)
		if (r.Broken == nil) != (len(r.Events) > 0) && r.Broken == nil {
			t.Fatalf("%+v", r)
		}
		if r.Broken != nil && !IsBroken(r.Broken) {
			t.Fatal(r.Broken)
		}
	})
}
