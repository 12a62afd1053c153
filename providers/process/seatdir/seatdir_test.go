//go:build linux

package seatdir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/events"
	"berth/providers"
)

const testID = events.EnvironmentID("0198c5a0-0000-7000-8000-000000000001")

func TestJournalSurvivesAndStaysSmallAfterBury(t *testing.T) {
	d := In(t.TempDir(), testID)
	if err := d.Make(); err != nil {
		t.Fatal(err)
	}
	if err := d.Make(); err != nil {
		t.Fatalf("a second Make: %v", err)
	}
	unlock, err := d.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j, err := d.LoadJournal()
	if err != nil || j.Environment != testID {
		t.Fatalf("an empty journal: %+v, %v", j, err)
	}
	op := providers.Operation{ID: "operation-00000001", Verb: events.VerbReserve}
	j.Set(Entry{Operation: op.ID, Verb: op.Verb, Fingerprint: Fingerprint(op), Standing: Begun})
	j.Set(Entry{Operation: op.ID, Verb: op.Verb, Fingerprint: Fingerprint(op), Standing: Landed})
	if err := d.SaveJournal(j); err != nil {
		t.Fatal(err)
	}
	deep := d.File(DirHome, "shut", "in")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(deep), 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Bury(); err != nil {
			t.Fatal(err)
		}
	}
	unlock()
	entries, _ := os.ReadDir(d.Path)
	if len(entries) != 2 {
		t.Fatalf("the tombstone holds %v", entries)
	}
	j, err = d.LoadJournal()
	if err != nil || len(j.Operations) != 1 || j.Find(op.ID).Standing != Landed {
		t.Fatalf("the journal reads back %+v, %v", j, err)
	}
}

func TestFingerprintTellsArgumentsApart(t *testing.T) {
	a := providers.Operation{ID: "operation-00000001", Verb: events.VerbStop}
	b := a
	b.Arguments.Grace = "1s"
	c := a
	c.Material = providers.Material{"key": []byte("x")}
	d := a
	d.Verb = events.VerbDestroy
	if Fingerprint(a) == Fingerprint(b) || Fingerprint(a) == Fingerprint(d) || Fingerprint(a) != Fingerprint(c) {
		t.Fatal("verb and arguments must count (R27), and secrets must not")
	}
}

func TestLockFences(t *testing.T) {
	d := In(t.TempDir(), testID)
	if err := d.Make(); err != nil {
		t.Fatal(err)
	}
	unlock, err := d.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Lock(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("a second holder: %v", err)
	}
	unlock()
	again, err := d.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestDamagedAndOversizedFilesAreErrors(t *testing.T) {
	d := In(t.TempDir(), testID)
	if err := d.Make(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.File(FileJournal), []byte(`{"phase":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.LoadJournal(); err == nil {
		t.Fatal("a damaged journal was read as an empty one")
	}
	if err := os.Truncate(d.File(FileJournal), maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := d.LoadJournal(); err == nil {
		t.Fatal("an oversized journal was read")
	}
}

// A wall clock that is set neither kills a seat early nor makes it immortal.
func TestDeadlineIgnoresTheWallClock(t *testing.T) {
	wall := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	d := Deadline{}.Move(wall.Add(time.Hour), "boot-a", 100*time.Second, wall)
	for _, set := range []time.Duration{-365 * 24 * time.Hour, 0, 365 * 24 * time.Hour} {
		left, ok := d.Left("boot-a", 160*time.Second, wall.Add(set))
		if !ok || left != 59*time.Minute {
			t.Fatalf("with the clock set by %v: %v left, %v", set, left, ok)
		}
	}
	later := d.Move(wall.Add(3*time.Hour), "boot-a", 200*time.Second, wall.Add(-time.Hour))
	if left, _ := later.Left("boot-a", 200*time.Second, wall); left != 3*time.Hour-100*time.Second {
		t.Fatalf("after an extension %v is left", left)
	}
	if left, ok := d.Left("boot-b", 5*time.Second, wall.Add(30*time.Minute)); !ok || left != 30*time.Minute {
		t.Fatalf("after a restart of the machine %v is left", left)
	}
	if _, ok := (Deadline{}).Left("boot-a", 0, wall); ok {
		t.Fatal("no deadline became one")
	}
}

// A replacement waits for what is left of the holder that ended, and no longer
// than it may: another one that lives is not waited out.
func TestTakeLifeWaits(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	release, held, err := d.HoldLife()
	if err != nil || !held {
		t.Fatal(held, err)
	}
	if _, held, err := d.HoldLife(); held || err != nil {
		t.Errorf("a second holder: %t %v", held, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, held, err := d.TakeLife(ended); held || err == nil {
		t.Errorf("beside one that lives: %t %v", held, err)
	}
	taken := make(chan error, 1)
	go func() {
		again, _, err := d.TakeLife(t.Context())
		if err == nil {
			again()
		}
		taken <- err
	}()
	release()
	if err := <-taken; err != nil {
		t.Error(err)
	}
}
