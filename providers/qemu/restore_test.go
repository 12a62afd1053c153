//go:build linux

package qemu

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/machine"
	"berth/providers/seat"
)

var timeRE = regexp.MustCompile(`it is ([0-9]+);`)

func (r *rig) back(id events.EnvironmentID, checkpoint string) providers.Operation {
	op := r.op(id, events.VerbRestore)
	op.Arguments.CheckpointID = checkpoint
	return op
}

// restores puts the machine back in place: it goes on where its checkpoint was,
// as another process, with the time of now (scenario 37). Then it boots with the
// home of a cold one.
func (r *rig) restores(id events.EnvironmentID, was events.Facts) {
	r.Helper()
	r.refusesDamaged(id)
	r.tell(id, "kept", "kept is number 3 on demo")
	r.must(r.op(id, events.VerbPause))
	op := r.back(id, "golden")
	f := r.must(op)
	if f.Ref != was.Ref || f.Incarnation == was.Incarnation || *f.Custody == *was.Custody {
		r.Errorf("restored: %+v, it was %+v", f, was)
	}
	if again := r.must(op); again.Incarnation != f.Incarnation {
		r.Errorf("one restore, two machines: %+v", again)
	}
	r.tell(id, "again", "again is number 2 on demo")
	if got := r.inspect(id); got.State != events.StateRunning || got.Incarnation != f.Incarnation {
		r.Errorf("after the restore: %+v", got)
	}
	r.tell(id, "now", "it is ")
	var said []string
	r.until("the guest's time", func() bool { said = timeRE.FindStringSubmatch(r.logs(id)); return said != nil })
	at, err := strconv.ParseInt(said[1], 10, 64)
	if d := time.Since(time.Unix(at, 0)).Abs(); err != nil || d > time.Minute {
		r.Errorf("the guest's clock is off by %s (%v)", d, err)
	}
	r.must(r.back(id, "home"))
	r.tell(id, "first", "first is number 1 on demo") // another boot
	r.tell(id, "show", "notes: one first show;")
}

// refusesDamaged: a checkpoint that is not whole is refused while the machine
// goes on (law 2, R37).
func (r *rig) refusesDamaged(id events.EnvironmentID) {
	r.Helper()
	before := r.inspect(id)
	file := r.d.Seat(id).File(machine.StateFile("golden"))
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		r.Fatal(err)
	}
	defer f.Close()
	flip := func() {
		var b [1]byte
		if _, err := f.ReadAt(b[:], 1<<20); err != nil {
			r.Fatal(err)
		}
		b[0] ^= 1
		if _, err := f.WriteAt(b[:], 1<<20); err != nil {
			r.Fatal(err)
		}
	}
	flip()
	op := r.back(id, "golden")
	if out := r.do(op); out.Kind != providers.Refused || out.Fault.Code != fault.FailedPrecondition {
		r.Errorf("a damaged checkpoint: %s %v", out.Kind, out.Fault)
	}
	flip()
	if out := r.do(r.back(id, "none")); out.Kind != providers.Refused || out.Fault.Code != fault.NotFound {
		r.Errorf("a checkpoint that is not there: %s %v", out.Kind, out.Fault)
	}
	if got := r.inspect(id); got.State != before.State || got.Incarnation != before.Incarnation {
		r.Errorf("after the refusals: %+v, it was %+v", got, before)
	}
}

// A memory checkpoint of another machine is refused before anything is done.
func TestRestoreOfAnotherMachine(t *testing.T) {
	r := newRig(t)
	id := newID()
	dir := r.d.Seat(id)
	if err := dir.Make(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir.File(seatdir.DirCaptures), 0o700); err != nil {
		t.Fatal(err)
	}
	cp := events.Checkpoint{ID: "m", Kind: "memory"}
	kept := machine.Kept{Kept: seatdir.Kept{Checkpoint: &cp}, Hardware: &machine.Hardware{MemoryMiB: 256}}
	if err := dir.WriteJSON(seatdir.ManifestFile("m"), kept); err != nil {
		t.Fatal(err)
	}
	c := &seat.Call{Op: r.back(id, "m"), Dir: dir, J: &seatdir.Journal{}}
	for memory, want := range map[int64]fault.Code{256: "", 257: fault.FailedPrecondition} {
		if err := dir.WriteJSON(seatdir.FileStart, machine.Start{Hardware: machine.Hardware{MemoryMiB: memory}}); err != nil {
			t.Fatal(err)
		}
		s, err := r.d.restore(t.Context(), c, cp, nil)
		if fault.CodeOf(err) != want {
			t.Errorf("of a machine with %d MiB: %v, want %q", memory, err, want)
		}
		if start, ok := s.(machine.Start); want == "" && (!ok || !start.Replace || start.Restore.File != machine.StateFile("m") || start.Operation != c.Op.ID) {
			t.Errorf("begins with %+v", s)
		}
	}
}

// A restore whose machine can't be started has ended what was there: its answer
// is unknown, it is proved never to land, and what is shown has stopped (law 2).
func TestRestoreThatCannotStart(t *testing.T) {
	r := newRig(t)
	id := newID()
	dir := r.d.Seat(id)
	state := []byte("the memory of a machine")
	sum := sha256.Sum256(state)
	cp := events.Checkpoint{ID: "m", Kind: "cold", ByteLength: int64(len(state)), SHA256: hex.EncodeToString(sum[:])}
	boot, err := identity.BootID()
	err = errors.Join(err, dir.Make(), os.Mkdir(dir.File(seatdir.DirCaptures), 0o700), os.WriteFile(dir.File(machine.StateFile("m")), state, 0o600))
	gone := events.Custody{BootID: boot, PID: os.Getpid(), StartTime: 1}
	for name, v := range map[string]any{
		seatdir.ManifestFile("m"): machine.Kept{Kept: seatdir.Kept{Checkpoint: &cp}},
		seatdir.FileStart:         machine.Start{Environment: id, QEMU: "/no/such/program", SlotsDir: filepath.Join(r.d.Dir, bootDir)},
		seatdir.FileIdent:         seatdir.Ident{Custodian: gone, Seat: gone},
		seatdir.FileExit:          seatdir.Exit{Seat: gone, Why: seatdir.EndStopped, At: time.Now()},
	} {
		err = errors.Join(err, dir.WriteJSON(name, v))
	}
	j := &seatdir.Journal{Environment: id, Ref: r.d.Ref(id), Plan: plan("true"), Phase: seatdir.PhaseStarted}
	if err := errors.Join(err, dir.SaveJournal(j)); err != nil {
		t.Fatal(err)
	}
	op := r.back(id, "m")
	if out := r.do(op); out.Kind != providers.Unknown || out.Fault.Outcome != fault.Unknown {
		t.Fatalf("%s %v", out.Kind, out.Fault)
	}
	if f := r.d.Reconcile(r.context(), op); f.Verdict != providers.Excluded {
		t.Errorf("reconcile: %+v", f)
	}
	if f := r.inspect(id); f.State != events.StateStopped {
		t.Errorf("it is %s", f.State)
	}
	r.must(r.op(id, events.VerbDestroy))
}
