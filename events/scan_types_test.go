package events

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// TestScansAgree holds every fast reader to the library: what one accepts, of
// what is written and of what is damaged, the other reads to the same value;
// and of what is written it accepts a good part, else it would be of no use.
func TestScansAgree(t *testing.T) {
	for name := range scans {
		t.Run(name, func(t *testing.T) {
			r := registry[name]
			if r.scan == nil {
				t.Fatalf("%s is not registered", name)
			}
			zero, err := r.decode([]byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			g, taken := rand.New(rand.NewPCG(11, 13)), 0
			for range 400 {
				v := reflect.New(reflect.TypeOf(zero)).Elem()
				vary(g, v)
				b := mustJSON(t, v.Interface())
				if agree(t, r, b) {
					taken++
				}
				for range 4 {
					agree(t, r, damage(g, b))
				}
			}
			if taken < 10 {
				t.Errorf("the fast reader of %s took %d of 400", name, taken)
			}
		})
	}
}

func agree(t *testing.T, r row, b []byte) bool {
	t.Helper()
	fast, ok := scanEvent(r, b)
	if !ok {
		return false
	}
	slow, err := r.decode(b)
	if err != nil || !reflect.DeepEqual(fast, slow) {
		t.Fatalf("fast %+v\nslow %+v %v\ndata %s", fast, slow, err, b)
	}
	return true
}

// damage changes, drops or doubles one byte.
func damage(g *rand.Rand, b []byte) []byte {
	i := g.IntN(len(b))
	out := append([]byte(nil), b[:i]...)
	switch g.IntN(3) {
	case 0:
		out = append(append(out, `{}[]",:0e-nT\ `[g.IntN(14)]), b[i+1:]...)
	case 1:
		out = append(out, b[i+1:]...)
	default:
		out = append(append(out, b[i]), b[i:]...)
	}
	return out
}

// vary fills a value: mostly what is ordinary, sometimes what is not.
func vary(g *rand.Rand, v reflect.Value) {
	rare := g.IntN(20) == 0
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.UnixMilli(1_700_000_000_000 + g.Int64N(1<<40)).UTC()
		if rare {
			*x = x.In(time.FixedZone("", 3600))
		}
		return
	case *Quantity:
		*x = MustQuantity([]string{"0.25", "1", "16", "0.001"}[g.IntN(4)])
		return
	case *json.RawMessage:
		*x = json.RawMessage([]string{`{"a":[1,{"b":"}"}]}`, `{}`, `{"\u00e9":null}`, `[1]`}[g.IntN(4)])
		return
	case *ExtendLimit:
		x.StepMs = []int64{0, 1, 60_000}[g.IntN(3)]
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			vary(g, v.Field(i))
		}
	case reflect.Pointer:
		if g.IntN(3) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			vary(g, v.Elem())
		}
	case reflect.Slice:
		if n := g.IntN(4); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n-1))
			for i := range n - 1 {
				vary(g, v.Index(i))
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range g.IntN(3) {
			v.SetMapIndex(reflect.ValueOf(words[g.IntN(4)]).Convert(v.Type().Key()), reflect.ValueOf(words[g.IntN(4)]).Convert(v.Type().Elem()))
		}
	case reflect.String:
		v.SetString(words[g.IntN(5)])
		if rare {
			v.SetString(words[g.IntN(len(words))])
		}
	case reflect.Bool:
		v.SetBool(g.IntN(2) == 0)
	case reflect.Uint64:
		v.SetUint(uint64(g.IntN(4)))
	default:
		v.SetInt(g.Int64N(5))
		if rare {
			v.SetInt(-7)
		}
	}
}

var words = []string{"a", "01890a5d-ac96-774b-bcce-000000000000", "abcdefghijklmnopqrstuvwxyz", "", "start", "näh", `"`, `\`, "<&>", "\x7f", "a\tb"}

// TestShared: a string that was seen is given again, whatever was between, or
// made anew; it is never another.
func TestShared(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		want := make([]byte, g.IntN(maxShared+4))
		for i := range want {
			want[i] = "abz0"[g.IntN(4)]
		}
		s := scanner{b: append(append([]byte{'"'}, want...), '"')}
		if got := s.shared(); got != string(want) || s.bad {
			t.Fatalf("%q became %q", want, got)
		}
	}
}
