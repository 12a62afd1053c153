//go:build linux

package qemu

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/machine"
	"berth/providers/seat"
)

// remembering runs a machine with a memory checkpoint m, in which it was told
// one thing.
func (r *rig) remembering() (events.EnvironmentID, events.Facts) {
	r.Helper()
	p := plan(counting)
	p.Options[OptionCheckpoint] = "memory"
	id, f := r.running(p, func(op *providers.Operation) {
		if op.Verb == events.VerbProvision {
			op.Material = providers.Material{"token": []byte("token")}
		}
	})
	r.tell(id, "one", "one is number 1 on demo")
	op := r.op(id, events.VerbCheckpoint)
	op.Arguments.CheckpointID = "m"
	r.must(op)
	return id, f
}

// goesOn: the machine is the one that it was, and has what it had in memory. It
// may be about to stand still for one that is dead already, and takes no input
// until it has seen that.
func (r *rig) goesOn(id events.EnvironmentID, was events.Facts, line string, number int) {
	r.Helper()
	r.until("typing "+line, func() bool {
		err := r.say(id, line+"\n")
		if err != nil && fault.From(err).Outcome != fault.NotExecuted {
			r.Fatalf("typing %q: %v", line, err)
		}
		return err == nil
	})
	r.untilLog(id, fmt.Sprintf("%s is number %d on demo", line, number))
	if got := r.inspect(id); got.State != was.State || got.Incarnation != was.Incarnation {
		r.Errorf("it is %+v, and was %+v", got, was)
	}
}

// A restore whose new machine does not load, or does not fit beside the old one,
// is refused with nothing executed, and the old one goes on with its memory
// (laws 2 and 5).
func TestRestoreThatFailsLeavesTheMachine(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	id, was := r.remembering()
	dir := r.d.Seat(id)

	refused := func(what string, code fault.Code, says string) {
		t.Helper()
		op := r.back(id, "m")
		out := r.do(op)
		if out.Kind != providers.Refused || out.Fault.Code != code || out.Fault.Outcome != fault.NotExecuted || !strings.Contains(out.Fault.Error(), says) {
			t.Errorf("%s: %s %+v", what, out.Kind, out.Fault)
		}
		if f := r.d.Reconcile(r.context(), op); f.Verdict != providers.Excluded {
			t.Errorf("%s: %+v", what, f)
		}
	}
	r.d.available = func() (int64, error) { return DefaultMemory + machine.OverheadMiB(DefaultMemory) - 1, nil }
	refused("without memory for both", fault.ResourceExhausted, "MiB available")
	r.d.available = func() (int64, error) { return DefaultMemory + machine.OverheadMiB(DefaultMemory), nil }
	r.goesOn(id, was, "two", 2)

	// Whole by its digest, and no memory of a machine.
	whole, err := os.ReadFile(dir.File(machine.StateFile("m")))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := loadKept(dir, "m")
	if err != nil {
		t.Fatal(err)
	}
	good := *kept.Checkpoint
	broken := bytes.Clone(whole[:len(whole)/2])
	sum := sha256.Sum256(broken)
	kept.Checkpoint.ByteLength, kept.Checkpoint.SHA256 = int64(len(broken)), hex.EncodeToString(sum[:])
	if err := errors.Join(os.WriteFile(dir.File(machine.StateFile("m")), broken, 0o600), dir.WriteJSON(seatdir.ManifestFile("m"), kept)); err != nil {
		t.Fatal(err)
	}
	refused("a memory that does not load", fault.FailedPrecondition, "goes on")
	r.goesOn(id, was, "three", 3)

	kept.Checkpoint = &good
	if err := errors.Join(os.WriteFile(dir.File(machine.StateFile("m")), whole, 0o600), dir.WriteJSON(seatdir.ManifestFile("m"), kept)); err != nil {
		t.Fatal(err)
	}
	f := r.must(r.back(id, "m"))
	if f.Incarnation == was.Incarnation {
		t.Errorf("it is the same machine: %+v", f)
	}
	r.goesOn(id, f, "other", 2)
	if left, _ := filepath.Glob(dir.File("*.sock")); len(left) != 1 {
		t.Errorf("sockets are left behind: %v", left)
	}
}

