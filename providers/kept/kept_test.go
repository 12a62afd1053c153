package kept_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/events"
	"berth/events/fault"
	"berth/providers/kept"
)

const environment = events.EnvironmentID("01890a5d-ac96-774b-bcce-b302099a8057")

// A checkpoint that was changed on disk is not handed out (R37).
func TestADamagedCheckpointIsNotExported(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := events.Checkpoint{ID: "x", ByteLength: 5, SHA256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}
	for name, change := range map[string]func(*events.Checkpoint){
		"longer": func(c *events.Checkpoint) { c.ByteLength = 6 }, "shorter": func(c *events.Checkpoint) { c.ByteLength = 4 },
		"other": func(c *events.Checkpoint) { c.SHA256 = strings.Repeat("0", 64) },
	} {
		bad := good
		change(&bad)
		if _, _, err := kept.Copy(t.Context(), to, from, bad); fault.CodeOf(err) != fault.FailedPrecondition {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%s: a file was left", name)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := kept.Copy(ended, to, from, good); !errors.Is(err, context.Canceled) {
		t.Errorf("an export that nobody waits for: %v", err)
	}
	if n, sum, err := kept.Copy(t.Context(), to, from, good); err != nil || n != 5 || sum != good.SHA256 {
		t.Errorf("%d %s %v", n, sum, err)
	}
}

// A file is written up to its limit and not a byte further (R33, R37).
func TestWriteIsBounded(t *testing.T) {
	to := filepath.Join(t.TempDir(), "to")
	for n, fits := range map[int]bool{4: true, 5: false} {
		_, _, err := kept.Write(to, 4, func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Repeat("x", n))
			return err
		})
		if (err == nil) != fits || !fits && fault.CodeOf(err) != fault.ResourceExhausted {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "captures")
	for n, fits := range []bool{true, true, false} {
		err := kept.CheckRoom(environment, dir, "*.json", 2)
		if (err == nil) != fits || !fits && fault.CodeOf(err) != fault.ResourceExhausted {
			t.Errorf("%d files: %v", n, err)
		}
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+n))+".json"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A name opens one file of one directory, from any offset within it (R36, R38).
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.tar"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name+".tar") }
	for _, c := range []struct {
		name string
		at   int64
		want string
		code fault.Code
	}{
		{"a", 0, "hello", ""}, {"a", 5, "", ""}, {"a", 6, "", fault.BadRequest}, {"a", -1, "", fault.BadRequest},
		{"b", 0, "", fault.NotFound}, {"../" + filepath.Base(dir) + "/a", 0, "", fault.NotFound}, {"", 0, "", fault.NotFound}, {strings.Repeat("a", 65), 0, "", fault.NotFound},
	} {
		f, err := kept.Open(environment, c.name, c.at, path)
		if fault.CodeOf(err) != c.code {
			t.Errorf("%q at %d: %v", c.name, c.at, err)
		}
		if err != nil {
			continue
		}
		if b, err := io.ReadAll(f); err != nil || string(b) != c.want {
			t.Errorf("%q at %d: %q %v", c.name, c.at, b, err)
		}
		_ = f.Close()
	}
}

// What a refusal tells of a path or an error is public text (R71).
func TestMessagesArePublic(t *testing.T) {
	dir := t.TempDir()
	secret := "SUAIBDPBAUTWCWBKIO6XHQNINK5FWJW4OHLXC3HQ2KFE4PEJUA44CNHTC4"
	missing := filepath.Join(dir, secret, "x")
	for name, err := range map[string]error{
		"relative": kept.CheckPath(secret), "missing": kept.CheckPath(missing), "directory": kept.CheckPath(dir),
		"name": kept.CheckName(secret + "/"), "checkpoint": kept.NoCheckpoint(environment, secret), "file": kept.NoFile(environment, secret),
		"seen": kept.Seen("reading", environment, &os.PathError{Op: "open", Path: missing, Err: os.ErrPermission}),
	} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := kept.CheckPath(filepath.Join(dir, "x")); err != nil {
		t.Error(err)
	}
	for err, code := range map[error]fault.Code{
		context.DeadlineExceeded: fault.DeadlineExceeded, context.Canceled: fault.Cancelled, io.ErrUnexpectedEOF: fault.Unavailable,
		fault.New(fault.NotFound, "x"): fault.NotFound,
	} {
		if got := kept.Seen("reading", environment, err); got.Code != code {
			t.Errorf("%v: %s", err, got.Code)
		}
	}
}
