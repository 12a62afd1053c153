package plane_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"berth/commands"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
	"berth/providers/drill"
)

// registered is an idle or working world whose instance is registered, as a
// manager registers itself at its start.
func registered(t *testing.T, c commandstest.Config) *commandstest.World {
	t.Helper()
	w := commandstest.New(t, c)
	id := c.Instance
	if id == "" {
		id = commandstest.Instance
	}
	_, err := w.Log.Commit(t.Context(), events.Commit{Boundary: events.InstanceBoundary(id),
		Meta:   events.Meta{ID: events.EventID(w.IDs.UUID()), Writer: events.Writer{Instance: id, Epoch: 1}},
		Events: []events.Event{events.InstanceRegistered{Instance: id, Epoch: 1, Version: "1.0.0"}}})
	if err != nil {
		t.Fatal(err)
	}
	w.Until("the registration is folded", func(v *projections.Views) bool { _, ok := v.Host(id); return ok })
	return w
}

func launchOf(name, id string) commands.IntentAdmitInput {
	in := commandstest.Drill(name)
	return commands.IntentAdmitInput{Named: commands.Named{Name: name}, Intent: id, Kind: "launch", Instance: string(commandstest.Instance), Launch: &in}
}

func useOf(name, id, kind string) commands.IntentUseInput {
	return commands.IntentUseInput{Named: commands.Named{Name: name}, Intent: id, Kind: kind, Instance: string(commandstest.Instance), Epoch: 1}
}

func intentIs(w *commandstest.World, name string) string {
	r, err := commandstest.Ask(w, commands.Intents, "", commands.Named{Name: name})
	if err != nil || len(r.Items) == 0 {
		return ""
	}
	i := r.Items[len(r.Items)-1]
	return string(i.Phase) + " " + string(i.Outcome)
}

// stands waits until the newest intent of a name stands so.
func stands(t *testing.T, w *commandstest.World, name, want string) {
	t.Helper()
	for end := time.Now().Add(commandstest.Patience); intentIs(w, name) != want; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the intent of %s is %q, not %q", name, intentIs(w, name), want)
		}
	}
}

// D1, D4, D12, D13, D18: an intent is admitted, and used once whoever asks at the
// same time; the goal of the launch is its user's, under the intent's id; the
// request that used it reads the outcome, and who used it learns nothing else.
func TestIntentLaunches(t *testing.T) {
	w := registered(t, commandstest.Config{})
	first := must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentAdmit, "admit-1", launchOf("demo", "launch-1")))
	if first.Phase != "admitted" || first.Epoch != 1 || first.By != commandstest.Caller || first.Sequence == 0 {
		t.Errorf("admitted: %+v", first)
	}
	if again := must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentAdmit, "admit-1", launchOf("demo", "launch-1"))); again != first {
		t.Errorf("the same id again: %+v", again)
	}
	var wg sync.WaitGroup
	got := make([]error, 8)
	for n := range got {
		wg.Go(func() {
			id := "use-1"
			if n%2 == 1 {
				id = "use-2"
			}
			_, got[n] = commandstest.Ask(w, commands.IntentUse, id, useOf("demo", "launch-1", "launch"))
		})
	}
	wg.Wait()
	won := 0
	for _, err := range got {
		if err == nil {
			won++
		} else {
			refused(t, err, fault.Conflict, fault.NotExecuted)
		}
	}
	if won != len(got)/2 {
		t.Errorf("%d requests used it", won)
	}
	if g := w.Ended("launch-1"); g.State != events.GoalSucceeded {
		t.Errorf("the user's goal ended %+v", g)
	}
	stands(t, w, "demo", "ended enrolled")
	rs := must[[]events.Record](t)(w.Log.Load(t.Context(), events.SeatBoundary("local", "demo"), 0))
	used := 0
	for _, r := range rs {
		for _, e := range r.Events {
			if c, ok := e.(events.IntentConsumed); ok {
				used++
				if !slices.ContainsFunc(r.Events, func(e events.Event) bool { s, ok := e.(events.SlotClaimed); return ok && s.UID == c.UID }) {
					t.Error("it was used in another commit than the one that claims the name")
				}
			}
		}
	}
	if used != 1 {
		t.Errorf("it was used %d times", used)
	}
	retire := commands.IntentAdmitInput{Named: commands.Named{Name: "demo"}, Intent: "retire-1", Kind: "retire", Instance: string(commandstest.Instance)}
	must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentAdmit, "admit-2", retire))
	must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentUse, "use-3", useOf("demo", "retire-1", "retire")))
	stands(t, w, "demo", "ended retired")
}

