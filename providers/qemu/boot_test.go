//go:build linux

package qemu

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/machine"
	"berth/providers/seat"
)

// counting is a seat whose memory can be told from its output: it counts what
// it is told, and can draw random bytes. It ends with 7.
const counting = `n=0; echo ready $BERTH_SEAT; cat "$BERTH_MATERIAL/token" | wc -c
while read x; do
	n=$((n+1)); echo "$x" >>notes
	case $x in now) echo "it is $(date +%s);";; show) echo "notes: $(echo $(cat notes));";; rand) echo "rand=$(od -An -tx1 -N8 /dev/urandom | tr -d ' ');";; *) echo "$x is number $n on $(uname -n)";; esac
done; exit 7`

// say types a line at the seat's terminal.
func (r *rig) say(id events.EnvironmentID, line string) error {
	who, err := seat.ReadIdent(r.d.Seat(id))
	if err != nil {
		return err
	}
	_, err = custodian.Ask(r.context(), r.d.Seat(id), who.Custodian, custodian.Request{Ask: custodian.AskInput, Data: []byte(line)})
	return err
}

func (r *rig) tell(id events.EnvironmentID, line, answer string) string {
	r.Helper()
	if err := r.say(id, line+"\n"); err != nil {
		r.Fatalf("typing %q: %v", line, err)
	}
	return r.untilLog(id, answer)
}

// One machine boots, and everything is shown on it and on two that begin from
// its memory: boots are dear under emulation.
func TestAMachinesLife(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	p := plan(counting)
	p.Options[OptionCheckpoint] = "memory"
	p.Resources = events.Resources{MemoryMiB: 224, CPUs: events.MustQuantity("1")}
	canary := []byte("canary-3f9c2b71d05e")
	id, facts := r.running(p, func(op *providers.Operation) {
		if op.Verb == events.VerbProvision {
			op.Material = providers.Material{"token": canary}
		}
	})
	r.untilLog(id, "ready demo")
	r.untilLog(id, fmt.Sprint(len(canary)))
	r.tell(id, "one", "one is number 1 on demo")
	r.pauses(id)
	cp := r.remembers(id)
	r.capturesHome(id)
	r.adopts(id, facts)
	r.hidesMaterial(id, canary)

	r.forks(id, cp, p)

	r.tell(id, "two", "two is number 2 on demo") // the original has gone on
	r.restores(id, facts)
	// The command ends by this, and its machine may be gone before it answers.
	_ = r.say(id, "\x04")
	r.until("the exit of the command", func() bool { return r.inspect(id).State == events.StateStopped })
	f := r.inspect(id)
	if f.ExitCode == nil || *f.ExitCode != 7 || f.StoppedAt == nil {
		t.Errorf("after the end: %+v", f)
	}
}

// pauses shows a real pause (R9): nothing moves, and nothing is lost.
func (r *rig) pauses(id events.EnvironmentID) {
	r.Helper()
	if f := r.must(r.op(id, events.VerbPause)); f.State != events.StatePaused {
		r.Errorf("paused: %+v", f)
	}
	if err := r.say(id, "lost\n"); fault.CodeOf(err) != fault.FailedPrecondition {
		r.Errorf("typing at a paused machine: %v", err)
	}
	if f := r.must(r.op(id, events.VerbResume)); f.State != events.StateRunning {
		r.Errorf("resumed: %+v", f)
	}
}

