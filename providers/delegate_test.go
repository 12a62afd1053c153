package providers

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"berth/events"
	"berth/events/fault"
	"berth/internal/handoff"
)

// delegator is a driver that begins delegated seats.
type delegator struct{ Driver }

// Name implements Driver.
func (delegator) Name() string { return "delegator" }

// TakesHandoff implements Delegator.
func (delegator) TakesHandoff(context.Context) error { return nil }

// plain is one that does not.
type plain struct{ Driver }

// Name implements Driver.
func (plain) Name() string { return "plain" }

// H3, H6: what a driver is given of a delegated seat is one document with the
// agent's own token, at the start; all else is refused before the driver.
func TestOnlyAHandoffAtTheStart(t *testing.T) {
	seed := func(make func() (nkeys.KeyPair, error)) string {
		kp, err := make()
		if err != nil {
			t.Fatal(err)
		}
		s, err := kp.Seed()
		if err != nil {
			t.Fatal(err)
		}
		return string(s)
	}
	document := func(token string) []byte {
		d := handoff.Document{
			Target: handoff.Target{Space: "s", Owner: "local", Actor: "web", UID: "aaaaaaaaaaaaaaaaaaaaaaaaaa"}, Server: "nats://127.0.0.1:4222", AuthProvider: "oidc",
			IdP: handoff.IdP{URL: "https://idp.example", Issuer: "x", Audience: "x"}, ExchangeURL: "https://exchange.example", Sentinel: "x", Token: handoff.Secret(token),
		}
		raw, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	user := document(seed(nkeys.CreateUser))
	for name, c := range map[string]struct {
		driver Driver
		verb   events.Verb
		m      Material
		want   fault.Code
	}{
		"the document":         {delegator{}, events.VerbStart, Material{handoff.Purpose: user}, ""},
		"nothing":              {delegator{}, events.VerbProvision, nil, ""},
		"before the start":     {delegator{}, events.VerbProvision, Material{handoff.Purpose: user}, fault.BadRequest},
		"and a credential":     {delegator{}, events.VerbStart, Material{handoff.Purpose: user, MaterialCredential: []byte("x")}, fault.BadRequest},
		"a credential alone":   {delegator{}, events.VerbStart, Material{MaterialCredential: []byte("x")}, fault.BadRequest},
		"no document":          {delegator{}, events.VerbStart, Material{handoff.Purpose: []byte("canary")}, fault.BadRequest},
		"an account's key":     {delegator{}, events.VerbStart, Material{handoff.Purpose: document(seed(nkeys.CreateAccount))}, fault.BadRequest},
		"an API key":           {delegator{}, events.VerbStart, Material{handoff.Purpose: document("canary-canary-canary")}, fault.BadRequest},
		"a driver without any": {plain{}, events.VerbStart, Material{handoff.Purpose: user}, fault.Unimplemented},
	} {
		err := checkLaunch(c.driver, Operation{Verb: c.verb, Plan: events.Plan{Delegated: true}, Material: c.m})
		if (err == nil) != (c.want == "") || err != nil && fault.CodeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the refusal repeats it: %s", name, err)
		}
	}
}
