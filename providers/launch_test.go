package providers

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"berth/events"
	"berth/events/fault"
)

// exposing is a stub whose guests reach sockets only.
type exposing struct{ *stub }

func (e exposing) ExposeBearer(_ events.Plan, s events.BearerSource) error {
	if s.Kind != events.BearerSocket {
		return CannotExpose(e.Name(), s.Kind)
	}
	return nil
}

func launchOf(t *testing.T, op Operation, seed, public string, source *events.BearerSource) Material {
	t.Helper()
	m, err := Launch(op.Plan, events.LaunchRequest{Environment: op.Environment, UID: "abcdefghijklmnopqrstuvwxyz", Generation: 1,
		Credential: events.CredentialDescriptor{ID: "c1", Holder: public}, Authentication: events.LaunchAuthentication{BearerSource: source}}, []byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// R46, R51, R58: what is not the one credential that the request binds, to this
// environment and this plan, never reaches a driver; neither does a source that
// the guest would not reach. Nothing of it is repeated.
func TestALaunchIsWhatWasBound(t *testing.T) {
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	accountSeed, _ := account.Seed()
	accountKey, _ := account.PublicKey()
	op := someOp(events.VerbProvision)
	socket := &events.BearerSource{Kind: events.BearerSocket, Path: "/run/authority.sock"}
	https := &events.BearerSource{Kind: events.BearerHTTPS, URL: "https://authority.example"}
	change := func(f func(Material)) Material {
		m := maps.Clone(launchOf(t, op, canary, holder, socket))
		f(m)
		return m
	}
	elsewhere, otherPlan := op, op
	elsewhere.Environment, otherPlan.Plan.Command = "another", []string{"another"}
	for name, c := range map[string]struct {
		m    Material
		want fault.Code // empty: the driver is called
	}{
		"nothing staged":             {Material{}, ""},
		"as it was bound":            {launchOf(t, op, canary, holder, socket), ""},
		"without a source":           {launchOf(t, op, canary, holder, nil), ""},
		"no fallback (R51)":          {launchOf(t, op, canary, holder, https), fault.FailedPrecondition},
		"no request":                 {Material{MaterialCredential: []byte(canary)}, fault.BadRequest},
		"no credential":              {change(func(m Material) { delete(m, MaterialCredential) }), fault.BadRequest},
		"a second credential (R58)":  {change(func(m Material) { m["provider-key"] = []byte(canary) }), fault.BadRequest},
		"other bytes (R46)":          {change(func(m Material) { m[MaterialCredential] = accountSeed }), fault.BadRequest},
		"another holder":             {launchOf(t, op, canary, accountKey, socket), fault.BadRequest},
		"an API key (R58)":           {launchOf(t, op, "api-key-"+canary, holder, socket), fault.BadRequest},
		"an account's key (R58)":     {launchOf(t, op, string(accountSeed), accountKey, socket), fault.BadRequest},
		"a signed URL (R58)":         {launchOf(t, op, "https://h/?sig="+canary, holder, socket), fault.BadRequest},
		"another environment's":      {launchOf(t, elsewhere, canary, holder, socket), fault.BadRequest},
		"another plan's (R46)":       {launchOf(t, otherPlan, canary, holder, socket), fault.BadRequest},
		"a request that was changed": {change(func(m Material) { m[MaterialLaunch] = append([]byte(" "), m[MaterialLaunch]...) }), fault.BadRequest},
	} {
		called := 0
		d := exposing{&stub{name: "stub", do: func(context.Context, Operation) Outcome { called++; return DoneWith(someFacts()) }}}
		op.Material = c.m
		out := Guard(d).Do(t.Context(), op)
		if code := fault.CodeOf(errOf(out)); code != c.want || (called > 0) != (c.want == "") {
			t.Errorf("%s: %s %v, called %d times, want %q", name, out.Kind, out.Fault, called, c.want)
		}
		if c.want != "" && (out.Kind != Refused || out.Fault.Outcome != fault.NotExecuted) {
			t.Errorf("%s: %s, %s", name, out.Kind, out.Fault.Outcome)
		}
		if out.Fault != nil && (strings.Contains(out.Fault.Error(), canary) || strings.Contains(out.Fault.Error(), string(accountSeed))) {
			t.Errorf("%s: the refusal repeats it", name)
		}
	}
	// One that says nothing of sources exposes none.
	op.Material = launchOf(t, op, canary, holder, socket)
	if out := Guard(&stub{name: "stub"}).Do(t.Context(), op); out.Kind != Refused {
		t.Errorf("a driver without sources: %s", out.Kind)
	}
}

// R42: the shape of an export to a path of the host is the local one, a path
// and a limit, and is answered with that path.
func TestTheLocalExportKeepsItsShape(t *testing.T) {
	op := someOp(events.VerbExport)
	op.Material, op.Arguments = nil, events.Arguments{CheckpointID: "c", HostPath: "/x/y", MaxBytes: 5}
	file := events.File{Path: "/x/y", ByteLength: 5, SHA256: strings.Repeat("a", 64)}
	for name, c := range map[string]struct {
		change func(*events.File)
		want   Kind
	}{
		"as asked":        {func(*events.File) {}, Done},
		"an id beside it": {func(f *events.File) { f.ID = "f" }, Unknown},
		"an id instead":   {func(f *events.File) { f.ID, f.Path = "f", "" }, Unknown},
	} {
		f := file
		c.change(&f)
		d := &stub{name: "stub", do: func(context.Context, Operation) Outcome { return withFile(f) }}
		if out := Guard(d).Do(t.Context(), op); out.Kind != c.want {
			t.Errorf("%s: %s %v", name, out.Kind, out.Fault)
		}
	}
}
