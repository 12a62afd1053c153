package commands

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"

	"berth/events"
)

// The vectors of RFC 8785: numbers by their IEEE 754 bits (appendix B), the
// document of 3.2.2 and 3.2.4, and the order of keys by UTF-16 (3.2.3).
func TestCanonicalFormIsThatOfRFC8785(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0", 0x8000000000000000: "0", 0x0000000000000001: "5e-324", 0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308", 0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992", 0xc340000000000000: "-9007199254740992", 0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22", 0x44b52d02c7e14af6: "1e+23", 0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000", 0x444b1ae4d6e2ef4f: "999999999999999900000", 0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7", 0x3eb0c6f7a0b5ed8d: "0.000001", 0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325", 0x41b3de4355555555: "333333333.3333333", 0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343", 0xbecbf647612f3696: "-0.0000033333333333333333", 0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		f := math.Float64frombits(bits)
		if got, err := jcs.Transform([]byte(strconv.FormatFloat(f, 'e', 20, 64))); err != nil || string(got) != want {
			t.Errorf("%016x is %s, %v; want %s", bits, got, err, want)
		}
	}
	const document = `{
       "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
       "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
       "literals": [null, true, false]
     }`
	got, err := jcs.Transform([]byte(document))
	want, _ := hex.DecodeString(strings.Join(strings.Fields(`
		7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72 75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75
		6d 62 65 72 73 22 3a 5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31 65 2b 33 30 2c 34
		2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37 5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30
		30 30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d`), ""))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the document of the RFC: %s, %v; want %s", got, err, want)
	}
	keys := `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`
	got, err = jcs.Transform([]byte(keys))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, value := range []string{"Carriage Return", "One", "Control", "Latin Small Letter O With Diaeresis", "Euro Sign", "Emoji: Grinning Face", "Hebrew Letter Dalet With Dagesh"} {
		next := strings.Index(string(got), value)
		if next < at {
			t.Errorf("%s is not in the order of UTF-16: %s", value, got)
		}
		at = next
	}
}

// Another library that follows the RFC writes the same of documents of every
// shape, and both refuse what has no canonical form.
func TestTwoLibrariesWriteTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(8785, 1))
	for range 5000 {
		doc := someJSON(r, 0)
		mine, err := jcs.Transform(doc)
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		other := jsontext.Value(bytes.Clone(doc))
		if err := other.Canonicalize(); err != nil || !bytes.Equal(mine, other) {
			t.Fatalf("%s: %s, and by the other %s, %v", doc, mine, other, err)
		}
		if again, err := jcs.Transform(mine); err != nil || !bytes.Equal(again, mine) {
			t.Fatalf("%s is not its own canonical form: %s, %v", mine, again, err)
		}
	}
	for _, bad := range []string{`{"a":1,"a":2}`, `"\ud800"`, `"\udc00x"`, `[1,]`, `{"a"}`, "\"\xff\"", ``, `01`, `NaN`} {
		_, err := jcs.Transform([]byte(bad))
		other := jsontext.Value(bad)
		if otherErr := other.Canonicalize(); err == nil || otherErr == nil {
			t.Errorf("%q: %v, and by the other %v", bad, err, otherErr)
		}
	}
}

// someJSON is a random document: numbers by any bits, texts with every kind of
// character and escape, keys in any order.
func someJSON(r *rand.Rand, depth int) []byte {
	kind := r.IntN(6)
	if depth > 3 {
		kind %= 4
	}
	switch kind {
	case 0:
		return []byte([]string{"null", "true", "false"}[r.IntN(3)])
	case 1:
		for {
			if f := math.Float64frombits(r.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
				return strconv.AppendFloat(nil, f, 'g', -1, 64)
			}
		}
	case 2:
		return strconv.AppendInt(nil, r.Int64N(1<<53)-1<<52, 10)
	case 3:
		return someText(r)
	case 4:
		out := []byte("[ ")
		for i := range r.IntN(4) {
			if i > 0 {
				out = append(out, " ,"...)
			}
			out = append(out, someJSON(r, depth+1)...)
		}
		return append(out, " ]"...)
	}
	out, seen := []byte("{"), map[string]bool{}
	for range r.IntN(6) {
		key := someText(r)
		var k string
		if json.Unmarshal(key, &k) != nil || seen[k] {
			continue
		}
		if len(seen) > 0 {
			out = append(out, ",\n"...)
		}
		seen[k] = true
		out = append(append(append(out, key...), ':'), someJSON(r, depth+1)...)
	}
	return append(out, '}')
}

func someText(r *rand.Rand) []byte {
	out := []byte{'"'}
	for range r.IntN(5) {
		c := []rune{'a', '"', '\\', '/', '<', '&', 0x07, '\n', 0x7f, 0x80, 'ö', '€', 0x2028, 0xfb33, 0xffff, '😀', 0x10ffff}[r.IntN(17)]
		switch {
		case c > 0xffff && r.IntN(3) == 0:
			high, low := utf16.EncodeRune(c)
			out = append(append(out, escape(high)...), escape(low)...)
		case c < 0x20, c == '"', c == '\\', c <= 0xffff && r.IntN(3) == 0:
			out = append(out, escape(c)...)
		default:
			out = append(out, string(c)...)
		}
	}
	return append(out, '"')
}

func escape(c rune) string { return fmt.Sprintf(`\u%04x`, c) }

// The fingerprint of a request is for ever: one that is stored must be found
// again by every later program.
func TestAFingerprintIsForEver(t *testing.T) {
	a := Address{Target: Any, Command: "spawn", Mode: ModeOwner, Owner: "local", Caller: events.Caller{Owner: "local", Actor: "me", UID: "cccccccccccccccccccccccccc"}}
	in := SpawnInput{Name: "demo", TTL: "1h", CPUs: "0.25", Command: []string{"sh", "-c", "echo '<ö€😀>' & \u2028 \t \"x\" \\"}, Options: map[string]string{"\U0001F600": "1", "\ufb33": "2", "a": "/"}}
	got, err := Fingerprint(a, "g-1", in)
	if want := "e63df57d5be18ab95d8c59aabec03b5a70eb9a92071514fb4b7857514bfeada7"; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// Canonical numbers are doubles, so that whole numbers above 2^53 are written
// alike. No field of a command that has a fingerprint goes so far.
func TestNoFingerprintRounds(t *testing.T) {
	var look func(path string, s Schema)
	look = func(path string, s Schema) {
		props, _ := s["properties"].(Schema)
		for name, p := range props {
			field, _ := p.(Schema)
			at := path + "." + name
			if field["type"] == "integer" || field["type"] == "number" {
				if most, ok := field["maximum"].(int64); !ok || most > 1<<53-1 {
					t.Errorf("%s has no limit that a double holds", at)
				}
			}
			look(at, field)
			if items, ok := field["items"].(Schema); ok {
				look(at, items)
			}
		}
	}
	for _, c := range Table {
		if c.Kind == Write || c.Kind == Goal {
			look(c.Name, c.InputSchema())
		}
	}
}