// remembers makes a memory checkpoint, exports it and reads it back (R36).
func (r *rig) remembers(id events.EnvironmentID) events.Checkpoint {
	r.Helper()
	op := r.op(id, events.VerbCheckpoint)
	op.Arguments.CheckpointID = "golden"
	cp := *r.must(op).Checkpoint
	if cp.Kind != "memory" || cp.ByteLength < 1<<20 || r.inspect(id).State != events.StateRunning {
		r.Errorf("memory checkpoint: %+v", cp)
	}
	if f := r.d.Reconcile(r.context(), op); f.Verdict != providers.Landed || *f.Facts.Checkpoint != cp {
		r.Errorf("reconcile of the checkpoint: %+v", f)
	}
	x := r.op(id, events.VerbExport)
	x.Arguments.CheckpointID, x.Arguments.MaxBytes = "golden", cp.ByteLength
	file := *r.must(x).File
	in, err := r.d.ReadFile(r.context(), id, "", file.ID, 0)
	if err != nil {
		r.Fatal(err)
	}
	defer in.Close()
	if n, err := io.Copy(io.Discard, in); n != cp.ByteLength || err != nil || file.SHA256 != cp.SHA256 {
		r.Errorf("the exported file: %d bytes, %v, %+v", n, err, file)
	}
	return cp
}

// capturesHome shows a cold capture: what the seat wrote to its home.
func (r *rig) capturesHome(id events.EnvironmentID) {
	r.Helper()
	dir := r.d.Seat(id)
	who, err := seat.ReadIdent(dir)
	if err != nil {
		r.Fatal(err)
	}
	b, _ := json.Marshal(machine.Save{Operation: "operation-of-the-test", ID: "home", Kind: "cold"})
	if _, err := custodian.Ask(r.context(), dir, who.Custodian, custodian.Request{Ask: machine.AskSave, Data: b}); err != nil {
		r.Fatal(err)
	}
	raw, err := os.ReadFile(dir.File(machine.StateFile("home")))
	if err != nil {
		r.Fatal(err)
	}
	for tr := tar.NewReader(bytes.NewReader(raw)); ; {
		h, err := tr.Next()
		if err != nil {
			r.Fatalf("the capture has no notes: %v", err)
		}
		if h.Name == "notes" {
			if b, err := io.ReadAll(tr); string(b) != "one\n" || err != nil {
				r.Errorf("notes: %q %v", b, err)
			}
			return
		}
	}
}

// adopts goes on with another manager, which takes nothing for granted.
func (r *rig) adopts(id events.EnvironmentID, was events.Facts) {
	r.Helper()
	if err := r.d.Close(); err != nil {
		r.Fatal(err)
	}
	d, err := New(Config{Dir: r.d.Dir})
	if err != nil {
		r.Fatal(err)
	}
	r.d = d
	f, err := d.Adopt(r.context(), id, was.Ref, was.Custody)
	if err != nil || f.State != events.StateRunning || f.Incarnation != was.Incarnation {
		r.Errorf("adoption: %+v %v", f, err)
	}
	other := *was.Custody
	other.StartTime++
	if _, err := d.Adopt(r.context(), id, was.Ref, &other); fault.CodeOf(err) != fault.Conflict {
		r.Errorf("adoption of another process: %v", err)
	}
}

