package handoff

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"berth/events/fault"
)

const (
	canary = "canary-token-0123456789"
	uidA   = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
)

func whole() Document {
	return Document{
		Target: Target{Space: "s2420", Owner: "u_" + uidA, Actor: "probe", UID: uidA},
		Server: "tls://mesh.example:4222", TLSRequired: true, AuthProvider: "oidc",
		IdP:         IdP{URL: "https://idp.example", Issuer: "https://idp.example/", Audience: "berth"},
		ExchangeURL: "https://exchange.example/v1", Sentinel: "-----BEGIN NATS USER JWT-----\nabc\n", Token: canary,
		Subscribe: []string{"team.*"}, AllowSubscribe: []string{"team.>"}, AllowPublish: []string{}, Policy: &Policy{Events: "required"},
	}
}

// members is the document as a map, to be broken one member at a time.
func members(t *testing.T) map[string]any {
	t.Helper()
	raw, err := whole().Encode()
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// The launch key is that of the contract's vector: the digest digit by digit,
// behind our own prefix (H14, H15).
func TestLaunchKeyVector(t *testing.T) {
	d := whole().Target
	if got := d.Digest(); got != "ffa44aae523faeee4ab7689a699b392e" {
		t.Errorf("digest %s", got)
	}
	if got := d.Key(); got != "berth-ffa44aae523faeee4ab7689a699b392e" {
		t.Errorf("key %s", got)
	}
	other := d
	other.UID = "aaaaaaaaaaaaaaaaaaaaaaaaab"
	if other.Key() == d.Key() {
		t.Error("two lifecycles have one key")
	}
}

func TestDocumentGoesRound(t *testing.T) {
	for _, policy := range []*Policy{nil, {Events: "required"}} {
		want := whole()
		want.Policy = policy
		raw, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(raw)
		if err != nil || fmt.Sprintf("%#v", got.Policy) == "" || got.Token.Reveal() != canary || got.Target != want.Target {
			t.Fatalf("%+v %v", got, err)
		}
		if again, err := got.Encode(); err != nil || string(again) != string(raw) {
			t.Errorf("written again it is %s, %v", again, err)
		}
	}
}

// The document is closed: every member but policy must be there, and none
// besides; every field is checked, and no refusal repeats what it was given.
func TestDocumentRefuses(t *testing.T) {
	raw := func(m map[string]any) []byte {
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	refuse := func(name string, b []byte, field string) {
		t.Helper()
		_, err := Parse(b)
		e := fault.From(err)
		if err == nil || e.Code != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
			return
		}
		if field != "" && !strings.Contains(e.Message, "field "+field+":") {
			t.Errorf("%s: the refusal does not name %s: %s", name, field, e.Message)
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the refusal repeats a value: %s", name, err)
		}
	}
	for k := range members(t) {
		if k == "policy" {
			continue
		}
		m := members(t)
		delete(m, k)
		refuse("without "+k, raw(m), k)
		m[k] = map[string]any{"canary": 1}
		refuse("with another type in "+k, raw(m), "")
	}
	long := strings.Repeat("canary", MaxToken)
	for _, c := range []struct {
		field string
		value any
	}{
		{"kind", "canary"}, {"space", "canary space"}, {"owner", ""}, {"actor", "canary.x"}, {"lifecycleUid", "canary"},
		{"server", "http://canary.example"}, {"server", "nats://user:canary@mesh.example"}, {"server", "ws://canary.example"},
		{"server", "nats://"}, {"authProvider", "canary/x"}, {"exchangeUrl", "ftp://canary.example"},
		{"sentinelCreds", "canary\x00"}, {"sentinelCreds", strings.Repeat("x", MaxSentinel+1)}, {"actorToken", "canary"},
		{"actorToken", long}, {"actorToken", "canary canary canary"}, {"subscribe", []string{"canary..x"}}, {"subscribe", []string{"canary.>.x"}},
		{"allowSubscribe", []string{"canary.x*"}}, {"allowPublish", []string{"canary", "canary"}}, {"allowPublish", make([]string, MaxSubjects+1)},
		{"allowPublish", []string{strings.Repeat("c", MaxSubject+1)}},
	} {
		m := members(t)
		m[c.field] = c.value
		refuse(fmt.Sprintf("%s as %.30v", c.field, c.value), raw(m), c.field)
	}
	m := members(t)
	m["policy"] = map[string]any{"events": "canary"}
	refuse("another policy", raw(m), "policy.events")
	m["policy"] = map[string]any{"events": "required", "canary": true}
	refuse("a policy with more", raw(m), "")
	m = members(t)
	m["idp"] = map[string]any{"url": "https://idp.example", "issuer": "x"}
	refuse("an idp without audience", raw(m), "idp.audience")
	m = members(t)
	m["canary"] = "canary"
	refuse("an unknown member", raw(m), "")
	refuse("nothing", nil, "")
	refuse("too much", append(raw(members(t)), make([]byte, MaxDocument)...), "")
	twice := strings.Replace(string(raw(members(t))), "{", `{"actor":"canary",`, 1)
	refuse("a member twice", []byte(twice), "")
}

// H10: https, or http to a literal loopback address and nothing that may
// resolve to another host.
func TestExchangeURL(t *testing.T) {
	for u, ok := range map[string]bool{
		"https://exchange.example": true, "https://exchange.example:8443/base": true, "http://127.0.0.1:8080": true,
		"http://127.200.3.4/x": true, "http://[::1]:1": true, "http://[::ffff:127.0.0.1]/": true,
		"http://localhost": false, "http://127.1": false, "http://0177.0.0.1": false, "http://2130706433": false,
		"http://10.0.0.1": false, "http://0.0.0.0": false, "http://[::]": false, "http://[::ffff:10.0.0.1]": false,
		"http://[fe80::1%25lo]": false, "http://127.0.0.1.example": false, "http://127.0.0.1@exchange.example": false,
		"https://u:p@exchange.example": false, "https://exchange.example?x": false, "https://exchange.example#": false,
		"https://": false, "https:exchange": false, "//exchange.example": false, "https://exchange.example:0": false,
		"https://exchange.example:99999": false, "file:///etc/passwd": false, "": false, "https://exchange.example/ü": false,
		"https://" + strings.Repeat("x", MaxURL): false,
	} {
		d := whole()
		d.ExchangeURL = u
		if err := d.Check(); (err == nil) != ok {
			t.Errorf("%q: %v", u, err)
		} else if err != nil && !strings.Contains(err.Error(), "exchangeUrl") {
			t.Errorf("%q: the refusal names another field: %s", u, err)
		}
	}
}

// Canary: a document that is printed, logged or marshalled by accident shows
// neither the token nor the sentinel.
func TestSecretsAreNotPrinted(t *testing.T) {
	d := whole()
	d.Sentinel = "canary-sentinel"
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "d", d, "token", d.Token)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "d", d, "token", d.Token)
	for _, s := range []string{string(raw), logged.String(), fmt.Sprint(d), fmt.Sprintf("%v %+v %#v %s %q", d, d, d, d.Token, d.Token)} {
		if strings.Contains(s, "canary") {
			t.Errorf("it shows a secret: %s", s)
		}
	}
}

