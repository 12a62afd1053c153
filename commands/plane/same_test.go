package plane_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/fault"
)

// sameness is a request that is made twice under one id, and another that must
// not pass for it.
type sameness struct {
	w         *commandstest.World
	who       events.Caller // commandstest.Caller if zero
	in, other any
}

// Decision 5, rules part 3: every command that changes the log answers a
// repeat of its id as it answered the first, refuses another input under it as
// a conflict, and appends nothing for either. A new row without a case fails.
func TestEveryWriteIsDoneOnceForItsID(t *testing.T) {
	for _, row := range commands.Table {
		if row.Kind != commands.Write && row.Kind != commands.Goal {
			continue
		}
		prepare := twice[row.Name]
		if prepare == nil {
			t.Errorf("%s changes the log, and no case here repeats it", row.Name)
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			c := prepare(t)
			first := c.send(t, row, c.in)
			if !first.OK {
				t.Fatalf("refused: %v", first.Error)
			}
			before := c.appended(t)
			again := c.send(t, row, c.in)
			if !again.OK || !bytes.Equal(lasting(t, again.Result), lasting(t, first.Result)) {
				t.Errorf("the repeat is answered\n%s %v, the first was\n%s", again.Result, again.Error, first.Result)
			}
			if c.other != nil {
				r := c.send(t, row, c.other)
				if r.OK || r.Error.Code != fault.Conflict || r.Error.Outcome != fault.NotExecuted {
					t.Errorf("another input under the id is answered %s %v", r.Result, r.Error)
				}
			}
			if now := c.appended(t); now != before {
				t.Errorf("%d records of the request, and %d after it was repeated", before, now)
			}
		})
	}
}

// send asks under the one id.
func (c sameness) send(t *testing.T, row *commands.Contract, in any) commands.Reply {
	t.Helper()
	a := commandstest.Address(row)
	if c.who != (events.Caller{}) {
		a.Caller = c.who
	}
	input, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(commands.Request{ID: "once", Input: input})
	if err != nil {
		t.Fatal(err)
	}
	return c.w.Plane.Handle(t.Context(), a, body, "")
}

