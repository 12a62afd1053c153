package plane_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/commandstest"
	"berth/commands/plane"
	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
)

// canary is a secret that must never be seen again.
const canary = "canary-9f8e7d6c5b4a"

// faulty is a shelf whose every read fails in a way of its choice.
type faulty struct {
	plane.Shelf
	fail func() error
}

func (f faulty) Seat(context.Context, events.Owner, events.Alias) (aggregates.Seat, error) {
	return aggregates.Seat{}, f.fail()
}

func (f faulty) DecideSeat(context.Context, events.Owner, events.Alias, events.Meta, func(aggregates.Seat) ([]events.Event, error)) (aggregates.Seat, events.Record, error) {
	return aggregates.Seat{}, events.Record{}, f.fail()
}

// E13: an unexpected failure of a store is unavailable and unknown, with its
// text scrubbed; so is a panic. E4 and E2: no answer is without an outcome.
func TestUnexpectedFailuresAreUnknownAndScrubbed(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	for name, fail := range map[string]func() error{
		"E13 an error that is not ours": func() error {
			return errors.New("dial failed, password=" + canary + " at nats://me:" + canary + "@host")
		},
		"E13 a panic": func() error { panic("token=" + canary) },
		"E4 an error without outcome": func() error {
			return &fault.Error{Code: fault.Unavailable, Message: "secret=" + canary, Hint: "use secret=" + canary, Details: []fault.Detail{{Kind: "k", Facts: map[string]string{"f": "api_key=" + canary}}}}
		},
	} {
		o := w.Plane.Options
		o.Shelf = faulty{w.Shelf, fail}
		p := plane.New(o)
		body, _ := json.Marshal(commands.Request{ID: "x", Input: json.RawMessage(`{"name":"demo"}`)})
		r := p.Handle(t.Context(), commandstest.Address(commands.Pause.Contract), body, "")
		p.Close()
		if r.OK || r.Error.Code != fault.Unavailable || r.Error.Outcome != fault.Unknown || r.Error.ID == "" {
			t.Errorf("%s: %+v", name, r.Error)
		}
		if b, _ := json.Marshal(r); strings.Contains(string(b), canary) {
			t.Errorf("%s: the secret is in the answer: %s", name, b)
		}
	}
}

// E1: what is refused before its handler was not executed, and nothing is appended.
func TestRefusedBeforeTheHandler(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	good := commandstest.Address(commands.Pause.Contract)
	body := `{"id":"x","input":{"name":"demo"}}`
	for name, c := range map[string]struct {
		change func(*commands.Address)
		body   string
		code   fault.Code
	}{
		"an unknown command":      {func(a *commands.Address) { a.Command = "explode" }, body, fault.Unimplemented},
		"another mode":            {func(a *commands.Address) { a.Mode, a.Owner = commands.ModeNone, "" }, body, fault.BadRequest},
		"another caller's owner":  {func(a *commands.Address) { a.Caller.Owner, a.Owner = "mallory", "mallory" }, body, fault.PermissionDenied},
		"things of another owner": {func(a *commands.Address) { a.Owner = "mallory" }, body, fault.PermissionDenied},
		"any owner's things":      {func(a *commands.Address) { a.Mode, a.Owner = commands.ModeAny, "mallory" }, body, fault.PermissionDenied},
		"another instance":        {func(a *commands.Address) { a.Target = "jjjjjjjjjjjjjjjjjjjjjjjjjj" }, body, fault.FailedPrecondition},
		"no id":                   {nil, `{"input":{"name":"demo"}}`, fault.BadRequest},
		"a bad id":                {nil, `{"id":"a b","input":{"name":"demo"}}`, fault.BadRequest},
		"not JSON":                {nil, `hello`, fault.BadRequest},
		"a list":                  {nil, `[]`, fault.BadRequest},
		"an unknown member":       {nil, `{"id":"x","surprise":1}`, fault.BadRequest},
		"a repeated member":       {nil, `{"id":"x","id":"y"}`, fault.BadRequest},
		"too long":                {nil, `{"id":"x","input":{"name":"` + strings.Repeat("a", commands.MaxRequest) + `"}}`, fault.BadRequest},
		"a timeout out of bounds": {nil, `{"id":"x","timeoutMs":120001}`, fault.BadRequest},
	} {
		a := good
		if c.change != nil {
			c.change(&a)
		}
		if c.body == "" {
			c.body = body
		}
		r := w.Plane.Handle(t.Context(), a, []byte(c.body), "")
		if r.OK || r.Error.Code != c.code || r.Error.Outcome != fault.NotExecuted {
			t.Errorf("%s: %+v", name, r.Error)
		}
	}
	if w.Tip() != 0 {
		t.Error("a refusal appended something")
	}
}

// A write whose acknowledgement was lost is settled by its id: it is answered
// as done if it is stored, and is never called failed if nobody knows.
func TestLostAcknowledgements(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	w.Spawn("demo")
	n := 0
	w.Memory.SetHooks(memory.Hooks{After: func(rs []events.Record) error {
		if rs[0].Meta.Command == "p" && n == 0 {
			n++
			return fault.New(fault.Unavailable, "the acknowledgement was lost")
		}
		return nil
	}})
	r := must[commands.WriteResult](t)(commandstest.Ask(w, commands.Pause, "p", seatInput("demo")))
	if !r.Changed || n != 1 {
		t.Errorf("the pause is answered %+v", r)
	}
	w.Memory.SetHooks(memory.Hooks{Before: func(cs []events.Commit) error {
		if cs[0].Meta.Command == "q" {
			return fault.New(fault.Unavailable, "nobody knows")
		}
		return nil
	}})
	_, err := commandstest.Ask(w, commands.Retire, "q", commands.RetireInput{Named: commands.Named{Name: "demo"}})
	refused(t, err, fault.Unavailable, fault.Unknown) // E3
	w.Memory.SetHooks(memory.Hooks{})
	must[commands.WriteResult](t)(commandstest.Ask(w, commands.Retire, "q", commands.RetireInput{Named: commands.Named{Name: "demo"}}))
	w.Memory.SetFull(true)
	_, err = commandstest.Ask(w, commands.Spawn, "full", commandstest.Drill("more"))
	refused(t, err, fault.ResourceExhausted, fault.NotExecuted)
	w.Memory.SetFull(false)
}