// D5, D6, D17, law 5: what can't be used is refused before a goal is made of it,
// with nothing appended; a dry run appends nothing either.
func TestIntentIsRefusedBeforeAnything(t *testing.T) {
	w := registered(t, commandstest.Config{Idle: true})
	must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentAdmit, "admit-1", launchOf("demo", "launch-1")))
	before := w.Tip()
	for name, c := range map[string]struct {
		change func(*commands.IntentUseInput)
		code   fault.Code
	}{
		"another epoch":    {func(in *commands.IntentUseInput) { in.Epoch = 2 }, fault.Conflict},
		"another kind":     {func(in *commands.IntentUseInput) { in.Kind = "retire" }, fault.PermissionDenied},
		"another instance": {func(in *commands.IntentUseInput) { in.Instance = "jjjjjjjjjjjjjjjjjjjjjjjjjj" }, fault.FailedPrecondition},
		"no such intent":   {func(in *commands.IntentUseInput) { in.Intent = "launch-2" }, fault.NotFound},
	} {
		in := useOf("demo", "launch-1", "launch")
		c.change(&in)
		_, err := commandstest.Ask(w, commands.IntentUse, "use-"+string(c.code), in)
		if code, outcome := commandstest.Code(err); code != c.code || outcome != fault.NotExecuted {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := w.Send(commands.IntentUse.Contract, commands.Request{ID: "use-1", DryRun: true}, useOf("demo", "launch-1", "launch"))
	if !r.OK || len(r.WouldAppend) < 2 {
		t.Errorf("a dry run: %+v", r)
	}
	if _, err := commandstest.Ask(w, commands.IntentAdmit, "admit-2", commands.IntentAdmitInput{Named: commands.Named{Name: "demo"}, Intent: "launch-3", Kind: "launch",
		Instance: "zzzzzzzzzzzzzzzzzzzzzzzzzz", Launch: launchOf("demo", "x").Launch}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an instance that never was: %v", err)
	}
	if now := w.Tip(); now != before {
		t.Errorf("%d records were appended", now-before)
	}
	if use := must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentUse, "use-1", useOf("demo", "launch-1", "launch"))); use.Phase != "consumed" || use.Request != "use-1" {
		t.Errorf("then: %+v", use)
	}
	_, err := commandstest.Ask(w, commands.IntentAdmit, "admit-3", launchOf("demo", "launch-4"))
	refused(t, err, fault.FailedPrecondition, fault.NotExecuted)
}

// D8: a launch that its provider refuses is undone, and says so: aborted, and
// the name is free.
func TestIntentIsAborted(t *testing.T) {
	w := registered(t, commandstest.Config{Script: drill.Script{Rules: []drill.Rule{{Verb: "start", Nth: 1, Fault: drill.Refuse}}}})
	in := launchOf("demo", "launch-1")
	must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentAdmit, "admit-1", in))
	must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentUse, "use-1", useOf("demo", "launch-1", "launch")))
	stands(t, w, "demo", "ended aborted")
	if g := w.Ended("launch-1"); g.State != events.GoalFailed {
		t.Errorf("its goal ended %+v", g)
	}
	w.Spawn("demo")
}

// A name that nobody holds keeps its intents for readers that fold from the
// projections: what was admitted before the claim is there after it.
func TestIntentsOfAFreeNameAreKept(t *testing.T) {
	w := registered(t, commandstest.Config{Idle: true})
	must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentAdmit, "admit-1", launchOf("demo", "launch-1")))
	must[commands.IntentResult](t)(commandstest.Ask(w, commands.IntentUse, "use-1", useOf("demo", "launch-1", "launch")))
	w.Until("it is folded", func(v *projections.Views) bool { return v.Sequence() >= w.Tip() })
	w.Views.Read(func(v *projections.Views) {
		s, ok := v.Seat("local", "demo")
		if i, found := s.Intent("launch-1"); !ok || !found || i.Phase != "consumed" {
			t.Errorf("the projection has %+v", s.Intents)
		}
		if _, done, err := s.Commands.Seen("admit-1", ""); done || err == nil {
			t.Error("the command that admitted it is forgotten")
		}
	})
}
