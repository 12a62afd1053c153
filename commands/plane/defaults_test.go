package plane_test

import (
	"context"
	"sync/atomic"
	"testing"

	"berth/commands"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/projections"
	"berth/providers"
	"berth/providers/drill"
)

// choosy is a provider with defaults of its own, which it has to ask for.
type choosy struct {
	*drill.Driver
	say *atomic.Pointer[answer]
}

type answer struct {
	defaults providers.Defaults
	err      error
}

func (c choosy) Defaults(context.Context) (providers.Defaults, error) {
	a := c.say.Load()
	return a.defaults, a.err
}

func newChoosy(t *testing.T, c commandstest.Config, first answer) (*commandstest.World, *atomic.Pointer[answer]) {
	say := &atomic.Pointer[answer]{}
	say.Store(&first)
	c.Around = func(d *drill.Driver) providers.Driver { return choosy{d, say} }
	return commandstest.New(t, c), say
}

// A spawn that does not say gets what its provider said when it was accepted,
// also if it is claimed when the provider says otherwise, or nothing.
func TestDefaultsAreThoseOfTheAcceptance(t *testing.T) {
	away := answer{err: fault.New(fault.Unavailable, "nobody answers").WithOutcome(fault.NotExecuted)}
	for name, later := range map[string]answer{"others": {defaults: providers.Defaults{CPUs: "4"}}, "none": away} {
		t.Run(name, func(t *testing.T) {
			w, say := newChoosy(t, commandstest.Config{Idle: true}, answer{defaults: providers.Defaults{
				Image: &events.Image{Kind: "template", Reference: "small"}, CPUs: "2", Memory: "64MiB"}})
			lost(w.Memory, events.KindSeat, false)
			r := must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g", commandstest.Drill("demo")))
			say.Store(&later)
			w.Memory.SetHooks(memory.Hooks{})
			again := must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g", commandstest.Drill("demo")))
			if again.UID != r.UID {
				t.Errorf("asked again, %s is another life than %s", again.UID, r.UID)
			}
			w.Until("it is claimed", func(v *projections.Views) bool { _, ok := v.Seat("local", "demo"); return ok })
			seat, err := w.Shelf.Seat(t.Context(), "local", "demo")
			if p := seat.Environment.Plan; err != nil || p.Image.Reference != "small" || p.Resources.CPUs.String() != "2" || p.Resources.MemoryMiB != 64 {
				t.Errorf("%+v %v", p, err)
			}
		})
	}
}

// Nothing is accepted while what it means is not known, or makes no sense; who
// says all of it does not ask the provider.
func TestDefaultsThatAreNotKnown(t *testing.T) {
	w, say := newChoosy(t, commandstest.Config{Idle: true}, answer{err: fault.New(fault.Unavailable, "nobody answers").WithOutcome(fault.NotExecuted)})
	ask := func() error {
		_, err := commandstest.Ask(w, commands.Spawn, "g", commandstest.Drill("demo"))
		return err
	}
	tip := w.Tip()
	if code, outcome := commandstest.Code(ask()); code != fault.Unavailable || outcome != fault.NotExecuted {
		t.Errorf("nobody answers: %s, %s", code, outcome)
	}
	for _, d := range []providers.Defaults{{CPUs: "many"}, {Memory: "-1"}, {Image: &events.Image{Kind: "tape", Reference: "x"}}} {
		say.Store(&answer{defaults: d})
		if code, outcome := commandstest.Code(ask()); code != fault.ContractInvalid || outcome != fault.NotExecuted {
			t.Errorf("%+v: %s, %s", d, code, outcome)
		}
	}
	if now := w.Tip(); now != tip {
		t.Errorf("a refused spawn left %d records", now-tip)
	}
	whole := commandstest.Drill("demo")
	whole.Image, whole.CPUs, whole.Memory = &commands.ImageInput{Kind: "template", Reference: "host"}, "1", "1GiB"
	if _, err := commandstest.Ask(w, commands.Spawn, "g2", whole); err != nil {
		t.Errorf("all of it was said: %v", err)
	}
}
