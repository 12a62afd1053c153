package plane_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"berth/commands"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// other gives the plane another terminal for every provider.
type other struct {
	from interface {
		Get(string) (providers.Entry, error)
		Names() []string
	}
	terminal providers.Terminal
}

func (o other) Names() []string { return o.from.Names() }

func (o other) Get(name string) (providers.Entry, error) {
	e, err := o.from.Get(name)
	e.Terminal = o.terminal
	return e, err
}

// failing is a terminal that fails after some bytes.
type failing struct {
	providers.Terminal
	took int
	err  error
}

func (f failing) Input(context.Context, events.EnvironmentID, string, []byte) (int, error) {
	return f.took, f.err
}

// What was typed is unknown as soon as delivery may have begun, and
// not-executed before: "never" and "not now" are told apart.
func TestInputSaysHowFarItCame(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	w.Spawn("demo")
	registry := w.Plane.Providers
	in := commands.InputInput{Named: commands.Named{Name: "demo"}, Text: "opensesame"}
	ask := func() (commands.InputResult, error) { return commandstest.Ask(w, commands.Type, "", in) }
	kinds := func(err error) (out []string) {
		for _, d := range fault.From(err).Details {
			out = append(out, d.Kind)
		}
		return out
	}

	if r, err := ask(); err != nil || r.Bytes != len("opensesame\r") || r.Name != "demo" || len(r.UID) != 26 {
		t.Errorf("%+v, %v", r, err)
	}
	for name, c := range map[string]struct {
		terminal providers.Terminal
		outcome  fault.Outcome
		kind     string
	}{
		"never":           {nil, fault.NotExecuted, "berth.no-terminal"},
		"not now":         {failing{err: fault.New(fault.FailedPrecondition, "it ended").WithOutcome(fault.NotExecuted)}, fault.NotExecuted, "berth.seat-not-running"},
		"begun":           {failing{took: 3, err: fault.New(fault.Unavailable, "cut")}, fault.Unknown, "berth.input"},
		"perhaps begun":   {failing{took: 0, err: fault.New(fault.Unavailable, "cut")}, fault.Unknown, "berth.input"},
		"begun, it lies":  {failing{took: 1, err: fault.New(fault.Unavailable, "cut").WithOutcome(fault.NotExecuted)}, fault.Unknown, "berth.input"},
		"a plain failure": {failing{took: 2, err: context.DeadlineExceeded}, fault.Unknown, "berth.input"},
	} {
		w.Plane.Providers = other{registry, c.terminal}
		_, err := ask()
		if f := fault.From(err); f.Outcome != c.outcome || !slices.Contains(kinds(err), c.kind) || strings.Contains(f.Message, "sesame") {
			t.Errorf("%s: %v %s %v", name, err, f.Outcome, kinds(err))
		}
	}
	w.Plane.Providers = registry
	_, err := commandstest.Ask(w, commands.Type, "", commands.InputInput{Named: commands.Named{Name: "nobody"}, Text: "x"})
	refused(t, err, fault.NotFound, fault.NotExecuted)
	_, err = commandstest.Ask(w, commands.Type, "", commands.InputInput{Named: commands.Named{Name: "demo", UID: strings.Repeat("0", 26)}, Text: "x"})
	refused(t, err, fault.Expired, fault.NotExecuted)
	paused := must[commands.WriteResult](t)(commandstest.Ask(w, commands.Pause, "p-1", commands.SeatInput{Named: commands.Named{Name: "demo"}}))
	operated(t, w, paused.Operation)
	if _, err = ask(); !slices.Contains(kinds(err), "berth.seat-not-running") {
		t.Errorf("paused: %v", err)
	}
	refused(t, err, fault.FailedPrecondition, fault.NotExecuted)
}

func TestInputIsBounded(t *testing.T) {
	demo := commands.Named{Name: "demo"}
	for text, ok := range map[string]bool{"": false, "x": true, strings.Repeat("x", commands.MaxText): true, strings.Repeat("x", commands.MaxText+1): false, "\xff": false} {
		if err := (commands.InputInput{Named: demo, Text: text}).Check(); (err == nil) != ok {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
	if commands.MaxText+1 > providers.MaxTerminalInput {
		t.Error("a driver refuses what the contract accepts")
	}
}
