//go:build linux

package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/seatdir"
)

// diary says what it finds in its home, fills it once, and changes it when the
// file `go` is there.
const diary = `echo "found $(cat $HOME/note 2>/dev/null || echo nothing)"
if ! [ -e $HOME/note ]; then
  mkdir $HOME/d; echo x > $HOME/d/f; chmod 640 $HOME/d/f; ln -s note $HOME/l; touch -d 2001-02-03T04:05:06Z $HOME/d/f; chmod 500 $HOME/d
fi
echo one > $HOME/note; echo wrote one
while ! [ -e $HOME/go ]; do sleep 0.05; done
echo two > $HOME/note; rm $HOME/l; rm $HOME/go; echo wrote two
while :; do sleep 0.05; done`

// diarist is a seat with checkpoint `one` whose home has changed since.
func diarist(r *rig) (events.EnvironmentID, events.Facts) {
	r.Helper()
	id, f := r.running(r.plan(diary))
	r.untilLog(id, "wrote one")
	cp := r.op(id, events.VerbCheckpoint)
	cp.Arguments.CheckpointID = "one"
	r.must(cp)
	if err := os.WriteFile(r.home(id, "go"), nil, 0o644); err != nil {
		r.Fatal(err)
	}
	r.untilLog(id, "wrote two")
	return id, f
}

func (r *rig) home(id events.EnvironmentID, name ...string) string {
	return r.d.Seat(id).File(append([]string{seatdir.DirHome}, name...)...)
}

func (r *rig) note(id events.EnvironmentID) string {
	r.Helper()
	b, err := os.ReadFile(r.home(id, "note"))
	if err != nil {
		r.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func (r *rig) back(id events.EnvironmentID) providers.Operation {
	op := r.op(id, events.VerbRestore)
	op.Arguments.CheckpointID = "one"
	return op
}

// nothingAside says that no second home is left.
func (r *rig) nothingAside(id events.EnvironmentID) {
	r.Helper()
	for _, name := range []string{seatdir.DirNext, seatdir.DirOld} {
		if _, err := os.Lstat(r.d.Seat(id).File(name)); !errors.Is(err, fs.ErrNotExist) {
			r.Errorf("%s is left: %v", name, err)
		}
	}
}

// A restore brings the home of the checkpoint back whole, with the same launch
// in another process, from whatever state the seat is in (R63, R64).
func TestRestore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, before := diarist(r)
	for n, verb := range []events.Verb{events.VerbResume, events.VerbPause, events.VerbStop} {
		if verb != events.VerbResume {
			r.must(r.op(id, verb))
		}
		f := r.must(r.back(id))
		if f.Custody == nil || *f.Custody == *before.Custody || f.Incarnation == before.Incarnation || f.Ref != before.Ref {
			t.Fatalf("restore after %s: %+v, it was %+v", verb, f, before)
		}
		r.until("the seat finds its home", func() bool { return strings.Count(r.logs(id), "found one") == n+1 })
		r.nothingAside(id)
		before = f
	}
	if _, err := os.Lstat(r.home(id, "go")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was made since the checkpoint is there: %v", err)
	}
	if to, err := os.Readlink(r.home(id, "l")); err != nil || to != "note" {
		t.Errorf("the link: %q %v", to, err)
	}
	for name, mode := range map[string]fs.FileMode{"d": 0o500, filepath.Join("d", "f"): 0o640, ".": 0o700} {
		st, err := os.Lstat(r.home(id, name))
		if err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want %o", name, st, err, mode)
		}
		if err == nil && name == filepath.Join("d", "f") && st.ModTime().Year() != 2001 {
			t.Errorf("%s was changed %s", name, st.ModTime())
		}
	}
}

