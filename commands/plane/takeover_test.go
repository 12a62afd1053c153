package plane_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"berth/aggregates/instance"
	"berth/commands"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/projections"
)

const heir = events.InstanceID("hhhhhhhhhhhhhhhhhhhhhhhhhh")

// tells has an instance say something of itself.
func tells(t *testing.T, w *commandstest.World, id events.InstanceID, f func(instance.State) ([]events.Event, error)) {
	t.Helper()
	meta := events.Meta{ID: events.EventID(w.IDs.UUID()), Time: events.MillisUTC(time.Now()), Caller: commandstest.Caller, Writer: events.Writer{Instance: id, Epoch: 1}}
	if _, _, err := w.Shelf.DecideInstance(t.Context(), id, meta, f); err != nil {
		t.Fatal(err)
	}
}

func register(t *testing.T, w *commandstest.World, id events.InstanceID) {
	t.Helper()
	tells(t, w, id, func(s instance.State) ([]events.Event, error) {
		return s.Register(id, events.HostFacts{Host: "h", Architecture: "amd64", OS: "linux", ObservedAt: events.MillisUTC(time.Now())}, "key", "1.0.0"), nil
	})
}

func stopped(t *testing.T, w *commandstest.World, id events.InstanceID) {
	t.Helper()
	tells(t, w, id, func(s instance.State) ([]events.Event, error) { return s.Stop(s.Epoch) })
}

// pair is an instance with two running seats, and one that may take them over.
func pair(t *testing.T, c commandstest.Config) (old, next *commandstest.World) {
	t.Helper()
	log := memory.New()
	old = commandstest.New(t, commandstest.Config{Log: log})
	register(t, old, commandstest.Instance)
	for _, name := range []string{"one", "two"} {
		old.Spawn(name)
	}
	c.Log, c.Instance = log, heir
	if c.Shared == nil {
		c.Shared = old.Drill
	}
	return old, commandstest.New(t, c)
}

func over(seat string, confirmed bool) commands.TakeOverInput {
	return commands.TakeOverInput{Instance: string(commandstest.Instance), Seat: seat, Confirmed: confirmed}
}

// holder is who holds a name by all that is in the log.
func holder(w *commandstest.World, name events.Alias) (id events.InstanceID) {
	tip := w.Tip()
	w.Until("the log is folded", func(v *projections.Views) bool { return v.Sequence() >= tip })
	w.Views.Read(func(v *projections.Views) {
		s, _ := v.Seat(commandstest.Caller.Owner, name)
		id = s.Slot.Holder
	})
	return id
}

// Decision 1: the seats of an instance that recorded its end are taken over,
// each by an event of its own, once for the request; the new holder ends them.
func TestTakeOver(t *testing.T) {
	old, next := pair(t, commandstest.Config{})
	stopped(t, old, commandstest.Instance)
	if r := next.Send(commands.TakeOver.Contract, commands.Request{ID: "dry", DryRun: true}, over("", false)); !r.OK || len(r.WouldAppend) != 2 {
		t.Errorf("dry: %+v", r)
	}
	first := must[commands.TakeOverResult](t)(commandstest.Ask(next, commands.TakeOver, "t1", over("two", false)))
	if len(first.Taken) != 1 || first.Taken[0].Name != "two" || first.Taken[0].Provider != "drill" || first.InstanceID != heir || len(first.Refused) != 0 {
		t.Fatalf("one seat: %+v", first)
	}
	again := must[commands.TakeOverResult](t)(commandstest.Ask(next, commands.TakeOver, "t1", over("two", false)))
	if len(again.Taken) != 1 || again.Taken[0] != first.Taken[0] {
		t.Errorf("the repeat is answered %+v", again)
	}
	_, err := commandstest.Ask(next, commands.TakeOver, "t2", over("two", false))
	refused(t, err, fault.FailedPrecondition, fault.NotExecuted)
	rest := must[commands.TakeOverResult](t)(commandstest.Ask(next, commands.TakeOver, "t3", over("", false)))
	if len(rest.Taken) != 1 || rest.Taken[0].Name != "one" || rest.Left != 0 {
		t.Errorf("the rest: %+v", rest)
	}
	if again := must[commands.TakeOverResult](t)(commandstest.Ask(next, commands.TakeOver, "t3", over("", false))); len(again.Taken) != 1 || again.Taken[0] != rest.Taken[0] {
		t.Errorf("the repeat is answered %+v", again)
	}
	if none := must[commands.TakeOverResult](t)(commandstest.Ask(next, commands.TakeOver, "t4", over("", false))); len(none.Taken) != 0 {
		t.Errorf("nothing is left: %+v", none)
	}
	next.Until("both are the heir's", func(v *projections.Views) bool { return v.Sequence() >= rest.Taken[0].Sequence })
	for _, name := range []string{"one", "two"} {
		if at := holder(next, events.Alias(name)); at != heir {
			t.Errorf("%s is held by %s", name, at)
		}
		must[commands.WriteResult](t)(commandstest.Ask(next, commands.Retire, "r-"+name, commands.RetireInput{Named: commands.Named{Name: name}}))
	}
	next.Until("both ended", func(v *projections.Views) bool { return v.Ended() == 2 })
}

