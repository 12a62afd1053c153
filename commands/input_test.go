package commands

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/events"
	"berth/events/fault"
)

const seed = "SUAOZTYWGY2HZXWLEZYDYBQYFXZ7ZJ2Z2K6ZJZQYZ2Z7ZJ2Z2K6ZJZQYZ2"

// Hostile inputs are refused with bad-request that names the field, before any
// effect, and what looks like a secret is never repeated (decision 24, R71).
func TestHostileInputs(t *testing.T) {
	long := strings.Repeat("a", 4096)
	spawn := func(rest string) string { return `{"name":"demo",` + rest + `}` }
	for _, c := range []struct{ command, input, field string }{
		{"spawn", `{"name":"a.b"}`, "name"},
		{"spawn", `{"name":"../etc"}`, "name"},
		{"spawn", `{"name":"a b"}`, "name"},
		{"spawn", `{"name":"*"}`, "name"},
		{"spawn", `{"name":">"}`, "name"},
		{"spawn", `{"name":"chat_x"}`, "name"},
		{"spawn", `{"name":"` + long + `"}`, "name"},
		{"spawn", `{"name":"dem\u0000o"}`, "name"},
		{"spawn", `{"name":7}`, "name"},
		{"spawn", `{"Name":"demo"}`, "Name"},
		{"spawn", spawn(`"goal":"a.b"`), "goal"},
		{"spawn", spawn(`"cpus":"0"`), "cpus"},
		{"spawn", spawn(`"cpus":"-1"`), "cpus"},
		{"spawn", spawn(`"cpus":"NaN"`), "cpus"},
		{"spawn", spawn(`"cpus":"1e400"`), "cpus"},
		{"spawn", spawn(`"cpus":"4096.000000001"`), "cpus"},
		{"spawn", spawn(`"cpus":0.25`), "cpus"},
		{"spawn", spawn(`"memory":"12"`), "memory"},
		{"spawn", spawn(`"memory":"1.5GiB"`), "memory"},
		{"spawn", spawn(`"memory":"-1MiB"`), "memory"},
		{"spawn", spawn(`"memory":"+1MiB"`), "memory"},
		{"spawn", spawn(`"memory":"1048577"`), "memory"},
		{"spawn", spawn(`"memory":"99999999999999999999TiB"`), "memory"},
		{"spawn", spawn(`"memory":"9223372036854775807TiB"`), "memory"},
		{"spawn", spawn(`"memory":"MiB"`), "memory"},
		{"spawn", spawn(`"disk":"1MiB"`), "disk"},
		{"spawn", spawn(`"ttl":"0s"`), "ttl"},
		{"spawn", spawn(`"ttl":"-1h"`), "ttl"},
		{"spawn", spawn(`"ttl":"9000h"`), "ttl"},
		{"spawn", spawn(`"ttl":"soon"`), "ttl"},
		{"spawn", spawn(`"ready":"25h"`), "ready"},
		{"spawn", spawn(`"provider":"a/b"`), "provider"},
		{"spawn", spawn(`"image":{"kind":"iso","reference":"x"}`), "image.kind"},
		{"spawn", spawn(`"image":{"kind":"oci"}`), "image.reference"},
		{"spawn", spawn(`"image":{"kind":"oci","reference":"https://u:p@h/x"}`), "image.reference"},
		{"spawn", spawn(`"image":{"kind":"oci","reference":"x","more":1}`), "image.more"},
		{"spawn", spawn(`"network":""`), "network"},
		{"spawn", spawn(`"network":"a\nb"`), "network"},
		{"spawn", spawn(`"command":[""]`), "command.0"},
		{"spawn", spawn(`"command":["sh","-c","export API_TOKEN=hunter2"]`), "command.2"},
		{"spawn", spawn(`"command":["run","--password=hunter2"]`), "command.1"},
		{"spawn", spawn(`"command":["run","Authorization: Bearer abcdef"]`), "command.1"},
		{"spawn", spawn(`"command":["a","b\u001b[2J"]`), "command.1"},
		{"spawn", spawn(`"command":["` + long + `"]`), "command.0"},
		{"spawn", spawn(`"command":[` + strings.TrimSuffix(strings.Repeat(`"a",`, MaxArguments+1), ",") + `]`), "command"},
		{"spawn", spawn(`"command":[` + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("a", 2000)+`",`, 17), ",") + `]`), "command"},
		{"spawn", spawn(`"options":{"token":"hunter2"}`), "options.token"},
		{"spawn", spawn(`"options":{"":"x"}`), "options"},
		{"spawn", spawn(`"options":{"template":"minimal"}`), "options.template"}, // R21
		{"spawn", spawn(`"options":{"Image-Ref":"oci:a"}`), "options.Image-Ref"}, // R21
		{"spawn", spawn(`"options":{"network":"host"}`), "options.network"},      // R22
		{"spawn", spawn(`"network":""`), "network"},                              // R22: null is the provider's default
		{"spawn", spawn(`"network":"https://u:hunter2secret@net"`), "network"},   // R22: never a secret
		{"spawn", spawn(`"options":{"` + strings.Repeat("k", MaxOptionName+1) + `":"x"}`), "options"},
		{"spawn", spawn(`"options":{"region":"x","region":"y"}`), "options.region"},
		{"extend", `{"name":"demo"}`, "by"},
		{"extend", `{"name":"demo","by":"1h","until":"2030-01-01T00:00:00Z"}`, "by"},
		{"extend", `{"name":"demo","by":"-1h"}`, "by"},
		{"extend", `{"name":"demo","by":"1ns"}`, "by"},
		{"extend", `{"name":"demo","until":"tomorrow"}`, "until"},
		{"pause", `{"name":"demo","uid":"short"}`, "uid"},
		{"retire", `{"name":"demo","grace":"11m"}`, "grace"},
		{"write-off", `{"name":"demo"}`, "reason"},
		{"write-off", `{"name":"demo","reason":"password=hunter2"}`, "reason"},
		{"write-off", `{"name":"demo","reason":"` + strings.Repeat("r", MaxReason+1) + `"}`, "reason"},
		{"restore", `{"name":"demo","checkpoint":""}`, "checkpoint"},
		{"restore", `{"name":"demo","checkpoint":"` + strings.Repeat("c", events.MaxName+1) + `"}`, "checkpoint"},
		{"export", `{"name":"demo","maxBytes":-1}`, "maxBytes"},
		{"export", fmt.Sprintf(`{"name":"demo","maxBytes":%d}`, MaxExport+1), "maxBytes"},
		{"export", `{"name":"demo","maxBytes":1e30}`, "maxBytes"},
		{"export-read", `{"goal":"g","offset":-1}`, "offset"},
		{"export-read", fmt.Sprintf(`{"goal":"g","limit":%d}`, MaxChunk+1), "limit"},
		{"logs", `{"name":"demo","from":-1}`, "from"},
		{"logs", `{"name":"demo","wait":"2m"}`, "wait"},
		{"ls", `{"status":"fine"}`, "status"},
		{"ls", `{"limit":501}`, "limit"},
		{"ls", `{"limit":-1}`, "limit"},
		{"slots", `{"names":["a","a"]}`, "names.1"},
		{"spawn", spawn(`"goal":"` + seed + `"`), "goal"},
		{"slots", `{"names":[` + strings.TrimSuffix(strings.Repeat(`"a",`, MaxNames+1), ",") + `]}`, "names"},
		{"history", `{}`, "name"},
		{"history", `{"name":"a","goal":"g"}`, "name"},
		{"events", `{"from":-1}`, "from"},
		{"goal", `{"goal":"a b"}`, "goal"},
		{"goal-cancel", `{"goal":"g","mode":"now"}`, "mode"},
		{"wait", `{"name":"demo"}`, "until"},
		{"wait", `{"goal":"g","until":["running"]}`, "goal"},
		{"wait", `{"name":"demo","until":["soon"]}`, "until.0"},
		{"wait", `{"name":"demo","operation":"x"}`, "operation"},
		{"usage", `{"rates":{"currency":""}}`, "rates"},
		{"usage", `{"rates":{"currency":"EUR","default":{"cpuHour":"-1"}}}`, "rates.default.cpuHour"},
		{"inspect", `{"name":"` + seed + `"}`, "name"},
	} {
		row, err := Find(c.command)
		if err != nil {
			t.Fatal(err)
		}
		f := fault.From(row.Check(json.RawMessage(c.input)))
		show := c.command + " " + clip(c.input)
		switch {
		case f == nil:
			t.Errorf("%s is accepted", show)
		case f.Code != fault.BadRequest || f.Outcome != fault.NotExecuted:
			t.Errorf("%s is refused with %s, %s", show, f.Code, f.Outcome)
		case !strings.HasPrefix(f.Message, c.field+":") || len(f.Details) == 0 || f.Details[0].Facts["field"] != c.field:
			t.Errorf("%s does not name %s: %s %v", show, c.field, f.Message, f.Details)
		case strings.Contains(f.Message, "hunter2") || strings.Contains(f.Message, seed) || len(f.Message) > 400:
			t.Errorf("%s repeats what was given: %s", show, f.Message)
		}
	}
}

