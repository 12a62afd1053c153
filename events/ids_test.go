package events

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestNamesAtTheEdge(t *testing.T) {
	long := strings.Repeat("a", MaxName)
	for _, ok := range []string{"a", "A9", "a-b_c", long} {
		if _, err := ParseAlias(ok); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "-a", "a-", "_", "a.b", "a*", "a>", "a b", "ä", long + "a", "chat_x", "a\n"} {
		if _, err := ParseAlias(bad); err == nil {
			t.Errorf("%q is accepted as a name", bad)
		}
	}
	for n, ok := range map[int]bool{25: false, 26: true, 32: true, 33: false} {
		if _, err := ParseUID(strings.Repeat("a", n)); (err == nil) != ok {
			t.Errorf("a uid of %d: %v", n, err)
		}
	}
	for n, ok := range map[int]bool{15: false, 16: true, 64: true, 65: false} {
		if _, err := ParseOperationID(strings.Repeat("a", n)); (err == nil) != ok {
			t.Errorf("an operation id of %d: %v", n, err)
		}
	}
	for _, bad := range []string{"", "01890a5d-ac96-774b-bcce-b302099a805", "01890A5D-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-474b-bcce-b302099a8057", "{01890a5d-ac96-774b-bcce-b302099a8057}"} {
		if _, err := ParseEnvironmentID(bad); err == nil {
			t.Errorf("%q is accepted as an environment id", bad)
		}
	}
}

func FuzzIDs(f *testing.F) {
	f.Add("web")
	f.Add("01890a5d-ac96-774b-bcce-b302099a8057")
	f.Fuzz(func(t *testing.T, s string) {
		if a, err := ParseAlias(s); err == nil {
			b := SeatBoundary("local", a)
			if _, err := ParseBoundary(string(b)); err != nil {
				t.Fatal(err)
			}
			if _, got, ok := b.Seat(); !ok || got != a {
				t.Fatal(got)
			}
		}
		if id, err := ParseEventID(s); err == nil && id.At(0) != id {
			t.Fatal(id)
		}
		EventID(s).At(3)
	})
}

func FuzzParseBoundary(f *testing.F) {
	for _, s := range []string{"seat.local.web", "goal.a.b.c.d", "uid.x", "space.x", "seat.a.b.c", "seat..", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseBoundary(s)
		if err != nil {
			return
		}
		if string(b) != s || strings.ContainsAny(s, "*> \t\r\n") || strings.Contains(s, "..") {
			t.Fatalf("%q is accepted", s)
		}
	})
}

func FuzzParseQuantity(f *testing.F) {
	for _, s := range []string{"0", "0.25", "1e3", "-0", "-1", "NaN", "Inf", "999999999999999999.999999999", "0.0000000001", "1e-9", "1e400", " 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := ParseQuantity(s)
		if err != nil {
			return
		}
		again, err := ParseQuantity(q.String())
		if err != nil || again != q {
			t.Fatalf("%q became %s, which reads as %s: %v", s, q, again, err)
		}
		b, err := json.Marshal(q)
		var back Quantity
		if err != nil || json.Unmarshal(b, &back) != nil || back != q {
			t.Fatalf("%s does not survive JSON: %s", q, b)
		}
		if sum := q.Add(q); sum.Cmp(q) < 0 {
			t.Fatalf("%s + %s = %s", q, q, sum)
		}
	})
}
