package events

import (
	"bytes"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestWritesAgree holds the fast writer to the library, byte for byte, for every
// type that it takes; it takes a good part of each, and what it begins with stays
// as it is.
func TestWritesAgree(t *testing.T) {
	types := 0
	for name, r := range registry {
		h := fnv.New64a()
		h.Write([]byte(name))
		g := rand.New(rand.NewPCG(17, h.Sum64())) // its own, as types come in any order
		zero, err := r.decode([]byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := writeEvent(nil, zero); !ok {
			continue
		}
		types++
		taken := 0
		for range 800 {
			v := reflect.New(reflect.TypeOf(zero)).Elem()
			vary(g, v)
			e := v.Interface().(Event)
			if got, ok := writeEvent([]byte("before"), e); ok {
				taken++
				if want := mustJSON(t, e); !bytes.Equal(got, append([]byte("before"), want...)) {
					t.Fatalf("%s: fast %s\nslow %s", name, got, want)
				}
			}
		}
		if taken < 60 {
			t.Errorf("the fast writer of %s took %d of 800", name, taken)
		}
	}
	if types < 20 {
		t.Errorf("the fast writer takes %d types", types)
	}
}

// A time that JSON has no word for is left to the library, which refuses it.
func TestWritesNoImpossibleTime(t *testing.T) {
	e := OperationDispatched{Deadline: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}
	if _, ok := writeEvent(nil, e); ok {
		t.Error("the year 10000 was written")
	}
	if _, _, err := Encode(Commit{Events: []Event{e}}, Hash{}, nil); err == nil {
		t.Error("the year 10000 was encoded")
	}
}

// What is checked by hand for each commit agrees with the library and with the
// grammar that it stands for.
func TestChecksByHandAgree(t *testing.T) {
	g := rand.New(rand.NewPCG(23, 29))
	const hex = "0123456789abcdefA-Z7_ ."
	for range 50_000 {
		b := []byte(testID)
		for range g.IntN(4) {
			b[g.IntN(len(b))] = hex[g.IntN(len(hex))]
		}
		s := string(b[:len(b)-g.IntN(2)*g.IntN(3)])
		u, err := uuid.Parse(s)
		if want := err == nil && u.Version() == 7 && u.String() == s; isUUIDv7(s) != want {
			t.Fatalf("%q is a UUID version 7: %v", s, !want)
		}
		if isToken(s) != tokenRE.MatchString(s) {
			t.Fatalf("%q is a token: %v", s, isToken(s))
		}
	}
	for _, s := range []string{"", "a", string(make([]byte, 64)), string(bytes.Repeat([]byte("a"), 64)), string(bytes.Repeat([]byte("a"), 65)), "ä", "a\n"} {
		if isToken(s) != tokenRE.MatchString(s) {
			t.Errorf("%q is a token: %v", s, isToken(s))
		}
	}
}
