package fly

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/adapter"
	"berth/providers/kept"
)

// accepted marks, in the journal, a start that the API has answered.
const accepted = "accepted"

// Carry carries out one verb.
func (b *backend) Carry(ctx context.Context, c *adapter.Call) (events.Facts, error) {
	if c.Op.Verb == events.VerbReserve {
		return b.reserve(ctx, c)
	}
	m, err := b.inspect(ctx, c.Record)
	if c.Op.Verb == events.VerbDestroy && fault.CodeOf(err) == fault.NotFound {
		// Somebody else destroyed it. A 404 alone may be the app's or the token's.
		if err := b.app(ctx); err != nil {
			return events.Facts{}, notSent(err)
		}
		return events.Facts{State: events.StateAbsent}, nil
	}
	if err != nil {
		return events.Facts{}, notSent(err)
	}
	if err := c.Note(m.State); err != nil {
		return events.Facts{}, err
	}
	switch c.Op.Verb {
	case events.VerbProvision: // there is nothing to send: the reservation made all of it
		return m.facts(), nil
	case events.VerbStart:
		return b.start(ctx, c, m)
	case events.VerbStop:
		return b.stop(ctx, c, m)
	case events.VerbDestroy:
		return b.destroy(ctx, c, m)
	}
	return events.Facts{}, fault.New(fault.Unimplemented, "the fly provider has no verb %q (R89)", c.Op.Verb)
}

