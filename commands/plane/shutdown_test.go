package plane_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"berth/commands"
	"berth/commands/commandstest"
	"berth/events/fault"
)

// shutdown asks one instance to end.
func shutdown(t *testing.T, w *commandstest.World, target string, in commands.ShutdownInput) (out commands.ShutdownResult, err error) {
	t.Helper()
	a := commandstest.Address(commands.Shutdown.Contract)
	a.Target = target
	input, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(commands.Request{ID: "end", Input: input})
	if err != nil {
		t.Fatal(err)
	}
	r := w.Plane.Handle(context.Background(), a, body, "")
	if !r.OK {
		return out, r.Error
	}
	if err := json.Unmarshal(r.Result, &out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

// An instance ends only when it is asked by its id, and with empty only when it
// holds nothing but what may be left. A refusal ends nothing and stops nothing.
func TestShutdownRefuses(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	if _, err := shutdown(t, w, string(commandstest.Instance), commands.ShutdownInput{}); fault.CodeOf(err) != fault.Unimplemented {
		t.Errorf("a manager inside another program: %v", err)
	}
	ends := 0
	w.Plane.End = func() { ends++ }
	w.Spawn("one")
	w.Spawn("two")
	if _, err := shutdown(t, w, commands.Any, commands.ShutdownInput{}); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("any instance: %v", err)
	}
	_, err := shutdown(t, w, string(commandstest.Instance), commands.ShutdownInput{Empty: true, Except: []string{"two"}})
	code, outcome := commandstest.Code(err)
	if code != fault.FailedPrecondition || outcome != fault.NotExecuted {
		t.Errorf("while it holds names: %v", err)
	}
	told := slices.IndexFunc(fault.From(err).Details, func(d fault.Detail) bool { return d.Kind == commands.DetailSeatsHeld })
	if told < 0 || fault.From(err).Details[told].Facts["names"] != "one" || fault.From(err).Details[told].Facts["held"] != "1" {
		t.Errorf("what is held: %+v", fault.From(err).Details)
	}
	if ends != 0 {
		t.Fatal("a refused shutdown ended it")
	}
	w.Spawn("three") // it still takes work
}

// From the end on no new work is taken in, and what frees is.
func TestShutdownTakesNoMoreWork(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	ends := 0
	w.Plane.End = func() { ends++ }
	w.Spawn("one")
	r, err := shutdown(t, w, string(commandstest.Instance), commands.ShutdownInput{Empty: true, Except: []string{"one"}})
	if err != nil || r.Held != 1 || r.InstanceID != commandstest.Instance || ends != 1 {
		t.Fatalf("%+v, %v, %d ends", r, err, ends)
	}
	_, err = commandstest.Ask(w, commands.Spawn, "late", commandstest.Drill("late"))
	if code, outcome := commandstest.Code(err); code != fault.Unavailable || outcome != fault.NotExecuted {
		t.Errorf("a spawn after it: %v", err)
	}
	if _, err := commandstest.Ask(w, commands.Retire, "last", commands.RetireInput{Named: commands.Named{Name: "one"}}); err != nil {
		t.Errorf("a retirement after it: %v", err)
	}
}

// The list of names that may be left is bounded, and means nothing alone.
func TestShutdownInput(t *testing.T) {
	many := make([]string, commands.MaxExcept+1)
	for i := range many {
		many[i] = "n"
	}
	for _, in := range []commands.ShutdownInput{{Except: []string{"a"}}, {Empty: true, Except: many}, {Empty: true, Except: []string{"a b"}}} {
		if fault.CodeOf(in.Check()) != fault.BadRequest {
			t.Errorf("%d names, empty %t: accepted", len(in.Except), in.Empty)
		}
	}
	if err := (commands.ShutdownInput{Empty: true, Except: many[:commands.MaxExcept]}).Check(); err != nil {
		t.Error(err)
	}
}