// What is taken over counts against what an instance may hold: beyond that a
// seat is refused, and stays where it is.
func TestTakeOverIsWithinTheLimit(t *testing.T) {
	old, next := pair(t, commandstest.Config{MaxSeats: 1})
	stopped(t, old, commandstest.Instance)
	r := must[commands.TakeOverResult](t)(commandstest.Ask(next, commands.TakeOver, "t1", over("", false)))
	if len(r.Taken) != 1 || len(r.Refused) != 1 || r.Refused[0].Fault.Code != fault.ResourceExhausted || r.Refused[0].Fault.Outcome != fault.NotExecuted {
		t.Fatalf("%+v", r)
	}
	if at := holder(next, r.Refused[0].Name); at != commandstest.Instance {
		t.Errorf("%s is held by %s", r.Refused[0].Name, at)
	}
}

// An instance that did not record its end is taken over only where nobody
// answers in its place and an operator says that it does not run.
func TestTakeOverNeedsProof(t *testing.T) {
	serves := fault.New(fault.FailedPrecondition, "it serves")
	answers := 0
	_, next := pair(t, commandstest.Config{Silent: func(context.Context, events.InstanceID) error {
		if answers++; answers == 1 || answers == 4 { // alive; and one that comes back while its lease is waited for
			return serves
		}
		return nil
	}})
	for n, c := range []struct {
		in   commands.TakeOverInput
		code fault.Code
		says string
	}{
		{over("", true), fault.FailedPrecondition, "it serves"},
		{over("", false), fault.FailedPrecondition, "did not record its end"},
		{over("", true), fault.FailedPrecondition, "it serves"},
		{commands.TakeOverInput{Instance: string(heir)}, fault.FailedPrecondition, "got this request"},
		{commands.TakeOverInput{Instance: "nnnnnnnnnnnnnnnnnnnnnnnnnn"}, fault.NotFound, "no instance"},
	} {
		_, err := commandstest.Ask(next, commands.TakeOver, "p"+string(rune('0'+n)), c.in)
		refused(t, err, c.code, fault.NotExecuted)
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d: %v", n, err)
		}
	}
	if at := holder(next, "one"); at != commandstest.Instance {
		t.Fatalf("one is held by %s", at)
	}
	if r := must[commands.TakeOverResult](t)(commandstest.Ask(next, commands.TakeOver, "p9", over("", true))); len(r.Taken) != 2 {
		t.Errorf("%+v", r)
	}
}

// A seat that can't be reached from here stays where it is, and the refusal
// says what to do.
func TestTakeOverReachesTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		config commandstest.Config
		says   string
		hint   string
	}{
		"on the other's host": {commandstest.Config{Bound: func(p string) bool { return p == "drill" }}, "its own instance only", "start that instance again"},
		"another provider":    {commandstest.Config{Shared: commandstest.New(t, commandstest.Config{Idle: true}).Drill}, "does not know", "same provider"},
	} {
		t.Run(name, func(t *testing.T) {
			old, next := pair(t, c.config)
			stopped(t, old, commandstest.Instance)
			before := next.Tip()
			_, err := commandstest.Ask(next, commands.TakeOver, "u", over("", false))
			refused(t, err, fault.FailedPrecondition, fault.NotExecuted)
			if f := fault.From(err); !strings.Contains(f.Message, c.says) || !strings.Contains(f.Hint, c.hint) {
				t.Errorf("%v, hint %q", err, f.Hint)
			}
			if next.Tip() != before {
				t.Error("something was appended")
			}
		})
	}
}