// A checkpoint that is not whole is refused before anything is done: the seat
// goes on as it was (law 2, R37).
func TestRestoreRefusesWhatIsNotWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, before := diarist(r)
	captured := r.d.Seat(id).File(seatdir.DirCaptures, "one.tar")
	whole, err := os.ReadFile(captured)
	if err != nil {
		t.Fatal(err)
	}
	damaged := func(b []byte) func() error { return func() error { return os.WriteFile(captured, b, 0o600) } }
	changed := append([]byte(nil), whole...)
	changed[len(changed)/2] ^= 1
	for name, damage := range map[string]func() error{
		"changed": damaged(changed), "cut short": damaged(whole[:len(whole)/2]), "longer": damaged(append(whole[:len(whole):len(whole)], 0)),
		"gone": func() error { return os.Remove(captured) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		op := r.back(id)
		if out := r.do(op); out.Kind != providers.Refused || out.Fault.Code != fault.FailedPrecondition || !strings.Contains(out.Fault.Message, "damaged") {
			t.Errorf("%s: %s %v", name, out.Kind, out.Fault)
		}
		if f := r.d.Reconcile(r.context(), op); f.Verdict != providers.Excluded {
			t.Errorf("%s: reconcile of what was refused: %+v", name, f)
		}
	}
	if f := r.inspect(id); f.State != events.StateRunning || f.Incarnation != before.Incarnation || r.note(id) != "two" {
		t.Errorf("after the refusals: %+v, note %q", f, r.note(id))
	}
	r.nothingAside(id)
}

// A restore that was cut off anywhere is undone before it is called excluded:
// the home of before is there, whole, and the next restore works (law 2).
func TestRestoreThatIsCutOffConverges(t *testing.T) {
	t.Parallel()
	lines := map[string]func(seatdir.Dir) error{
		"laid ready":            func(seatdir.Dir) error { return nil },
		"the old home is aside": func(d seatdir.Dir) error { return os.Rename(d.File(seatdir.DirHome), d.File(seatdir.DirOld)) },
		"the next is in place":  seatdir.Dir.TakeHome,
		"half of it is put back": func(d seatdir.Dir) error {
			return errors.Join(d.TakeHome(), os.Rename(d.File(seatdir.DirHome), d.File(seatdir.DirNext)))
		},
		"the exit proof is gone":  func(d seatdir.Dir) error { return errors.Join(d.TakeHome(), os.Remove(d.File(seatdir.FileExit))) },
		"the old home is settled": func(d seatdir.Dir) error { return errors.Join(d.TakeHome(), d.SettleHome(false)) },
	}
	for name, cut := range lines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			id, _ := diarist(r)
			r.must(r.op(id, events.VerbStop))
			op := r.back(id)
			r.begun(op, seatdir.Begun)
			if err := cut(r.d.Seat(id)); err != nil {
				t.Fatal(err)
			}
			if f := r.d.Reconcile(r.context(), op); f.Verdict != providers.Open {
				t.Fatalf("reconcile: %+v", f)
			}
			for range 2 {
				if f := r.d.Exclude(r.context(), op); f.Verdict != providers.Excluded {
					t.Fatalf("exclude: %+v", f)
				}
			}
			if got := r.note(id); got != "two" || r.inspect(id).State != events.StateStopped {
				t.Fatalf("after the exclusion: note %q, %s", got, r.inspect(id).State)
			}
			r.nothingAside(id)
			r.must(r.back(id))
			r.untilLog(id, "found one")
		})
	}
}

// begun leaves a restore as it is once its holder was asked for.
func (r *rig) begun(op providers.Operation, as seatdir.Standing) {
	r.Helper()
	d := r.d.Seat(op.Environment)
	j, err := d.LoadJournal()
	if err != nil {
		r.Fatal(err)
	}
	var s seatdir.Start
	err = d.ReadJSON(seatdir.FileStart, &s)
	s.Operation, s.Fingerprint, s.Replace = op.ID, seatdir.Fingerprint(op), true
	j.Set(seatdir.Entry{Operation: op.ID, Verb: op.Verb, Fingerprint: s.Fingerprint, Standing: as, Facts: &events.Facts{State: events.StateRunning}})
	next := os.Mkdir(d.File(seatdir.DirNext), 0o700)
	if next == nil {
		next = os.WriteFile(d.File(seatdir.DirNext, "note"), []byte("one"), 0o600)
	}
	if err := errors.Join(err, next, d.WriteJSON(seatdir.FileStart, s), d.SaveJournal(j)); err != nil {
		r.Fatal(err)
	}
}

