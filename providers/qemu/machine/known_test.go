//go:build linux

package machine

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"
)

// A state's digest is taken again unless the very same file was found right in
// this boot of the host.
func TestAGoldenStateIsKnown(t *testing.T) {
	s := &supervisor{start: Start{Golden: t.TempDir()}}
	path := s.goldenFile(StateExt)
	if err := os.WriteFile(path, []byte("memory"), 0o600); err != nil {
		t.Fatal(err)
	}
	look := func() (known, bool) {
		t.Helper()
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return s.knownGolden(f)
	}
	is, ok := look()
	if ok {
		t.Fatal("a state is known that nobody has looked at")
	}
	s.noteGolden(is)
	if _, ok := look(); !ok {
		t.Fatal("a state is not known that was looked at just now")
	}
	now := time.Now().Add(time.Hour)
	if err := os.Chtimes(s.goldenFile(knownExt), now, now); err != nil {
		t.Fatal(err)
	}
	if _, ok := look(); !ok {
		t.Fatal("using a state makes it unknown")
	}

	var note []byte
	for name, change := range map[string]func() error{
		"another boot": func() error {
			return os.WriteFile(s.goldenFile(knownExt), bytes.Replace(note, []byte(is.BootID), []byte("another"), 1), 0o600)
		},
		"half a note": func() error { return os.WriteFile(s.goldenFile(knownExt), note[:len(note)/2], 0o600) },
		"no note":     func() error { return os.Remove(s.goldenFile(knownExt)) },
		"a changed file": func() error {
			for before, end := is, time.Now().Add(time.Minute); ; { // the kernel's clock of files ticks some hundred times a second
				if err := os.WriteFile(path, []byte("Memory"), 0o600); err != nil {
					return err
				}
				if is, _ := look(); is != before {
					return nil
				}
				if time.Now().After(end) {
					return fmt.Errorf("a write does not show: %+v", before)
				}
			}
		},
	} {
		is, _ = look()
		s.noteGolden(is)
		var err error
		if note, err = os.ReadFile(s.goldenFile(knownExt)); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, ok := look(); ok {
			t.Errorf("%s: the state is still known", name)
		}
	}
}

// The states that were not used for the longest time go, with all of theirs.
func TestGoldenStatesAreTrimmed(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for i := range MaxGolden + 2 {
		s := &supervisor{start: Start{Golden: dir, Hardware: Hardware{CPUs: i}}}
		for _, ext := range []string{StateExt, knownExt, ".json", ".lock"} {
			if err := os.WriteFile(s.goldenFile(ext), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			at := now.Add(-time.Hour)
			if ext == knownExt { // the use, of which the state itself does not tell
				at = now.Add(-time.Duration(i) * time.Minute)
			}
			if err := os.Chtimes(s.goldenFile(ext), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	trimGolden(dir)
	for i := range MaxGolden + 2 {
		s := &supervisor{start: Start{Golden: dir, Hardware: Hardware{CPUs: i}}}
		for _, ext := range []string{StateExt, knownExt, ".json", ".lock"} {
			if _, err := os.Stat(s.goldenFile(ext)); (err == nil) != (i < MaxGolden) {
				t.Errorf("state %d, %s: %v", i, ext, err)
			}
		}
	}
}