// A supervisor that is killed anywhere in a restore leaves the old machine with
// its memory, where the restore is excluded, or was the new one's, where it has
// landed: never both, and no QEMU that nobody holds. BERTH_PROVE=1 kills at more
// moments.
func TestRestoreWhoseSupervisorIsKilled(t *testing.T) {
	needMachines(t)
	rounds := 5
	if os.Getenv("BERTH_PROVE") != "" {
		rounds = 60
	}
	r := newRig(t)
	id, _ := r.remembering()
	verdicts := map[string]int{}
	for n := range rounds {
		begin := time.Now()
		was := r.must(r.back(id, "m"))
		takes := time.Since(begin)
		r.tell(id, fmt.Sprintf("since%d", n), fmt.Sprintf("since%d is number 2 on demo", n))
		op, answered := r.back(id, "m"), make(chan struct{})
		go func() {
			defer close(answered)
			r.d.Do(r.context(), op)
		}()
		r.killNew(id, was.Custody.PID, takes*time.Duration(n)/time.Duration(rounds), answered)
		<-answered
		f := r.d.Reconcile(r.context(), op)
		if f.Verdict == providers.Open {
			f = r.d.Exclude(r.context(), op)
		}
		got := r.inspect(id)
		verdicts[string(f.Verdict)+", "+string(got.State)]++
		switch f.Verdict {
		case providers.Excluded:
			r.goesOn(id, was, "still"+strconv.Itoa(n), 3)
		case providers.Landed:
			if got.Incarnation == was.Incarnation {
				t.Fatalf("round %d: it has landed, and %+v", n, got)
			}
		default:
			t.Fatalf("round %d: %+v", n, f)
		}
		want := 1
		if got.State == events.StateStopped {
			want = 0
		}
		r.until("one QEMU at the most", func() bool { return len(r.machines(id)) == want })
		r.until("one group at the most", func() bool { return len(r.groups(id)) <= want*maxParents })
	}
	t.Logf("%d supervisors killed: %v", rounds, verdicts)
}

// killNew kills the first supervisor that is not the old one, some time after it
// is seen; none, if the answer comes first.
func (r *rig) killNew(id events.EnvironmentID, old int, after time.Duration, answered chan struct{}) {
	want := fmt.Sprintf("\x00%s\x00%s\x00", machine.Role, r.d.Seat(id).Path)
	for {
		for _, c := range r.processes(want) {
			if c.PID != old {
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

// maxParents is below how many directories one group is at the most.
const maxParents = 5

// machines are the QEMUs of an environment.
func (r *rig) machines(id events.EnvironmentID) []events.Custody {
	return r.processes("\x00-uuid\x00" + string(id) + "\x00")
}

// processes are those whose command line has a part.
func (r *rig) processes(part string) (out []events.Custody) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		b, err := os.ReadFile(name)
		pid, perr := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || perr != nil || !strings.Contains(string(b), part) {
			continue
		}
		if c, err := identity.Of(pid); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// Where the plan asks for it, the old machine ends first, and a host that does
// not hold both is enough.
func TestRestoreAfter(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	p := plan(counting)
	p.Options = map[string]string{OptionCheckpoint: "memory", OptionRestore: "after"}
	id, _ := r.running(p)
	op := r.op(id, events.VerbCheckpoint)
	op.Arguments.CheckpointID = "m"
	r.must(op)
	r.d.available = func() (int64, error) { return 0, nil }
	was, err := seat.ReadIdent(r.d.Seat(id))
	if err != nil {
		t.Fatal(err)
	}
	f := r.must(r.back(id, "m"))
	r.goesOn(id, f, "one", 1)
	if _, err := identity.Open(was.Seat); !errors.Is(err, identity.ErrGone) {
		t.Errorf("the old machine: %v", err)
	}
}

// A machine that was booted with a home beside the old one shows its sign anew,
// also one that it gave before it had the place, and what it said until then is
// not lost and not torn.
func TestRestoreShowsItsSignAnew(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	for _, ready := range []events.ReadySign{{Kind: events.SignFD}, {Kind: events.SignPattern, Pattern: "^all is up$"}} {
		p := plan("echo all is up; (echo up >&3) 2>/dev/null; cat note; echo said; read x; echo kept >note; echo noted; read x")
		p.Connector = &events.Connector{Name: "exec", Ready: &ready}
		id, _ := r.running(p)
		was := func() *events.Readiness { return r.inspect(id).Ready }
		r.until("the sign", func() bool { return was() != nil })
		if err := r.say(id, "go\n"); err != nil {
			t.Fatal(err)
		}
		r.untilLog(id, "noted")
		op := r.op(id, events.VerbCheckpoint)
		op.Arguments.CheckpointID = "home"
		r.must(op)
		first, said := was().Since, len(r.logs(id))
		r.must(r.back(id, "home"))
		r.until("the sign of the new machine", func() bool { got := was(); return got != nil && got.Since.After(first) })
		var after string
		r.until("what it says", func() bool { after = r.logs(id)[said:]; return strings.Contains(after, "said") })
		if got := strings.Join(strings.Fields(after), " "); got != "all is up kept said" {
			t.Errorf("%s: it says %q", ready, got)
		}
		r.must(r.op(id, events.VerbDestroy))
	}
}
