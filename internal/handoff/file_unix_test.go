//go:build unix

package handoff

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth/events/fault"
)

func gone(t *testing.T, p string) {
	t.Helper()
	if _, err := os.Lstat(p); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", filepath.Base(p), err)
	}
}

// H8: what was handed over is read once, and its name is gone.
func TestTakeOnce(t *testing.T) {
	for _, n := range []int{1, MaxDocument} {
		p := filepath.Join(t.TempDir(), "handoff")
		want := bytes.Repeat([]byte("x"), n)
		if err := os.WriteFile(p, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Take(p); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		gone(t, p)
		if _, err := Take(p); fault.From(err).Code != fault.BadRequest {
			t.Errorf("taken twice: %v", err)
		}
	}
}

// H8: whatever else stands there is refused, its name is gone too, and what a
// link leads to is not touched.
func TestTakeRefusesAndRemoves(t *testing.T) {
	put := func(mode os.FileMode, b []byte) func(*testing.T, string) {
		return func(t *testing.T, p string) {
			if err := errors.Join(os.WriteFile(p, b, 0o600), os.Chmod(p, mode)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, make := range map[string]func(*testing.T, string){
		"empty":        put(0o600, nil),
		"mode 0644":    put(0o644, []byte(canary)),
		"mode 0400":    put(0o400, []byte(canary)),
		"mode 0700":    put(0o700, []byte(canary)),
		"mode 0640":    put(0o640, []byte(canary)),
		"sticky":       put(0o600|os.ModeSticky, []byte(canary)),
		"too long":     put(0o600, bytes.Repeat([]byte("x"), MaxDocument+1)),
		"not there":    func(*testing.T, string) {},
		"a fifo":       func(t *testing.T, p string) { must(t, unix.Mkfifo(p, 0o600)) },
		"a lost link":  func(t *testing.T, p string) { must(t, os.Symlink(p+"-nowhere", p)) },
		"a link":       func(t *testing.T, p string) { put(0o600, []byte(canary))(t, p+"-2"); must(t, os.Symlink(p+"-2", p)) },
		"a hard link":  func(t *testing.T, p string) { put(0o600, []byte(canary))(t, p+"-2"); must(t, os.Link(p+"-2", p)) },
		"a device":     func(t *testing.T, p string) { must(t, os.Symlink("/dev/zero", p)) },
		"no directory": func(t *testing.T, p string) { must(t, os.RemoveAll(filepath.Dir(p))) },
	} {
		t.Run(name, func(t *testing.T) {
			p := filepath.Join(t.TempDir(), "d", "handoff")
			must(t, os.Mkdir(filepath.Dir(p), 0o700))
			make(t, p)
			_, err := Take(p)
			if e := fault.From(err); err == nil || e.Code != fault.BadRequest || e.Outcome != fault.NotExecuted {
				t.Errorf("%v", err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the refusal repeats the content: %s", err)
			}
			gone(t, p)
			if b, err := os.ReadFile(p + "-2"); err == nil && string(b) != canary {
				t.Error("what the link led to was changed")
			}
		})
	}
}

// A directory, which is no name to unlink, is refused and nothing is read.
func TestTakeRefusesWhatCantBeRemoved(t *testing.T) {
	p := t.TempDir()
	if _, err := Take(p); fault.From(err).Code != fault.FailedPrecondition {
		t.Errorf("%v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
