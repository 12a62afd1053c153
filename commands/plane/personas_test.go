package plane_test

import (
	"fmt"
	"strings"
	"testing"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/fault"
)

// Rules 3, personas: define, show, list and remove; a repeated id is answered as
// it was, also after the persona was changed, and another input under it is a
// conflict; a missing one is not-found.
func TestPersonas(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	text := "You review changes.\nYou are brief.\n"
	in := commands.PersonaInput{Name: "reviewer", Text: text, Model: "large"}
	first := must[commands.PersonaWritten](t)(commandstest.Ask(w, commands.PersonaDefine, "one", in))
	if !first.Changed || first.Sequence == 0 {
		t.Errorf("%+v", first)
	}
	same := must[commands.PersonaWritten](t)(commandstest.Ask(w, commands.PersonaDefine, "two", in))
	if same.Changed {
		t.Errorf("the same content again: %+v", same)
	}
	other := in
	other.Text = "You write."
	must[commands.PersonaWritten](t)(commandstest.Ask(w, commands.PersonaDefine, "three", other))
	if again := must[commands.PersonaWritten](t)(commandstest.Ask(w, commands.PersonaDefine, "one", in)); again != first {
		t.Errorf("the first id is answered %+v, then %+v", first, again)
	}
	if again := must[commands.PersonaWritten](t)(commandstest.Ask(w, commands.PersonaDefine, "two", in)); again != same {
		t.Errorf("the second id, which changed nothing, is answered %+v, then %+v", same, again)
	}
	_, err := commandstest.Ask(w, commands.PersonaDefine, "one", other)
	refused(t, err, fault.Conflict, fault.NotExecuted)
	shown := must[commands.PersonaResult](t)(commandstest.Ask(w, commands.PersonaShow, "", commands.PersonaRef{Name: "reviewer"}))
	if shown.Text != other.Text || shown.Model != "large" || shown.Bytes != len(other.Text) || len(shown.SHA256) != 64 || shown.AsOf == 0 {
		t.Errorf("%+v", shown)
	}
	must[commands.PersonaWritten](t)(commandstest.Ask(w, commands.PersonaDefine, "four", commands.PersonaInput{Name: "author", Text: "x"}))
	all := must[commands.PersonasResult](t)(commandstest.Ask(w, commands.PersonaList, "", commands.Empty{}))
	if len(all.Items) != 2 || all.Items[0].Name != "author" || all.Items[1].Name != "reviewer" || all.AsOf == 0 {
		t.Errorf("%+v", all)
	}
	must[commands.PersonaWritten](t)(commandstest.Ask(w, commands.PersonaRemove, "five", commands.PersonaRef{Name: "reviewer"}))
	for _, id := range []string{"six", "seven"} {
		_, err = commandstest.Ask(w, commands.PersonaRemove, id, commands.PersonaRef{Name: "reviewer"})
		refused(t, err, fault.NotFound, fault.NotExecuted)
	}
	_, err = commandstest.Ask(w, commands.PersonaShow, "", commands.PersonaRef{Name: "reviewer"})
	refused(t, err, fault.NotFound, fault.NotExecuted)
	later := commandstest.New(t, commandstest.Config{Log: w.Log, Idle: true})
	if all := must[commands.PersonasResult](t)(commandstest.Ask(later, commands.PersonaList, "", commands.Empty{})); len(all.Items) != 1 {
		t.Errorf("another manager sees %+v", all)
	}
}

// The limits of the catalog at their edges, and what is no public text.
func TestPersonaLimits(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	define := func(name, text string) error {
		_, err := commandstest.Ask(w, commands.PersonaDefine, "d-"+name, commands.PersonaInput{Name: name, Text: text})
		return err
	}
	if err := define("longest", strings.Repeat("a", commands.MaxPersona)); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{"longer": strings.Repeat("a", commands.MaxPersona+1), "empty": "", "secret": "use password=" + canary, "bell": "a\ab", strings.Repeat("n", 57): "x"} {
		err := define(name, text)
		refused(t, err, fault.BadRequest, fault.NotExecuted)
		if strings.Contains(err.Error(), canary) {
			t.Error("the secret is in the refusal")
		}
	}
	for i := 1; i < aggregates.MaxPersonas; i++ {
		if err := define(fmt.Sprintf("p%d", i), "x"); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, define("more", "x"), fault.ResourceExhausted, fault.NotExecuted)
	if _, err := commandstest.Ask(w, commands.PersonaDefine, "change", commands.PersonaInput{Name: "p1", Text: "y"}); err != nil {
		t.Errorf("one of a full catalog can't be changed: %v", err)
	}
}

// A spawn of a persona is named after it, and is refused before any effect if
// there is none; a dry run of a definition writes nothing.
func TestSpawnOfAPersona(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{Idle: true})
	in := unnamed()
	in.Persona = "reviewer"
	_, err := commandstest.Ask(w, commands.Spawn, "a", in)
	refused(t, err, fault.FailedPrecondition, fault.NotExecuted)
	if n := w.Tip(); n != 0 {
		t.Errorf("the refusal left %d records", n)
	}
	definition := commands.PersonaInput{Name: "reviewer", Text: "You review."}
	r := w.Send(commands.PersonaDefine.Contract, commands.Request{ID: "dry", DryRun: true}, definition)
	if !r.OK || len(r.WouldAppend) != 1 || r.WouldAppend[0].Boundary != events.PersonaBoundary("local") || w.Tip() != 0 {
		t.Fatalf("%+v", r)
	}
	must[commands.PersonaWritten](t)(commandstest.Ask(w, commands.PersonaDefine, "d", definition))
	for i, want := range []events.Alias{"reviewer", "reviewer_2"} {
		if r := must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, fmt.Sprintf("s-%d", i), in)); r.Name != want {
			t.Errorf("the name is %s instead of %s", r.Name, want)
		}
	}
	// What was accepted is answered as it was, also when the persona is gone.
	must[commands.PersonaWritten](t)(commandstest.Ask(w, commands.PersonaRemove, "rm", commands.PersonaRef{Name: "reviewer"}))
	if r := must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Spawn, "s-1", in)); r.Name != "reviewer_2" {
		t.Errorf("%+v", r)
	}
}

// A record that this program can't read stops the catalog, and says which.
func TestACatalogThatCantBeRead(t *testing.T) {
	var p aggregates.Personas
	p.Fold(&events.Record{Sequence: 7, Boundary: "persona.local", Broken: fault.New(fault.UnsupportedVersion, "from the future")})
	_, define := p.Define(events.PersonaDefined{Name: "a", Text: "x"})
	_, remove := p.Remove("a")
	for _, err := range []error{define, remove} {
		refused(t, err, fault.FailedPrecondition, fault.NotExecuted)
		if !strings.Contains(err.Error(), "sequence 7 of persona.local") {
			t.Error(err)
		}
	}
}
