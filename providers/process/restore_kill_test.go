//go:build linux

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/providers"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
)

// A holder that is killed anywhere in a restore leaves one home or the other,
// whole: the restored one where the restore is proved to have landed, and the one
// of before where it is excluded (law 2). BERTH_PROVE=1 kills at more moments.
func TestRestoreWhoseHolderIsKilled(t *testing.T) {
	t.Parallel()
	rounds := 3
	if os.Getenv("BERTH_PROVE") != "" {
		rounds = 60
	}
	r := newRig(t)
	id, _ := diarist(r)
	verdicts := map[providers.Verdict]int{}
	for n := range rounds {
		mark := r.home(id, "mark")
		if err := os.WriteFile(mark, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		before := r.holders(id)
		op, answered := r.back(id), make(chan struct{})
		go func() {
			defer close(answered)
			r.d.Do(r.context(), op)
		}()
		r.killNew(id, before, time.Duration(n)*time.Millisecond, answered)
		<-answered
		f := r.settled(op)
		verdicts[f.Verdict]++
		_, err := os.Lstat(mark)
		if restored := errors.Is(err, fs.ErrNotExist); restored != (f.Verdict == providers.Landed) {
			t.Fatalf("round %d: %s (%s), and the home of before is there: %t, %v", n, f.Verdict, f.Evidence, !restored, err)
		}
		if _, err := os.Readlink(r.home(id, "l")); n == 0 && (err == nil) != (f.Verdict == providers.Landed) { // which only the captured home has
			t.Fatalf("%s, and the captured link: %v", f.Verdict, err)
		}
		r.must(r.back(id))
		r.nothingAside(id)
	}
	t.Logf("%d holders killed: %v", rounds, verdicts)
}

// settled asks what became of an operation until that is proved.
func (r *rig) settled(op providers.Operation) (f providers.Finding) {
	r.Helper()
	r.until("a verdict", func() bool {
		if f = r.d.Reconcile(r.context(), op); f.Verdict == providers.Open {
			f = r.d.Exclude(r.context(), op)
		}
		return f.Verdict != providers.Open
	})
	return f
}

// killNew kills the first holder that was not there before, some time after it
// is seen; none, if the answer comes first.
func (r *rig) killNew(id events.EnvironmentID, before map[int]events.Custody, after time.Duration, answered chan struct{}) {
	for {
		for pid, c := range r.holders(id) {
			if _, old := before[pid]; !old {
				time.Sleep(after)
				_ = identity.Signal(c, unix.SIGKILL)
				return
			}
		}
		select {
		case <-answered:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// holders are the custodians of a seat, by pid.
func (r *rig) holders(id events.EnvironmentID) map[int]events.Custody {
	want := fmt.Sprintf("\x00%s\x00%s\x00", custodian.Role, r.d.Seat(id).Path)
	out := map[int]events.Custody{}
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		b, err := os.ReadFile(name)
		pid, perr := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || perr != nil || !strings.HasSuffix(string(b), want) {
			continue
		}
		if c, err := identity.Of(pid); err == nil {
			out[pid] = c
		}
	}
	return out
}
