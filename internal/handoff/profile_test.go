package handoff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth/events/fault"
)

const profile = `{"kind":"berth-delegation/v1","server":"nats://127.0.0.1:4222","tlsRequired":false,"authProvider":"oidc",
"idp":{"url":"https://idp.example","issuer":"https://idp.example/","audience":"berth"},"exchangeUrl":"https://exchange.example",
"sentinelFile":"/etc/berth/sentinel","subscribe":[],"allowSubscribe":["team.>"],"allowPublish":[]}`

// A hand-off of a profile is one that a child accepts, and its command says
// what to expect (H4, H9).
func TestProfileMakesHandOffs(t *testing.T) {
	p, err := ParseProfile([]byte(profile))
	if err != nil {
		t.Fatal(err)
	}
	if p, err = p.WithSentinel("sentinel", "s2420"); err != nil {
		t.Fatal(err)
	}
	d := p.For("local", "web", uidA, canary)
	raw, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(raw)
	if err != nil || got.Token.Reveal() != canary || got.Space != "s2420" {
		t.Fatalf("%+v %v", got, err)
	}
	if strings.Contains(string(raw), "/etc") {
		t.Error("a path of the manager is in the hand-off")
	}
	want := strings.Fields("berth seat --expect-space s2420 --expect-owner local --expect-actor web --expect-uid " + uidA + " -- my agent")
	if got := p.Command("local", "web", uidA, []string{"my", "agent"}); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestProfileRefuses(t *testing.T) {
	for field, change := range map[string][2]string{
		"kind":           {"delegation/v1", "delegation/v2"},
		"exchangeUrl":    {"https://exchange.example", "http://exchange.example"}, // H10
		"sentinelFile":   {"/etc/berth/sentinel", "sentinel"},
		"subscribe":      {`"subscribe":[],`, ""},
		"allowSubscribe": {`team.>`, "team..x"},
		"allowPublish":   {`,"allowPublish":[]`, ""},
		"program":        {`"server"`, `"program":"-x","server"`},
		"server":         {"nats://", "http://"},
		"":               {`"server"`, `"more":1,"server"`},
	} {
		raw := strings.Replace(profile, change[0], change[1], 1)
		_, err := ParseProfile([]byte(raw))
		if e := fault.From(err); err == nil || e.Code != fault.BadRequest || field != "" && !strings.Contains(e.Message, "field "+field+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
	p, err := ParseProfile([]byte(profile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.WithSentinel("", "s2420"); err == nil {
		t.Error("an empty sentinel is accepted")
	}
}

// FuzzParseProfile: nothing panics, and an accepted profile makes a hand-off.
func FuzzParseProfile(f *testing.F) {
	f.Add([]byte(profile))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := ParseProfile(raw)
		if err != nil {
			return
		}
		if p, err = p.WithSentinel("sentinel", "s2420"); err != nil {
			t.Fatal(err)
		}
		if err := p.For("local", "web", uidA, canary).Check(); err != nil {
			t.Fatal(fmt.Sprint(err))
		}
	})
}