// reserve creates the machine without launching it. Its id is taken from the
// answer to this request and from nowhere else (R92).
func (b *backend) reserve(ctx context.Context, c *adapter.Call) (events.Facts, error) {
	p := c.Record.Plan
	g, err := guestOf(p)
	if err == nil {
		_, err = b.DescribeImage(ctx, p.Image)
	}
	if err == nil && (len(p.Command) == 0 || p.Command[0] == "") {
		err = fault.New(fault.BadRequest, "environment %s has no command to start", c.Op.Environment)
	}
	if err != nil {
		return events.Facts{}, err
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	c.Record.Keep[keepNonce] = hex.EncodeToString(nonce[:])
	if err := c.Note(""); err != nil {
		return events.Facts{}, err
	}
	req := createRequest{Name: nameOf(c.Op.ID), Region: b.cfg.Region, SkipLaunch: true, SkipServiceRegistration: true, Config: config{
		Image: p.Image.Reference, Guest: g, Restart: map[string]string{"policy": "no"},
		Init: map[string]any{"exec": gate(p.Command)},
		Env: map[string]string{"HOME": home, "TERM": "xterm-256color", events.EnvMaterial: materialDir,
			events.EnvEnvironment: string(c.Op.Environment), events.EnvSeat: string(c.Op.Alias)},
		Metadata: map[string]string{metaEnvironment: string(c.Op.Environment), metaOperation: string(c.Op.ID), metaNonce: c.Record.Keep[keepNonce]},
	}}
	var m machine
	if err := b.c.do(ctx, request{method: http.MethodPost, path: "/machines", in: req, out: &m}); err != nil {
		return events.Facts{}, err
	}
	if !idRE.MatchString(m.ID) || m.Name != req.Name {
		return events.Facts{}, fault.New(fault.Unavailable, "the Fly Machines API answered the create without the machine's id and name")
	}
	f := m.facts()
	f.Ref, f.State = b.ref(m.ID), events.StateReserved
	return f, nil
}

// start launches the machine, whose gate holds the seat back until the
// material is in and the gate is opened, in one exec (R56).
func (b *backend) start(ctx context.Context, c *adapter.Call, m machine) (events.Facts, error) {
	in, err := pack(c.Op.Material)
	if err != nil {
		return events.Facts{}, err
	}
	err = b.withLease(ctx, m, c.Op.ID, func(nonce string) error {
		return b.c.do(ctx, request{method: http.MethodPost, path: "/machines/" + m.ID + "/start", nonce: nonce})
	})
	if err != nil {
		return events.Facts{}, err
	}
	// From here on everything that fails leaves the outcome unknown.
	if err := c.Note(accepted); err != nil {
		return events.Facts{}, unknown(c, err)
	}
	if err := b.wait(ctx, m, "started"); err != nil {
		return events.Facts{}, unknown(c, err)
	}
	if _, err := b.exec(ctx, m, openGate(c.Op.ID), in); err != nil {
		return events.Facts{}, unknown(c, err)
	}
	return b.seen(ctx, c)
}

func (b *backend) stop(ctx context.Context, c *adapter.Call, m machine) (events.Facts, error) {
	if m.State == "created" {
		return events.Facts{}, fault.New(fault.FailedPrecondition, "environment %s was never started; destroy it", c.Op.Environment)
	}
	grace := 10 * time.Second
	if g := c.Op.Arguments.Grace; g != "" {
		var err error
		if grace, err = time.ParseDuration(g); err != nil || grace < 0 || grace > 5*time.Minute {
			return events.Facts{}, fault.New(fault.BadRequest, "grace %q: a duration from 0s to 5m", events.Scrub(g))
		}
	}
	err := b.withLease(ctx, m, c.Op.ID, func(nonce string) error {
		return b.c.do(ctx, request{method: http.MethodPost, path: "/machines/" + m.ID + "/stop", nonce: nonce,
			in: map[string]any{"signal": "SIGTERM", "timeout": max(grace, time.Second).String()}})
	})
	if err != nil {
		return events.Facts{}, err
	}
	if err := b.wait(ctx, m, "stopped"); err != nil {
		return events.Facts{}, unknown(c, err)
	}
	return b.seen(ctx, c)
}

func (b *backend) destroy(ctx context.Context, c *adapter.Call, m machine) (events.Facts, error) {
	err := b.withLease(ctx, m, c.Op.ID, func(nonce string) error {
		return b.c.do(ctx, request{method: http.MethodDelete, path: "/machines/" + m.ID + "?force=true", nonce: nonce})
	})
	if err != nil {
		return events.Facts{}, err
	}
	// A wait on what is gone already answers 404: what is there is looked at next.
	if err := b.wait(ctx, m, "destroyed"); err != nil && fault.CodeOf(err) != fault.NotFound {
		return events.Facts{}, unknown(c, err)
	}
	return b.seen(ctx, c)
}

// seen is the state after a change that was accepted.
func (b *backend) seen(ctx context.Context, c *adapter.Call) (events.Facts, error) {
	f, proved, evidence, err := b.Landed(ctx, c)
	if err == nil && !proved {
		err = fault.New(fault.Unavailable, "the Fly Machines API accepted %s, but %s", c.Op.Verb, evidence)
	}
	if err != nil {
		return f, unknown(c, err)
	}
	return f, nil
}

// unknown: it was accepted, so that a failure to see it is never a refusal.
func unknown(c *adapter.Call, err error) error {
	return kept.Seen(string(c.Op.Verb), c.Op.Environment, err).WithOutcome(fault.Unknown)
}

// Landed looks at the machine, by its id, for the effect of an operation.
func (b *backend) Landed(ctx context.Context, c *adapter.Call) (events.Facts, bool, string, error) {
	if c.Op.Verb == events.VerbReserve {
		return b.landedCreate(ctx, c)
	}
	m, err := b.inspect(ctx, c.Record)
	if fault.CodeOf(err) == fault.NotFound && c.Op.Verb == events.VerbDestroy {
		// A 404 alone may be the app's or the token's.
		if err := b.app(ctx); err != nil {
			return events.Facts{}, false, "", err
		}
		return events.Facts{State: events.StateAbsent}, true, "the app is there and the machine of that id is not", nil
	}
	if err != nil {
		return events.Facts{}, false, "", err
	}
	f := m.facts()
	evidence := "the machine is " + events.Scrub(m.State)
	if m.HostStatus != "" && m.HostStatus != "ok" {
		evidence = "its host is " + events.Scrub(m.HostStatus)
	}
	switch c.Op.Verb {
	case events.VerbProvision:
		return f, true, "a provision sends nothing", nil
	case events.VerbStart:
		if f.State != events.StateRunning {
			return f, false, evidence, nil
		}
		// Running is not enough: the gate must have been opened by this operation.
		out, err := b.exec(ctx, m, "if [ -e "+goneBy(c.Op.ID)+" ]; then echo open; else echo shut; fi", nil)
		if err != nil {
			return f, false, "", err
		}
		return f, strings.TrimSpace(out) == "open", "its gate is " + events.Scrub(strings.TrimSpace(out)), nil
	case events.VerbStop:
		return f, f.State == events.StateStopped, evidence, nil
	case events.VerbDestroy:
		return f, f.State == events.StateAbsent, evidence, nil
	}
	return f, false, evidence, nil
}

// landedCreate never proves: a list may lie in both directions, and nothing is
// adopted from one (R92). What it shows is for a person.
func (b *backend) landedCreate(ctx context.Context, c *adapter.Call) (events.Facts, bool, string, error) {
	var ms []machine
	if err := b.c.get(ctx, "/machines?metadata."+metaOperation+"="+url.QueryEscape(string(c.Op.ID)), &ms); err != nil {
		return events.Facts{}, false, "", err
	}
	for _, m := range ms {
		if m.Config.Metadata[metaOperation] == string(c.Op.ID) && idRE.MatchString(m.ID) {
			return events.Facts{}, false, "machine " + m.ID + " is listed under this operation and is not adopted; destroy it by hand and write the environment off", nil
		}
	}
	return events.Facts{}, false, "no machine is listed under this operation, which does not say that there is none", nil
}

// Fence has one case: a start that was launched and whose gate shut by itself.
// The API has no fence for any other request that is on its way.
func (b *backend) Fence(ctx context.Context, c *adapter.Call) (string, error) {
	if c.Op.Verb != events.VerbStart {
		return "", fault.New(fault.Unimplemented, "the Fly Machines API has no fence for a %s that is on its way", c.Op.Verb).
			WithHint("look at app %s with `fly machine list`; what can't be settled is written off by an operator", b.cfg.App)
	}
	m, err := b.inspect(ctx, c.Record)
	if err != nil {
		return "", err
	}
	before := ""
	if e := c.Entry(); e != nil {
		before = e.Before
	}
	launched := before == accepted || before == "created"
	switch state := m.facts().State; {
	case launched && state == events.StateStopped:
		return "its machine was launched and has stopped, and a stopped machine takes no exec that would open the gate", nil
	case launched && state == events.StateRunning:
		return "", fault.New(fault.Unavailable, "machine %s runs with its gate shut, and ends by itself after %d s", m.ID, gateSeconds)
	}
	return "", fault.New(fault.Unimplemented, "the Fly Machines API has no fence for a start that is on its way; it is settled when its effect is seen")
}

// Observe reads the machine by its id. A 404 is no absence that anybody
// vouches for, unless this journal saw the destroy.
func (b *backend) Observe(ctx context.Context, r *adapter.Record) (events.Facts, error) {
	m, err := b.inspect(ctx, r)
	if err != nil {
		return events.Facts{}, err
	}
	return m.facts(), nil
}

// Logs are not to be had.
func (b *backend) Logs(_ context.Context, _ *adapter.Record, from int64, _ bool, _ io.Writer) (int64, error) {
	return from, fault.New(fault.Unimplemented, "the Fly Machines API has no logs").WithHint("fly logs -a %s", b.cfg.App)
}

// List is the app's list, as far as it names us.
func (b *backend) List(ctx context.Context) ([]providers.Listed, error) {
	var ms []machine
	if err := b.c.get(ctx, "/machines", &ms); err != nil {
		return nil, err
	}
	var out []providers.Listed
	for _, m := range ms {
		id, err := events.ParseEnvironmentID(m.Config.Metadata[metaEnvironment])
		if err != nil || !idRE.MatchString(m.ID) {
			continue
		}
		out = append(out, providers.Listed{Environment: id, Ref: b.ref(m.ID), State: m.facts().State})
	}
	return out, nil
}
