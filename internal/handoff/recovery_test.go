package handoff

import (
	"encoding/json"
	"strings"
	"testing"

	"berth/events/fault"
)

func descriptor() Descriptor {
	t := whole().Target
	return Descriptor{Kind: DescriptorKind, IntentID: "intent-1", Space: t.Space, Owner: t.Owner, Actor: t.Actor, UID: t.UID,
		Instance: "cccccccccccccccccccccccccc", Epoch: 3, LaunchKey: t.Key(), TokenDigest: strings.Repeat("0a", 32)}
}

func line(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// V1, V2, V7: descriptors, requests and results are closed shapes.
func TestRecoveryShapes(t *testing.T) {
	request := Request{Kind: RequestKind, Descriptor: descriptor(), Instance: descriptor().Instance, Epoch: 4}
	if _, err := ParseDescriptor(line(t, descriptor())); err != nil {
		t.Error(err)
	}
	if _, err := ParseRequest(line(t, request)); err != nil {
		t.Error(err)
	}
	for _, r := range []Result{{ResultKind, descriptor().LaunchKey, Rebound, ""}, {ResultKind, descriptor().LaunchKey, Held, "the store is gone"}} {
		if _, err := ParseResult(line(t, r)); err != nil {
			t.Error(err)
		}
	}
	for name, change := range map[string]func(*Request){
		"another kind":              func(r *Request) { r.Kind = DescriptorKind },
		"a descriptor of another":   func(r *Request) { r.Descriptor.Kind = RequestKind },
		"no intent":                 func(r *Request) { r.Descriptor.IntentID = "" },
		"a space that is none":      func(r *Request) { r.Descriptor.Space = "a b" },
		"another instance (V2)":     func(r *Request) { r.Instance = "dddddddddddddddddddddddddd" },
		"no registration (V2)":      func(r *Request) { r.Epoch = 3 },
		"no epoch":                  func(r *Request) { r.Descriptor.Epoch = 0 },
		"the key of another child":  func(r *Request) { r.Descriptor.LaunchKey = KeyPrefix + strings.Repeat("0", keyDigits) },
		"a digest in capitals":      func(r *Request) { r.Descriptor.TokenDigest = strings.Repeat("0A", 32) },
		"an instance that is none":  func(r *Request) { r.Descriptor.Instance = "x" },
		"a digest that is too long": func(r *Request) { r.Descriptor.TokenDigest += "00" },
	} {
		r := request
		change(&r)
		if _, err := ParseRequest(line(t, r)); fault.From(err).Code != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, raw := range []string{"", "{}", `{"kind":"` + RequestKind + `","more":1}`, strings.Repeat(" ", MaxRecovery+1)} {
		if _, err := ParseRequest([]byte(raw)); fault.From(err).Code != fault.BadRequest {
			t.Errorf("%.40q: %v", raw, err)
		}
	}
	for _, r := range []Result{
		{"", descriptor().LaunchKey, Rebound, ""}, {ResultKind, "berth-", Rebound, ""}, {ResultKind, descriptor().LaunchKey, "launched", ""},
		{ResultKind, descriptor().LaunchKey, Rebound, "x"}, {ResultKind, descriptor().LaunchKey, Held, ""},
	} {
		if _, err := ParseResult(line(t, r)); fault.From(err).Code != fault.BadRequest {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// V4, V6, V8: a request that is whole is refused, not ignored, and says that
// nothing was executed.
func TestRecoveryIsRefused(t *testing.T) {
	e := fault.From(Recover(Request{Descriptor: descriptor()}))
	if e.Code != fault.Unimplemented || e.Outcome != fault.NotExecuted {
		t.Errorf("%+v", e)
	}
}

// FuzzRecovery: no parser panics, and what one accepts it accepts again.
func FuzzRecovery(f *testing.F) {
	f.Add(line(f, descriptor()))
	f.Add(line(f, Request{Kind: RequestKind, Descriptor: descriptor(), Instance: descriptor().Instance, Epoch: 4}))
	f.Add(line(f, Result{ResultKind, descriptor().LaunchKey, Held, "x"}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if d, err := ParseDescriptor(raw); err == nil {
			if _, err := ParseDescriptor(line(t, d)); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := ParseRequest(raw); err == nil {
			if _, err := ParseRequest(line(t, r)); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := ParseResult(raw); err == nil {
			if _, err := ParseResult(line(t, r)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
