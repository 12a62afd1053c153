//go:build linux

package seatdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"berth/events"
	"berth/providers"
)

func noted(t *testing.T) (Dir, *Journal, Entry) {
	t.Helper()
	d := In(t.TempDir(), testID)
	if err := d.Make(); err != nil {
		t.Fatal(err)
	}
	j, err := d.LoadJournal()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SaveJournal(j); err != nil {
		t.Fatal(err)
	}
	op := providers.Operation{ID: "operation-00000001", Verb: events.VerbPause}
	e := Entry{Operation: op.ID, Verb: op.Verb, Fingerprint: Fingerprint(op), Standing: Landed}
	if err := d.Note(j, e); err != nil {
		t.Fatal(err)
	}
	return d, j, e
}

// R27, R86: a noted operation is found by the next process, with those before.
func TestNotedOperationsAreFoundAgain(t *testing.T) {
	d, _, e := noted(t)
	for i := range 3 {
		j, err := d.LoadJournal()
		if err != nil || len(j.Operations) != i+1 || j.Find(e.Operation).Standing != Landed {
			t.Fatalf("%d: %+v %v", i, j, err)
		}
		next := e
		next.Operation = events.OperationID(fmt.Sprintf("operation-1000000%d", i))
		if err := d.Note(j, next); err != nil {
			t.Fatal(err)
		}
	}
}

// The next durable save takes them over, whoever makes it.
func TestSavingTakesNotedOperationsOver(t *testing.T) {
	d, _, e := noted(t)
	j, err := d.LoadJournal()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SaveJournal(j); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.File(FileRecent)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", FileRecent, err)
	}
	if j, err := d.LoadJournal(); err != nil || j.Find(e.Operation) == nil {
		t.Errorf("the saved journal: %+v %v", j, err)
	}
	if left, _ := os.ReadDir(d.Path); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// What another boot noted, and what a power cut left of it, is not believed;
// the journal itself is whole.
func TestAnotherBootBelievesNothingNoted(t *testing.T) {
	for name, damage := range map[string]func(string) string{
		"another boot": func(s string) string { return strings.Replace(s, `"bootId":"`, `"bootId":"x`, 1) },
		"empty":        func(string) string { return "" },
		"cut":          func(s string) string { return s[:len(s)/2] },
		"too long":     func(s string) string { return s + strings.Repeat(" ", maxFile) },
	} {
		t.Run(name, func(t *testing.T) {
			d, _, e := noted(t)
			b, err := os.ReadFile(d.File(FileRecent))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(d.File(FileRecent), []byte(damage(string(b))), 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := d.LoadJournal()
			if err != nil || j.Find(e.Operation) != nil || j.Environment != testID {
				t.Fatalf("%+v %v", j, err)
			}
			if err := d.Note(j, e); err != nil { // and it is replaced by the next
				t.Fatal(err)
			}
			if j, err = d.LoadJournal(); err != nil || j.Find(e.Operation) == nil {
				t.Fatalf("noted anew: %+v %v", j, err)
			}
		})
	}
}

// A journal that can't be noted in says so, and its entry is not there.
func TestNoteThatCannotBeWritten(t *testing.T) {
	d, j, e := noted(t)
	if err := os.RemoveAll(d.Path); err != nil {
		t.Fatal(err)
	}
	e.Operation = "operation-00000002"
	if err := d.Note(j, e); err == nil || j.Find(e.Operation) != nil {
		t.Errorf("%v, %+v", err, j.Find(e.Operation))
	}
}

// What a killed process left half written is not believed, and costs nothing of
// what was noted before; the next entry takes its place. A file without an end of
// line, as it was written at first, is whole.
func TestAHalfWrittenNoteCostsOnlyItself(t *testing.T) {
	for name, damage := range map[string]func(string) string{
		"half of another": func(s string) string { return s + s[:len(s)/2] },
		"another boot's":  func(s string) string { return s + strings.Replace(s, `"bootId":"`, `"bootId":"x`, 1) },
		"no end of line":  strings.TrimSpace,
	} {
		t.Run(name, func(t *testing.T) {
			d, _, first := noted(t)
			b, err := os.ReadFile(d.File(FileRecent))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(d.File(FileRecent), []byte(damage(string(b))), 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := d.LoadJournal()
			if err != nil || len(j.Operations) != 1 {
				t.Fatalf("%+v %v", j, err)
			}
			next := first
			next.Operation = "operation-00000002"
			if err := d.Note(j, next); err != nil {
				t.Fatal(err)
			}
			if j, err = d.LoadJournal(); err != nil || len(j.Operations) != 2 || j.Find(first.Operation) == nil || j.Find(next.Operation) == nil {
				t.Fatalf("%+v %v", j, err)
			}
		})
	}
}