// H9: every difference refuses, names its field and repeats neither value.
func TestMatchNamesTheField(t *testing.T) {
	d, instance := whole().Target, "cccccccccccccccccccccccccc"
	e := Expected{Target: d, Instance: "cccccccccccccccccccccccccc"}
	if err := e.Match(d, "cccccccccccccccccccccccccc"); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*Expected){
		"space":             func(e *Expected) { e.Space = "canary" },
		"owner":             func(e *Expected) { e.Owner = "canary" },
		"actor":             func(e *Expected) { e.Actor = "canary" },
		"lifecycleUid":      func(e *Expected) { e.UID = "canarycanarycanarycanarycanary" },
		"managerInstanceId": func(e *Expected) { e.Instance = "canarycanarycanarycanaryca" },
	} {
		x := e
		change(&x)
		err := x.Match(d, e.Instance)
		f := fault.From(err)
		if err == nil || f.Code != fault.PermissionDenied || !strings.Contains(f.Message, "field "+field+" ") {
			t.Errorf("%s: %v", field, err)
			continue
		}
		if all := fmt.Sprintf("%+v %s", f, err); strings.Contains(all, "canary") || strings.Contains(all, uidA) || strings.Contains(all, instance) {
			t.Errorf("%s: the refusal repeats a value: %s", field, all)
		}
	}
}

// FuzzParse: nothing panics, and what is accepted is written and read the same.
func FuzzParse(f *testing.F) {
	raw, err := whole().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"kind":"berth-managed-handoff/v1"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := Parse(raw)
		if err != nil {
			return
		}
		b, err := d.Encode()
		if err != nil {
			if len(raw)*6 < MaxDocument { // writing may escape what was not
				t.Fatalf("accepted and not written: %s", err)
			}
			return
		}
		if again, err := Parse(b); err != nil || again.Target != d.Target || again.Token != d.Token {
			t.Fatalf("%v", err)
		}
	})
}
