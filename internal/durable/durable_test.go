package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"berth/events/fault"
)

func TestWriteFileReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for _, want := range []string{"first", "second, longer", ""} {
		if err := WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Fatalf("read %q, %v; want %q", got, err, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	left, _ := os.ReadDir(filepath.Dir(path))
	if len(left) != 1 {
		t.Fatalf("temporary files are left: %v", left)
	}
}

func TestWriteFileFailureLeavesTheOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("x"), 0o600); err == nil {
		t.Fatal("a directory was replaced by a file")
	}
	left, _ := os.ReadDir(filepath.Dir(path))
	if len(left) != 1 {
		t.Fatalf("temporary files are left: %v", left)
	}
}

func TestTryLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); fault.CodeOf(err) != fault.Conflict {
		t.Fatalf("second lock: %v", err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if l, err = TryLock(path); err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	l.Unlock()
}

// What was written before a failure is not kept, and a crash's rest is swept.
func TestReplaceFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	why := errors.New("no more")
	err := Replace(path, 0o600, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return why
	})
	if got, _ := os.ReadFile(path); err != why || string(got) != "old" {
		t.Fatalf("%v, and %q stands", err, got)
	}
	rest := filepath.Join(dir, ".a.123.part")
	if err := os.WriteFile(rest, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "a" {
		t.Fatalf("left: %v", left)
	}
}

// The lock is free when Unlock returns, whoever still has the file open: a
// child between fork and exec shares it.
func TestUnlockFreesWhatAChildHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := syscall.Dup(int(l.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(shared)
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := TryLock(path)
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	again.Unlock()
}