// uncertain makes a seat whose start lost its answer, in a world without an engine.
func uncertain(t *testing.T, w *commandstest.World, name events.Alias) {
	t.Helper()
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "spawn-"+string(name), commandstest.Drill(string(name))))
	_, _, err := w.Shelf.DecideSeat(t.Context(), "local", name, events.Meta{ID: events.EventID(w.IDs.UUID()), Time: time.Now(), Caller: commandstest.Caller, Writer: events.Writer{Instance: commandstest.Instance, Epoch: 1}},
		func(s aggregates.Seat) ([]events.Event, error) {
			return []events.Event{
				events.OperationDispatched{Environment: s.Environment.ID, Operation: "operation-of-reserve", Verb: events.VerbReserve, Deadline: time.Now()},
				events.OperationUncertain{Environment: s.Environment.ID, Operation: "operation-of-reserve", Fault: fault.New(fault.Unavailable, "the answer was lost")},
			}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

// Decision 13: a write-off frees the name and opens the environment's own
// boundary in one atomic publish, once for its id; a lost answer is settled.
func TestWriteOff(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	uncertain(t, w, "demo")
	in := commands.WriteOffInput{Named: commands.Named{Name: "demo"}, Reason: "the provider is gone"}
	if r := w.Send(commands.WriteOff.Contract, commands.Request{ID: "w", DryRun: true}, in); !r.OK || len(r.WouldAppend) != 2 {
		t.Errorf("dry: %+v", r)
	}
	n := 0
	w.Memory.SetHooks(memory.Hooks{After: func([]events.Record) error {
		if n++; n == 1 {
			return fault.New(fault.Unavailable, "the acknowledgement was lost")
		}
		return nil
	}})
	r := must[commands.WriteResult](t)(commandstest.Ask(w, commands.WriteOff, "w", in))
	if r.Status != aggregates.StatusWrittenOff || !r.Changed {
		t.Errorf("%+v", r)
	}
	inherited := must[[]events.Record](t)(w.Log.Load(t.Context(), events.EnvironmentBoundary(r.Environment), 0))
	if len(inherited) != 1 || inherited[0].Batch == nil {
		t.Errorf("the environment's own boundary: %+v", inherited)
	}
	if again := must[commands.WriteResult](t)(commandstest.Ask(w, commands.WriteOff, "w", in)); again != r {
		t.Errorf("the repeat is answered %+v", again)
	}
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "next-life", commandstest.Drill("demo")))
	_, err := commandstest.Ask(w, commands.WriteOff, "w2", in)
	refused(t, err, fault.FailedPrecondition, fault.NotExecuted) // the new life is not uncertain
	health := must[commands.HealthResult](t)(commandstest.Ask(w, commands.Health, "", commands.Empty{}))
	if len(health.WrittenOff) != 1 {
		t.Errorf("health: %+v", health)
	}
}

// Scenario 79: a read waits for the sequence that it asks for, and says so
// when that does not come.
func TestMinSequence(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	r := must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g", commandstest.Drill("demo")))
	reply := w.Send(commands.Inspect.Contract, commands.Request{MinSequence: r.Sequence}, commands.Named{Name: "demo"})
	var out commands.InspectResult
	if err := json.Unmarshal(reply.Result, &out); err != nil || out.AsOf < r.Sequence || out.Slot.UID != r.UID {
		t.Errorf("%+v %v %v", out, reply.Error, err)
	}
	reply = w.Send(commands.Inspect.Contract, commands.Request{MinSequence: r.Sequence + 1000, TimeoutMs: 1}, commands.Named{Name: "demo"})
	if reply.OK || reply.Error.Code != fault.DeadlineExceeded || reply.Error.Outcome != fault.NotExecuted {
		t.Errorf("%+v", reply.Error)
	}
}

// Law 4: a boundary that can't be read refuses every decision with why, and the others go on.
func TestQuarantine(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g", commandstest.Drill("demo")))
	w.Memory.AppendRaw(events.SeatBoundary("local", "demo"), []byte(`{"v":1,"id":"x","events":[{"type":"future.v99","data":{}}]}`))
	_, err := commandstest.Ask(w, commands.Retire, "r", commands.RetireInput{Named: commands.Named{Name: "demo"}})
	refused(t, err, fault.FailedPrecondition, fault.NotExecuted)
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g2", commandstest.Drill("other")))
	health := w.Send(commands.Health.Contract, commands.Request{MinSequence: w.Tip()}, commands.Empty{})
	if !strings.Contains(string(health.Result), `"boundary":"seat.local.demo"`) {
		t.Errorf("health: %s", health.Result)
	}
}

// Every command of the table is handled.
func TestEveryCommandIsHandled(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	for _, c := range commands.Table {
		body, _ := json.Marshal(commands.Request{ID: "x", TimeoutMs: 50, Input: json.RawMessage(c.Example)})
		r := w.Plane.Handle(t.Context(), commandstest.Address(c), body, "")
		if !r.OK && (r.Error.Code == fault.Unavailable || r.Error.Code == fault.Internal || r.Error.Code == fault.BadRequest) {
			t.Errorf("%s: its own example is answered %v", c.Name, r.Error)
		}
	}
}