// What a restore that has landed left aside is dropped by the next one, and the
// home that it brought is not taken back.
func TestRestoreDropsWhatTheLastOneLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, _ := diarist(r)
	r.must(r.op(id, events.VerbStop))
	op := r.back(id)
	r.begun(op, seatdir.Landed)
	if err := r.d.Seat(id).TakeHome(); err != nil {
		t.Fatal(err)
	}
	r.must(r.back(id))
	r.untilLog(id, "found one")
	r.nothingAside(id)
}

// A restore whose holder can't start the seat again is undone by that holder:
// its answer is unknown, since the seat has ended for it, and it is excluded.
func TestRestoreThatCannotStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, _ := diarist(r)
	d := r.d.Seat(id)
	var s seatdir.Start
	if err := d.ReadJSON(seatdir.FileStart, &s); err != nil {
		t.Fatal(err)
	}
	was := s.Seat.Command
	s.Seat.Command = []string{"/no/such/program"}
	if err := d.WriteJSON(seatdir.FileStart, s); err != nil {
		t.Fatal(err)
	}
	op := r.back(id)
	if out := r.do(op); out.Kind != providers.Unknown || out.Fault.Outcome != fault.Unknown {
		t.Fatalf("%s %v", out.Kind, out.Fault)
	}
	if f := r.d.Reconcile(r.context(), op); f.Verdict != providers.Excluded {
		t.Fatalf("reconcile: %+v", f)
	}
	if out := r.do(op); out.Kind != providers.Refused {
		t.Fatalf("the same operation again: %s %v", out.Kind, out.Fault)
	}
	if f := r.inspect(id); f.State != events.StateStopped || r.note(id) != "two" {
		t.Fatalf("%s, note %q", f.State, r.note(id))
	}
	r.nothingAside(id)
	s.Seat.Command = was
	if err := d.WriteJSON(seatdir.FileStart, s); err != nil {
		t.Fatal(err)
	}
	r.must(r.back(id))
	r.untilLog(id, "found one")
}

// A seat that begins from a checkpoint of another one has its home, beside the
// original, which goes on; what can't be begun from is refused before anything is made.
func TestBeginsFromACheckpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, before := diarist(r)
	p := r.plan(diary)
	for _, value := range []string{"x", string(id) + "/none", string(id) + "/../one", string(newID()) + "/one"} {
		p.Options[providers.OptionFrom] = value
		if pre, err := r.d.Preflight(r.context(), p); err == nil {
			if _, failed := pre.Failed(); !failed {
				t.Errorf("from %s: %+v", value, pre.Checks)
			}
		}
	}
	p.Options[providers.OptionFrom] = string(id) + "/one"
	pre, err := r.d.Preflight(r.context(), p)
	if c, failed := pre.Failed(); err != nil || failed {
		t.Fatalf("%v %+v", err, c)
	}
	other := r.provisioned(p)
	d := r.d.Seat(other)
	if j, err := d.LoadJournal(); err != nil || j.Phase != seatdir.PhaseProvisioned {
		t.Fatalf("%v %+v", err, j)
	}
	if r.note(other) != "one" {
		t.Errorf("the fork begins with %q", r.note(other))
	}
	r.must(r.op(other, events.VerbStart))
	r.untilLog(other, "found one")
	if f := r.inspect(id); f.Incarnation != before.Incarnation || r.note(id) != "two" {
		t.Errorf("the original: %+v, note %q", f, r.note(id))
	}
}