// What is at the limit is accepted.
func TestInputsAtTheLimit(t *testing.T) {
	for command, input := range map[string]string{
		"spawn":      `{"name":"` + strings.Repeat("a", events.MaxName) + `","cpus":"4096","memory":"64TiB","ttl":"8784h","ready":"24h","command":[` + strings.TrimSuffix(strings.Repeat(`"a",`, MaxArguments), ",") + `]}`,
		"reserve":    `{"name":"a","ttl":"none","cpus":"0.000000001","memory":"1MiB","disk":"1GiB","network":"default","options":{"region":"eu"},"command":["sh","-c","a\nb"]}`,
		"extend":     `{"name":"a","by":"1s"}`,
		"retire":     `{"name":"a","grace":"10m"}`,
		"write-off":  `{"name":"a","reason":"` + strings.Repeat("r", MaxReason) + `"}`,
		"export":     fmt.Sprintf(`{"name":"a","maxBytes":%d}`, MaxExport),
		"ls":         `{"limit":500,"status":"written-off"}`,
		"wait":       `{"name":"a","operation":"retire-aaaaaaaaaaaaaaaaaaaaaaaaaa","wait":"1m"}`,
		"slots":      `{"includeRetired":true}`,
		"restore":    `{"name":"a","checkpoint":"` + strings.Repeat("c", events.MaxName) + `"}`,
		"checkpoint": `{"name":"a","goal":"` + strings.Repeat("g", 64) + `"}`,
	} {
		row, err := Find(command)
		if err != nil {
			t.Fatal(err)
		}
		if err := row.Check(json.RawMessage(input)); err != nil {
			t.Errorf("%s %s: %v", command, clip(input), err)
		}
	}
}

