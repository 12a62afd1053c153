package berth_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth"
	"berth/events/fault"
)

// smallBlocks is a size of the log with which the server keeps its records in
// files of 32 kB.
const smallBlocks = 120_000

// What the server, the snapshot and the checkpoint remember of the log.
const (
	indexFile      = "index.db"
	snapshotFile   = "views.snapshot"
	checkpointFile = "checkpoint.json"
)

// Decision 6, law 5: a log whose files are cut, gone, older or overwritten is
// refused with exit code 12 and the remedy, nothing is written, and no start
// waits for what will not come.
func TestADamagedLogIsRefused(t *testing.T) {
	older, whole := t.TempDir(), t.TempDir()
	fill(t, older, whole)
	last := func(b []string) string { return b[len(b)-1] }
	middle := func(b []string) string { return b[len(b)/2] }
	for name, c := range map[string]struct {
		damage func(t *testing.T, b []string)
		also   []string // files that are gone too
		starts bool
	}{
		"not at all":            {damage: func(*testing.T, []string) {}, starts: true},
		"not at all, no index":  {damage: func(*testing.T, []string) {}, also: []string{indexFile, snapshotFile}, starts: true},
		"its last bytes":        {damage: func(t *testing.T, b []string) { cut(t, last(b), 16) }},
		"its last bytes, index": {damage: func(t *testing.T, b []string) { cut(t, last(b), 16) }, also: []string{indexFile}},
		"its last records":      {damage: func(t *testing.T, b []string) { cut(t, last(b), 2000) }},
		"the newest block":      {damage: func(t *testing.T, b []string) { remove(t, last(b)) }},
		"all of the newest":     {damage: func(t *testing.T, b []string) { write(t, last(b), nil) }},
		"a block":               {damage: func(t *testing.T, b []string) { remove(t, middle(b)) }},
		"a block, index":        {damage: func(t *testing.T, b []string) { remove(t, middle(b)) }, also: []string{indexFile}},
		"the first block":       {damage: func(t *testing.T, b []string) { remove(t, b[0]) }},
		"every block":           {damage: func(t *testing.T, b []string) { remove(t, b...) }},
		"the end of a block":    {damage: func(t *testing.T, b []string) { cut(t, middle(b), 16) }, also: []string{indexFile}},
		"garbage at the end":    {damage: func(t *testing.T, b []string) { scribble(t, last(b), 40) }},
		"garbage, index":        {damage: func(t *testing.T, b []string) { scribble(t, last(b), 4000) }, also: []string{indexFile}},
		"garbage, snapshot":     {damage: func(t *testing.T, b []string) { scribble(t, last(b), 4000) }, also: []string{snapshotFile}},
		"garbage, early":        {damage: func(t *testing.T, b []string) { scribble(t, b[0], 4000) }},
		"an older copy": {damage: func(t *testing.T, b []string) {
			nats := strings.TrimSuffix(b[0], b[0][strings.Index(b[0], "/nats/")+len("/nats"):])
			if err := os.RemoveAll(nats); err != nil {
				t.Fatal(err)
			}
			copyTree(t, filepath.Join(older, "nats"), nats)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := moved(t, whole)
			b := blocks(t, dir)
			if len(b) < 3 {
				t.Fatalf("the log has only %d blocks", len(b))
			}
			c.damage(t, b)
			for _, f := range c.also {
				path := filepath.Join(dir, f)
				if f == indexFile {
					path = filepath.Join(filepath.Dir(b[0]), f)
				}
				remove(t, path)
			}
			if c.starts {
				r := start(t, berth.Options{DataDir: dir, MaxBytes: smallBlocks})
				for _, name := range []string{"one", "two"} {
					r.wait(name, "", "running")
				}
				return
			}
			refusedAsLost(t, dir)
		})
	}
}

// refusedAsLost starts a manager that must refuse, and write nothing.
func refusedAsLost(t *testing.T, dir string) {
	t.Helper()
	before, err := os.ReadFile(filepath.Join(dir, checkpointFile))
	if err != nil {
		t.Fatal(err)
	}
	m, err := berth.New(t.Context(), berth.Options{DataDir: dir, Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0", MinFree: -1, MaxBytes: smallBlocks})
	if err == nil {
		ended := make(chan error, 1)
		go func() { ended <- m.Run(t.Context()) }()
		select {
		case <-m.Ready():
			t.Fatal("it serves")
		case err = <-ended:
		case <-time.After(patience):
			t.Fatal("it waits")
		}
	}
	if fault.ExitOf(err) != fault.ExitLogLost {
		t.Fatalf("got %v, exit %d", err, fault.ExitOf(err))
	}
	if said := err.Error() + fault.From(err).Hint; !strings.Contains(said, "backup") || !strings.Contains(said, "--accept-history-loss") {
		t.Errorf("it does not say what to do: %s", said)
	}
	after, err := os.ReadFile(filepath.Join(dir, checkpointFile))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the checkpoint was written: %s, %v", after, err)
	}
}

// fill makes a data directory whose log has several blocks, and an older copy.
func fill(t *testing.T, older, whole string) {
	t.Helper()
	dir := t.TempDir()
	o := berth.Options{DataDir: dir, MaxBytes: smallBlocks}
	r := start(t, o)
	r.spawn("one")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	copyTree(t, dir, older)
	r = start(t, o)
	for _, name := range []string{"a", "b", "c", "d", "two"} {
		r.spawn(name)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	copyTree(t, dir, whole)
	write(t, filepath.Join(whole, "was"), []byte(dir))
}

// moved is a copy of a data directory that knows its new place.
func moved(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	copyTree(t, from, dir)
	was, err := os.ReadFile(filepath.Join(dir, "was"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "identity.json")
	id, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, bytes.ReplaceAll(id, was, []byte(dir)))
	return dir
}

// blocks are the files of the log's records, oldest first.
func blocks(t *testing.T, dir string) []string {
	t.Helper()
	b, err := filepath.Glob(filepath.Join(dir, "nats/jetstream/*/streams/*/msgs/*.blk"))
	if err != nil || len(b) == 0 {
		t.Fatalf("no blocks: %v", err)
	}
	return b
}

// cut takes n bytes, at most half of it, off the end of a file.
func cut(t *testing.T, path string, n int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, info.Size()-min(n, info.Size()/2))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// scribble overwrites bytes of a file, n bytes before its end, or in its middle.
func scribble(t *testing.T, path string, n int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := len(b) - min(n, len(b)/2)
	for i := range min(32, len(b)-at) {
		b[at+i] ^= 0xa5
	}
	write(t, path, b)
}

func remove(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