// hidesMaterial: no secret is in a file but its own, nor on a command line (R54, R55).
func (r *rig) hidesMaterial(id events.EnvironmentID, secret []byte) {
	r.Helper()
	dir := r.d.Seat(id)
	for _, name := range []string{seatdir.FileJournal, seatdir.FileStart, seatdir.FileIdent, "qemu.log"} {
		if b, err := os.ReadFile(dir.File(name)); err != nil || bytes.Contains(b, secret) {
			r.Errorf("%s holds material, or can't be read: %v", name, err)
		}
	}
	who, err := seat.ReadIdent(dir)
	if err != nil {
		r.Fatal(err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", who.Seat.PID))
	if err != nil || bytes.Contains(b, secret) || !bytes.Contains(b, []byte("-uuid\x00"+string(id))) {
		r.Errorf("QEMU's command line: %q %v", b, err)
	}
}

var randRE = regexp.MustCompile(`rand=([0-9a-f]{16});`)

// forks begins two machines from the checkpoint, beside the original: each
// has its memory, and time, randomness and a name of its own. One of them then
// ends at its deadline without a manager (scenario 30), the other is lost
// with its supervisor.
func (r *rig) forks(id events.EnvironmentID, cp events.Checkpoint, p events.Plan) {
	r.Helper()
	p.Options = map[string]string{providers.OptionFrom: string(id) + "/" + cp.ID}
	other := p
	other.Resources.MemoryMiB++
	refused := newID()
	r.ids = append(r.ids, refused)
	for _, v := range []events.Verb{events.VerbReserve, events.VerbProvision} {
		op := r.op(refused, v)
		op.Plan = other
		if out := r.do(op); v == events.VerbProvision && (out.Kind != providers.Refused || out.Fault.Code != fault.FailedPrecondition) {
			r.Errorf("a checkpoint of another machine: %s %v", out.Kind, out.Fault)
		}
	}
	var forks []events.EnvironmentID
	drawn := map[string]bool{}
	for i := range 2 {
		fork, _ := r.running(p, func(op *providers.Operation) {
			op.Alias = events.Alias(fmt.Sprintf("fork%d", i))
			if op.Verb == events.VerbReserve {
				far := time.Now().Add(time.Hour)
				op.Expires = &far
			}
		})
		forks = append(forks, fork)
		r.tell(fork, "more", fmt.Sprintf("more is number 2 on fork%d", i))
		if strings.Contains(r.logs(fork), "one is number") {
			r.Errorf("a fork repeats what its original said")
		}
		r.tell(fork, "rand", "rand=")
		r.until("random bytes", func() bool { return randRE.MatchString(r.logs(fork)) })
		drawn[randRE.FindStringSubmatch(r.logs(fork))[1]] = true
	}
	if len(drawn) != len(forks) {
		r.Errorf("forks drew the same random bytes: %v", drawn)
	}
	r.expires(forks[0])
	r.isLost(forks[1])
}

func (r *rig) expires(id events.EnvironmentID) {
	r.Helper()
	dir := r.d.Seat(id)
	var dl seatdir.Deadline
	if err := dir.ReadJSON(seatdir.FileDeadline, &dl); err != nil {
		r.Fatal(err)
	}
	boot, err := identity.BootID()
	if err != nil {
		r.Fatal(err)
	}
	now := time.Now()
	if err := dir.WriteJSON(seatdir.FileDeadline, dl.Move(now, boot, identity.Boottime(), now)); err != nil {
		r.Fatal(err)
	}
	who, err := seat.ReadIdent(dir)
	if err != nil {
		r.Fatal(err)
	}
	if _, err := custodian.Ask(r.context(), dir, who.Custodian, custodian.Request{Ask: custodian.AskDeadline}); err != nil {
		r.Fatal(err)
	}
	// No driver is asked: the supervisor does it, and writes the proof.
	var x seatdir.Exit
	r.until("the end at the deadline", func() bool { return dir.ReadJSON(seatdir.FileExit, &x) == nil })
	if x.Why != seatdir.EndExpired || x.Code != nil {
		r.Errorf("the proof: %+v", x)
	}
	if _, err := identity.Open(who.Seat); err != identity.ErrGone {
		r.Errorf("QEMU lives after the proof of its end: %v", err)
	}
}

func (r *rig) isLost(id events.EnvironmentID) {
	r.Helper()
	who, err := seat.ReadIdent(r.d.Seat(id))
	if err != nil {
		r.Fatal(err)
	}
	if err := identity.Signal(who.Custodian, unix.SIGKILL); err != nil {
		r.Fatal(err)
	}
	r.until("the loss", func() bool { return r.inspect(id).State == events.StateStopped })
	if f := r.inspect(id); f.ExitCode != nil || f.StoppedAt == nil {
		r.Errorf("a machine whose supervisor was killed: %+v", f)
	}
	if _, err := identity.Open(who.Seat); err != identity.ErrGone {
		r.Errorf("QEMU outlived its supervisor: %v", err)
	}
}