func TestPlanDefaults(t *testing.T) {
	p, err := SpawnInput{Name: "a"}.Plan()
	if err != nil || p.Provider != "process" || p.Image != (events.Image{Kind: "template", Reference: "host"}) || p.Resources.CPUs.String() != "0.25" || p.Resources.MemoryMiB != 128 || p.Lifetime != time.Hour || p.Network != nil {
		t.Errorf("%+v %v", p, err)
	}
	if p, _ := (SpawnInput{Name: "a", TTL: NoTTL}).Plan(); p.Lifetime != 0 {
		t.Errorf("no ttl is %s", p.Lifetime)
	}
}

// The fingerprint is of what is asked, not of how it is written.
func TestFingerprint(t *testing.T) {
	a := Address{Target: Any, Command: "spawn", Mode: ModeOwner, Owner: "local", Caller: events.Caller{Owner: "local", Actor: "me", UID: "cccccccccccccccccccccccccc"}}
	fp := func(a Address, id, input string) string {
		t.Helper()
		in, err := DecodeInput[SpawnInput]([]byte(input))
		if err != nil {
			t.Fatal(err)
		}
		s, err := Fingerprint(a, id, in)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	base := fp(a, "1", `{"name":"a","cpus":"1"}`)
	if fp(a, "1", ` { "cpus" : "\u0031", "name":"a" } `) != base {
		t.Error("spelling matters")
	}
	b := a
	b.Target = "iiiiiiiiiiiiiiiiiiiiiiiiii"
	if fp(b, "1", `{"name":"a","cpus":"1"}`) != base {
		t.Error("which instance is asked matters")
	}
	b = a
	b.Caller.Actor = "you"
	for what, other := range map[string]string{
		"the id": fp(a, "2", `{"name":"a","cpus":"1"}`), "the input": fp(a, "1", `{"name":"a","cpus":"2"}`), "the caller": fp(b, "1", `{"name":"a","cpus":"1"}`),
	} {
		if other == base {
			t.Errorf("%s does not matter", what)
		}
	}
}

func TestAddresses(t *testing.T) {
	good := Address{Target: Any, Command: "pause", Mode: ModeOwner, Owner: "local", Caller: events.Caller{Owner: "local", Actor: "me", UID: "cccccccccccccccccccccccccc"}}
	for _, a := range []Address{good, {Target: "iiiiiiiiiiiiiiiiiiiiiiiiii", Command: "status", Mode: ModeNone, Caller: good.Caller}} {
		got, err := ParseAddress("s", a.Subject("s"))
		if err != nil || got != a {
			t.Errorf("%s reads as %+v, %v", a.Subject("s"), got, err)
		}
	}
	tail := ".local.me.cccccccccccccccccccccccccc"
	for _, s := range []string{
		"", "berth.s.cmd.any.pause", "berth.other.cmd.any.pause.owner.local" + tail, "berth.s.cmd.all.pause.owner.local" + tail,
		"berth.s.cmd.any.pause.everyone.local" + tail, "berth.s.cmd.any.pause.none.local" + tail, "berth.s.cmd.any.pause.owner._" + tail,
		"berth.s.cmd.any.pause.owner.local.local.me.short", "berth.s.cmd.any.pause.owner.local.local.me.cccccccccccccccccccccccccc.more",
		"berth.s.cmd.any.pause.owner." + strings.Repeat("o", 1100) + tail,
	} {
		if _, err := ParseAddress("s", s); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%q: %v", clip(s), err)
		}
	}
}

// Anything may arrive: it is read, or refused as a bad request, and no more.
func FuzzDecode(f *testing.F) {
	for _, c := range Table {
		f.Add(c.Name, []byte(c.Example))
	}
	f.Fuzz(func(t *testing.T, name string, input []byte) {
		if _, err := DecodeRequest(input); err != nil && fault.CodeOf(err) != fault.BadRequest {
			t.Fatalf("request: %v", err)
		}
		row, err := Find(name)
		if err != nil {
			return
		}
		if err := row.Check(input); err != nil && fault.CodeOf(err) != fault.BadRequest {
			t.Fatalf("%s: %v", name, err)
		}
	})
}
