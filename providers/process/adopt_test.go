//go:build linux

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
)

// standInRole makes the test binary a manager that starts what its standard
// input says and then kills itself with SIGKILL.
const standInRole = "__stand-in"

type standInOrders struct {
	Dir   string
	Start providers.Operation
}

func standIn() {
	var o standInOrders
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	d, err := New(Config{Dir: o.Dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	out := d.Do(context.Background(), o.Start)
	if out.Kind != providers.Done {
		fmt.Println(out.Kind, out.Fault)
		os.Exit(1)
	}
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

// The manager is killed; the seat runs on, and is taken up by proved identity.
func TestAdoptAfterTheManagerIsKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.provisioned(r.plan(loop))
	op := r.op(id, events.VerbStart)
	op.Material = nil
	orders, err := json.Marshal(standInOrders{Dir: r.dir, Start: op})
	if err != nil {
		t.Fatal(err)
	}
	orders = []byte(strings.Replace(string(orders), `"Material":"[redacted]"`, `"Material":null`, 1))
	cmd := exec.Command(r.d.Self, standInRole)
	cmd.Stdin = strings.NewReader(string(orders))
	out, err := cmd.Output()
	var ee *exec.ExitError
	if !errors.As(err, &ee) || !ee.ProcessState.Sys().(interface{ Signaled() bool }).Signaled() {
		t.Fatalf("the stand-in was not killed: %v, %s", err, out)
	}
	found := r.d.Reconcile(r.context(), op)
	if found.Verdict != providers.Landed || found.Facts.Custody == nil {
		t.Fatalf("the start of the killed manager: %+v", found)
	}
	f, err := r.d.Adopt(r.context(), id, r.d.Ref(id), found.Facts.Custody)
	if err != nil || f.State != events.StateRunning || f.Incarnation != found.Facts.Incarnation {
		t.Fatalf("adopting: %+v, %v", f, err)
	}
	n := len(r.logs(id))
	r.until("it runs on", func() bool { return len(r.logs(id)) > n })

	other := *found.Facts.Custody
	other.StartTime++
	if _, err := r.d.Adopt(r.context(), id, "", &other); fault.CodeOf(err) != fault.Conflict {
		t.Fatalf("adopting another process: %v", err)
	}
	if out := r.do(op); out.Kind != providers.Done || *out.Facts.Custody != *found.Facts.Custody {
		t.Fatalf("the same start again: %+v", out)
	}
}

func ident(r *rig, id events.EnvironmentID) seatdir.Ident {
	r.Helper()
	var i seatdir.Ident
	if err := r.d.Seat(id).ReadJSON(seatdir.FileIdent, &i); err != nil {
		r.Fatal(err)
	}
	return i
}

// The custodian is killed: its seat dies with it, frozen or not, and the exit
// is proved by identity.
func TestAKilledCustodianTakesItsSeatAlong(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]string{
		"as planned":        nil,
		"without isolation": {OptionIsolation},
		"without anything":  {OptionIsolation, OptionLimits},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.plan("setsid sleep 600 & echo ready; exec sleep 600")
			for _, o := range options {
				p.Options[o] = "none"
			}
			for _, frozen := range []bool{false, true} {
				id, _ := r.running(p)
				r.untilLog(id, "ready")
				if frozen {
					r.must(r.op(id, events.VerbPause))
				}
				i := ident(r, id)
				if err := identity.Signal(i.Custodian, unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
				f := r.untilState(id, events.StateStopped)
				if f.StoppedAt == nil || f.ExitCode != nil {
					t.Fatalf("nobody saw an exit code: %+v", f)
				}
				if _, err := identity.Open(i.Seat); !errors.Is(err, identity.ErrGone) {
					t.Fatalf("the seat: %v", err)
				}
				if left := identity.WithEnvironment(events.EnvEnvironment + "=" + string(id)); len(left) != 0 {
					t.Fatalf("left behind: %+v", left)
				}
			}
		})
	}
}

