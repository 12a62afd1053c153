package verify_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"berth/events"
	"berth/events/eventlog/checkpoint"
	"berth/events/eventlog/logtest"
	"berth/events/eventlog/memory"
	"berth/events/eventlog/verify"
)

const instance = events.InstanceID("abcdefghijklmnopqrstuvwxyz")

// signedLog has an instance, some seats, and a signed checkpoint at its end.
func signedLog(t *testing.T) (*memory.Log, nkeys.KeyPair) {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	l := memory.New()
	last := map[events.Boundary]uint64{}
	n := 0
	commit := func(b events.Boundary, e ...events.Event) {
		n++
		c := logtest.Commit(n, b, last[b])
		if len(e) > 0 {
			c.Events = e
		}
		r, err := l.Commit(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		last[b] = r.Sequence
	}
	home := events.InstanceBoundary(instance)
	commit(home, events.InstanceRegistered{Instance: instance, Epoch: 1, PublicKey: public})
	for i := range 6 {
		commit(events.SeatBoundary("local", events.Alias("s"+string(rune('0'+i%2)))))
	}
	var tr checkpoint.Tracker
	if err := l.Scan(t.Context(), 0, tr.Add); err != nil {
		t.Fatal(err)
	}
	signed, err := verify.Sign(key, instance, tr.Sequence, tr.Chain)
	if err != nil {
		t.Fatal(err)
	}
	commit(events.SeatBoundary("local", "s0")) // between the signing and its commit
	commit(home, signed)
	return l, key
}

// copyLog copies a log, with a change to each body; nil leaves it out.
func copyLog(t *testing.T, l *memory.Log, change func(seq uint64, b events.Boundary, body []byte) []byte) *memory.Log {
	t.Helper()
	out := memory.New()
	err := l.Scan(t.Context(), 0, func(r events.Record) error {
		if body := change(r.Sequence, r.Boundary, l.Body(r.Sequence)); body != nil {
			out.AppendRaw(r.Boundary, body)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestVerifies(t *testing.T) {
	l, key := signedLog(t)
	public, _ := key.PublicKey()
	for _, o := range []verify.Options{{}, {Trusted: map[events.InstanceID]string{instance: public}}} {
		r, err := verify.Log(t.Context(), l, o)
		if err != nil || !r.OK() || r.Tip != 9 || r.Boundaries != 3 || r.Events != 9 || r.Signatures != 1 || r.Signed != 7 {
			t.Fatalf("%+v %v", r, err)
		}
	}
}

func TestFindsTampering(t *testing.T) {
	l, _ := signedLog(t)
	replace := func(at uint64, seal bool) func(uint64, events.Boundary, []byte) []byte {
		return func(seq uint64, b events.Boundary, body []byte) []byte {
			if seq != at {
				return body
			}
			s := strings.Replace(string(body), `"number`, `"nUmber`, 1)
			if seal {
				s = logtest.Seal(b, s)
			}
			return []byte(s)
		}
	}
	for name, change := range map[string]func(uint64, events.Boundary, []byte) []byte{
		"a changed byte":                     replace(3, false),
		"a changed record with a new hash":   replace(3, true),
		"the last of a boundary, new hash":   replace(7, true),
		"a record left out":                  drop(4),
		"the newest of a boundary left out":  drop(7),
		"the signed checkpoint is cut short": func(seq uint64, _ events.Boundary, body []byte) []byte { return resign(seq, body) },
	} {
		r, err := verify.Log(t.Context(), copyLog(t, l, change), verify.Options{})
		if err != nil || r.OK() {
			t.Errorf("%s passes: %+v %v", name, r, err)
		}
	}
	same := copyLog(t, l, func(_ uint64, _ events.Boundary, body []byte) []byte { return body })
	if r, err := verify.Log(t.Context(), same, verify.Options{}); err != nil || !r.OK() {
		t.Fatalf("a faithful copy: %+v %v", r, err)
	}
}

func drop(at uint64) func(uint64, events.Boundary, []byte) []byte {
	return func(seq uint64, _ events.Boundary, body []byte) []byte {
		if seq == at {
			return nil
		}
		return body
	}
}

// resign changes the signature of the last record and gives it a right hash.
func resign(seq uint64, body []byte) []byte {
	if seq != 9 {
		return body
	}
	s := strings.Replace(string(body), `"signature":"`, `"signature":"AA`, 1)
	return []byte(logtest.Seal(events.InstanceBoundary(instance), s))
}

func TestTrustedKeys(t *testing.T) {
	l, _ := signedLog(t)
	other, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := other.PublicKey()
	r, err := verify.Log(t.Context(), l, verify.Options{Trusted: map[events.InstanceID]string{instance: public}})
	if err != nil || r.OK() || r.Signatures != 0 {
		t.Fatalf("a log signed by another key passes: %+v %v", r, err)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	l := memory.New()
	for range verify.MaxProblems + 7 {
		l.AppendRaw("uid.a", []byte("x"))
	}
	r, err := verify.Log(t.Context(), l, verify.Options{})
	if err != nil || len(r.Problems) != verify.MaxProblems || r.More != 7 {
		t.Fatal(len(r.Problems), r.More, err)
	}
}

// A record whose own hash is right and which does not follow the one before it
// on its boundary is found, also where no signed checkpoint covers it: one that
// names another sequence, and one that names another content.
func TestFindsARecordThatDoesNotFollow(t *testing.T) {
	b := events.SeatBoundary("local", "web")
	for name, c := range map[string]struct {
		expect uint64
		prior  func(first events.Record) events.Hash
	}{
		"another sequence": {7, func(r events.Record) events.Hash { return r.Hash }},
		"another content":  {1, func(events.Record) events.Hash { return events.Hash{1} }},
	} {
		l := memory.New()
		first, err := l.Commit(t.Context(), logtest.Commit(1, b, 0))
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := events.Encode(logtest.Commit(2, b, c.expect), c.prior(first), nil)
		if err != nil {
			t.Fatal(err)
		}
		l.AppendRaw(b, body)
		if r, err := verify.Log(t.Context(), l, verify.Options{}); err != nil || r.OK() {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}

// A bounded check proves what it reads, and says how far that was: what comes
// after is neither looked at nor missed.
func TestVerifiesUpToALimit(t *testing.T) {
	l, _ := signedLog(t)
	bad := copyLog(t, l, func(seq uint64, _ events.Boundary, body []byte) []byte {
		if seq == 5 {
			return nil
		}
		return body
	})
	tip, err := l.Tip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for limit := uint64(1); limit <= tip+1; limit++ {
		r, err := verify.Log(t.Context(), l, verify.Options{Limit: limit})
		if err != nil || !r.OK() || r.Tip != min(limit, tip) || (r.Signatures == 1) != (limit >= tip) {
			t.Errorf("limit %d: %+v %v", limit, r, err)
		}
		if r, err := verify.Log(t.Context(), bad, verify.Options{Limit: limit}); err != nil || r.OK() != (limit < 6) {
			t.Errorf("limit %d of a damaged one: %+v %v", limit, r, err)
		}
	}
}