// appended counts the records that carry the id: what the engine does
// meanwhile has ids of its own.
func (c sameness) appended(t *testing.T) (n int) {
	t.Helper()
	err := c.w.Log.Scan(t.Context(), 0, func(r events.Record) error {
		if r.Meta.Command == "once" {
			n++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// lasting is an answer without what may have gone on since, the state of a
// goal, and without what is said of this very answer.
func lasting(t *testing.T, result []byte) []byte {
	t.Helper()
	doc := map[string]any{}
	if err := json.Unmarshal(result, &doc); err != nil {
		t.Fatal(err)
	}
	delete(doc, "fetched")
	if _, goal := doc["goalId"]; goal {
		for _, k := range []string{"state", "ended", "endedAt", "fault", "sequence", "status", "asOf"} {
			delete(doc, k)
		}
	}
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func named(name string) commands.Named { return commands.Named{Name: name} }

// running is a case about a seat that runs; pinned is its name with its uid.
func running(f func(w *commandstest.World, pinned commands.Named) sameness) func(*testing.T) sameness {
	return func(t *testing.T) sameness {
		w := registered(t, commandstest.Config{})
		s := w.Spawn("demo")
		c := f(w, commands.Named{Name: "demo", UID: string(s.UID)})
		c.w = w
		return c
	}
}

// pins is a case whose other input pins the life that the first leaves open.
func pins(w *commandstest.World, pinned commands.Named) sameness {
	return sameness{in: seatInput("demo"), other: commands.SeatInput{Named: pinned}}
}

// fresh is a case that needs nothing before it.
func fresh(in, other any) func(*testing.T) sameness {
	return func(t *testing.T) sameness {
		return sameness{w: registered(t, commandstest.Config{Idle: true}), in: in, other: other}
	}
}

func longer(in commands.SpawnInput) commands.SpawnInput {
	in.TTL = "2h"
	return in
}

// captured makes a checkpoint of demo.
func captured(w *commandstest.World) string {
	w.T.Helper()
	must[commands.OperationResult](testOf(w))(commandstest.Ask(w, commands.Checkpoint, "captured", commands.CheckpointInput{Named: named("demo")}))
	var cp events.Checkpoint
	if err := json.Unmarshal(w.Ended("captured").Result, &cp); err != nil {
		w.T.Fatalf("%v", err)
	}
	return cp.ID
}

// swept has another instance end the seat of an intent, so that its name is held.
func swept(t *testing.T, w *commandstest.World, name events.Alias, id events.GoalID) {
	t.Helper()
	meta := events.Meta{ID: events.EventID(w.IDs.UUID()), Time: time.Now(), Caller: commandstest.Caller, Writer: events.Writer{Instance: heir, Epoch: 1}}
	_, _, err := w.Shelf.DecideSeat(t.Context(), "local", name, meta, func(s aggregates.Seat) ([]events.Event, error) {
		return []events.Event{
			events.SlotTakenOver{UID: s.Slot.UID, Holder: heir, Epoch: 1},
			events.IntentSwept{Intent: id, By: meta.Writer}, events.IntentEnded{Intent: id, Outcome: events.IntentAborted},
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// twice has a case for every command that changes the log.
var twice = map[string]func(*testing.T) sameness{
	"spawn":     fresh(commandstest.Drill("demo"), longer(commandstest.Drill("demo"))),
	"reserve":   fresh(commandstest.Drill("demo"), longer(commandstest.Drill("demo"))),
	"provision": running(pins),
	"start":     running(pins),
	"pause":     running(pins),
	"resume": running(func(w *commandstest.World, pinned commands.Named) sameness {
		r := must[commands.WriteResult](testOf(w))(commandstest.Ask(w, commands.Pause, "before", seatInput("demo")))
		operated(testOf(w), w, r.Operation)
		return pins(w, pinned)
	}),
	"extend": running(func(*commandstest.World, commands.Named) sameness {
		return sameness{in: commands.ExtendInput{Named: named("demo"), By: "30m"}, other: commands.ExtendInput{Named: named("demo"), By: "31m"}}
	}),
	"retire": running(func(*commandstest.World, commands.Named) sameness {
		return sameness{in: commands.RetireInput{Named: named("demo")}, other: commands.RetireInput{Named: named("demo"), Grace: "3s"}}
	}),
	"stop": running(func(_ *commandstest.World, pinned commands.Named) sameness {
		who := events.Caller{Owner: "local", Actor: "demo", UID: events.UID(pinned.UID)}
		return sameness{who: who, in: commands.StopInput{}, other: commands.StopInput{Grace: "3s"}}
	}),
	"checkpoint": running(func(_ *commandstest.World, pinned commands.Named) sameness {
		return sameness{in: commands.CheckpointInput{Named: named("demo")}, other: commands.CheckpointInput{Named: pinned}}
	}),
	"restore": running(func(w *commandstest.World, pinned commands.Named) sameness {
		id := captured(w)
		return sameness{in: commands.RestoreInput{Named: named("demo"), Checkpoint: id}, other: commands.RestoreInput{Named: pinned, Checkpoint: id}}
	}),
	"export": running(func(w *commandstest.World, _ commands.Named) sameness {
		captured(w)
		return sameness{in: commands.ExportInput{Named: named("demo")}, other: commands.ExportInput{Named: named("demo"), MaxBytes: 1 << 30}}
	}),
	"turn": running(func(*commandstest.World, commands.Named) sameness {
		return sameness{in: turnFor("demo", "look"), other: turnFor("demo", "look again")}
	}),
	// A turn is given back once, by its goal: there is no other input under its id.
	"turn-yield": running(func(w *commandstest.World, pinned commands.Named) sameness {
		must[commands.TurnResult](testOf(w))(commandstest.Ask(w, commands.Turn, "t-1", turnFor("demo", "look")))
		who := events.Caller{Owner: "local", Actor: "demo", UID: events.UID(pinned.UID)}
		return sameness{who: who, in: commands.TurnYieldInput{GoalID: "t-1", Status: events.TurnDone}}
	}),
	"write-off": func(t *testing.T) sameness {
		w := registered(t, commandstest.Config{Idle: true})
		uncertain(t, w, "demo")
		return sameness{w: w, in: commands.WriteOffInput{Named: named("demo"), Reason: "gone"}, other: commands.WriteOffInput{Named: named("demo"), Reason: "lost"}}
	},
	"takeover": func(t *testing.T) sameness {
		old, next := pair(t, commandstest.Config{})
		stopped(t, old, commandstest.Instance)
		return sameness{w: next, in: over("two", false), other: over("two", true)}
	},
	// That a goal is asked to end is one fact, however often and how it is asked.
	"goal-cancel": func(t *testing.T) sameness {
		w := registered(t, commandstest.Config{Idle: true}) // nobody ends it meanwhile
		must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "g-1", commandstest.Drill("demo")))
		return sameness{w: w, in: commands.GoalCancelInput{GoalRef: commands.GoalRef{Goal: "g-1"}}}
	},
	"intent-admit": fresh(launchOf("demo", "l-1"), launchOf("demo", "l-2")),
	"intent-use": func(t *testing.T) sameness {
		w := registered(t, commandstest.Config{Idle: true})
		must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentAdmit, "admit", launchOf("demo", "l-1")))
		return sameness{w: w, in: useOf("demo", "l-1", "launch"), other: commands.IntentUseInput{Named: named("demo"), Intent: "l-1", Kind: "launch", Instance: string(commandstest.Instance), Epoch: 2}}
	},
	"intent-release": func(t *testing.T) sameness {
		w := registered(t, commandstest.Config{Idle: true})
		must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentAdmit, "admit", launchOf("demo", "l-1")))
		must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentUse, "use", useOf("demo", "l-1", "launch")))
		swept(t, w, "demo", "l-1")
		return sameness{w: w, in: commands.IntentReleaseInput{Named: named("demo"), Intent: "l-1", Reason: "its host is off"}, other: commands.IntentReleaseInput{Named: named("demo"), Intent: "l-1", Reason: "it is lost"}}
	},
	"persona-define": fresh(commands.PersonaInput{Name: "reviewer", Text: "brief"}, commands.PersonaInput{Name: "reviewer", Text: "long"}),
	"persona-remove": func(t *testing.T) sameness {
		w := registered(t, commandstest.Config{Idle: true})
		for _, name := range []string{"one", "two"} {
			must[commands.PersonaWritten](t)(commandstest.Ask(w, commands.PersonaDefine, "define-"+name, commands.PersonaInput{Name: name, Text: "x"}))
		}
		return sameness{w: w, in: commands.PersonaRef{Name: "one"}, other: commands.PersonaRef{Name: "two"}}
	},
	"transcript-receive": func(t *testing.T) sameness {
		w, b := receiving(t, commandstest.Config{Idle: true})
		in := announced("text")
		b.put(in.SHA256, "text")
		return sameness{w: w, in: in, other: announced("other")}
	},
}

// testOf is the test that a world is of.
func testOf(w *commandstest.World) *testing.T { return w.T.(*testing.T) }