// A pid that now belongs to somebody else is never signalled, and is no proof
// that the seat lives.
func TestAReusedPIDIsNotTouched(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, _ := r.running(r.plan("sleep 600"))
	r.must(r.op(id, events.VerbStop))
	bystander := exec.Command("/bin/sleep", "600")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	who, err := identity.Of(bystander.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	i := ident(r, id)
	i.Custodian.PID, i.Seat.PID = who.PID, who.PID
	i.Custodian.StartTime, i.Seat.StartTime = who.StartTime-1, who.StartTime-1
	if err := r.d.Seat(id).WriteJSON(seatdir.FileIdent, i); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(r.d.Seat(id).File(seatdir.FileExit)); err != nil {
		t.Fatal(err)
	}
	if f := r.inspect(id); f.State != events.StateStopped {
		t.Fatalf("inspected: %+v", f)
	}
	r.must(r.op(id, events.VerbDestroy))
	if _, err := identity.Open(who); err != nil {
		t.Fatalf("the bystander: %v", err)
	}
}

// A dead manager does not mean an immortal seat.
func TestTheCustodianEnforcesTheLifetime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	far := time.Now().Add(time.Hour)
	id, f := r.running(r.plan("trap '' TERM; sleep 600"), func(op *providers.Operation) { op.Expires = &far })
	dir := r.d.Seat(id)
	var dl seatdir.Deadline
	if err := dir.ReadJSON(seatdir.FileDeadline, &dl); err != nil {
		t.Fatal(err)
	}
	// The hour is taken away, so that no test waits for it and none is too slow for it.
	now := time.Now()
	dl = dl.Move(now.Add(-time.Second), dl.BootID, identity.Boottime(), now)
	if err := dir.WriteJSON(seatdir.FileDeadline, dl); err != nil {
		t.Fatal(err)
	}
	if _, err := custodian.Ask(r.context(), dir, *f.Custody, custodian.Request{Ask: custodian.AskDeadline}); err != nil {
		t.Fatal(err)
	}
	if err := r.d.Close(); err != nil { // nobody manages it any more
		t.Fatal(err)
	}
	r.until("the exit proof", func() bool {
		_, err := os.Stat(dir.File(seatdir.FileExit))
		return err == nil
	})
	var x seatdir.Exit
	if err := dir.ReadJSON(seatdir.FileExit, &x); err != nil {
		t.Fatal(err)
	}
	if x.Why != seatdir.EndExpired || x.Code == nil || *x.Code != 137 {
		t.Fatalf("the proof: %+v", x)
	}
	if out := r.do(r.op(id, events.VerbStart)); out.Kind != providers.Refused {
		t.Fatalf("a start after the end: %+v", out)
	}
}

// What has begun and was cut off by a kill is finished by the same id, or
// fenced, and destroy goes on from anywhere.
func TestDestroyGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	for _, gone := range [][]string{nil, {seatdir.FileExit}, {seatdir.FileIdent}, {seatdir.FileStart, seatdir.FileExit, seatdir.DirHome}} {
		r := newRig(t)
		id, _ := r.running(r.plan("sleep 600"))
		dir := r.d.Seat(id)
		op := r.op(id, events.VerbDestroy)
		r.must(r.op(id, events.VerbStop))
		j, err := dir.LoadJournal()
		if err != nil {
			t.Fatal(err)
		}
		j.Phase = seatdir.PhaseDestroying
		j.Set(seatdir.Entry{Operation: op.ID, Verb: op.Verb, Fingerprint: seatdir.Fingerprint(op), Standing: seatdir.Begun})
		if err := dir.SaveJournal(j); err != nil {
			t.Fatal(err)
		}
		for _, name := range gone {
			if err := os.RemoveAll(dir.File(name)); err != nil {
				t.Fatal(err)
			}
		}
		if f := r.d.Reconcile(r.context(), op); f.Verdict != providers.Open {
			t.Fatalf("a destroy that was cut off: %+v", f)
		}
		r.must(op)
		if f := r.d.Reconcile(r.context(), op); f.Verdict != providers.Landed || f.Facts.State != events.StateAbsent {
			t.Fatalf("after the second try: %+v", f)
		}
	}
}

// A power cut may lose the file that says who holds the seat; it ends the seat too.
func TestWithoutAnIdentTheSeatHasEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, _ := r.running(r.plan("sleep 600"))
	r.must(r.op(id, events.VerbStop))
	for _, name := range []string{seatdir.FileExit, seatdir.FileIdent} {
		if err := os.Remove(r.d.Seat(id).File(name)); err != nil {
			t.Fatal(err)
		}
	}
	if f := r.inspect(id); f.State != events.StateStopped || f.StoppedAt == nil || f.ExitCode != nil {
		t.Fatalf("%+v", f)
	}
}

// Law 2: a seat has one supervisor. One that finds another there starts nothing,
// and what became of its start is not known, for the other may be about it.
func TestASeatHasOneSupervisor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.provisioned(r.plan("exec sleep 600"))
	dir := r.d.Seat(id)
	free, held, err := dir.HoldLife()
	if err != nil || !held {
		t.Fatal(held, err)
	}
	out := r.do(r.op(id, events.VerbStart))
	if out.Kind != providers.Unknown || fault.CodeOf(out.Fault) != fault.Conflict {
		t.Errorf("a start beside another supervisor: %+v", out)
	}
	if _, err := os.Stat(dir.File(seatdir.FileIdent)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("somebody was started: %v", err)
	}
	free()
}
