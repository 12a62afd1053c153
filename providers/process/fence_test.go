//go:build linux

package process

import (
	"errors"
	"os"
	"strings"
	"testing"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/seatdir"
	"berth/providers/seat"
)

// R27, R86: one id is one operation, whatever happens in between.
func TestOneIDIsOneOperation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.provisioned(r.plan("exit 0"))
	op := r.op(id, events.VerbStop)
	r.must(op)
	other := op
	other.Arguments.Grace = "1s"
	if out := r.do(other); out.Kind != providers.Refused || out.Fault.Code != fault.Conflict {
		t.Fatalf("the same id with other arguments: %+v", out)
	}
	if f := r.d.Reconcile(r.context(), op); f.Verdict != providers.Landed || f.Facts.State != events.StateStopped {
		t.Fatalf("reconciling a landed operation: %+v", f)
	}
	if f := r.d.Exclude(r.context(), op); f.Verdict != providers.Landed {
		t.Fatalf("excluding a landed operation: %+v", f)
	}

	fenced := r.op(id, events.VerbPause)
	if f := r.d.Reconcile(r.context(), fenced); f.Verdict != providers.Open {
		t.Fatalf("an operation that never came: %+v", f)
	}
	for range 2 {
		if f := r.d.Exclude(r.context(), fenced); f.Verdict != providers.Excluded || f.Evidence == "" {
			t.Fatalf("excluding it: %+v", f)
		}
	}
	if out := r.do(fenced); out.Kind != providers.Refused {
		t.Fatalf("an excluded operation: %+v", out)
	}
}

// A create that was fenced before it arrived never makes anything (H14, decision 16).
func TestAnExcludedReserveNeverLands(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := newID()
	op := r.op(id, events.VerbReserve)
	if f := r.d.Reconcile(r.context(), op); f.Verdict != providers.Open {
		t.Fatalf("before: %+v", f)
	}
	if f := r.d.Exclude(r.context(), op); f.Verdict != providers.Excluded {
		t.Fatalf("excluding: %+v", f)
	}
	if out := r.do(op); out.Kind != providers.Refused {
		t.Fatalf("after: %+v", out)
	}
	if _, err := r.d.Inspect(r.context(), id, ""); fault.CodeOf(err) != fault.NotFound {
		t.Fatalf("inspecting: %v", err)
	}
}

// A start that is fenced after its file was written is not carried out: the
// custodian looks under the lock before it starts anything.
func TestAnExcludedStartNeverLands(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.provisioned(r.plan("echo ran"))
	op := r.op(id, events.VerbStart)
	dir := r.d.Seat(id)
	j, err := dir.LoadJournal()
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.d.startOf(r.context(), &seat.Call{Op: op, Dir: dir, J: j})
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteJSON(seatdir.FileStart, s); err != nil {
		t.Fatal(err)
	}
	j.Set(seatdir.Entry{Operation: op.ID, Verb: op.Verb, Fingerprint: seatdir.Fingerprint(op), Standing: seatdir.Begun})
	if err := dir.SaveJournal(j); err != nil {
		t.Fatal(err)
	}
	if f := r.d.Reconcile(r.context(), op); f.Verdict != providers.Open {
		t.Fatalf("a start that only began: %+v", f)
	}
	if f := r.d.Exclude(r.context(), op); f.Verdict != providers.Excluded {
		t.Fatalf("excluding: %+v", f)
	}
	rep, err := r.d.Spawn(r.context(), dir)
	if err != nil || rep.Fault == nil || rep.Fault.Outcome != fault.NotExecuted {
		t.Fatalf("the custodian started all the same: %+v, %v", rep, err)
	}
	if strings.Contains(r.logs(id), "ran") {
		t.Fatal("the seat ran")
	}
}

// Decision 1: a writer of an epoch that is over is refused.
func TestALowerEpochIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.provisioned(r.plan("exit 0"))
	op := r.op(id, events.VerbStop)
	op.Writer.Epoch = 5
	r.must(op)
	stale := r.op(id, events.VerbDestroy)
	stale.Writer.Epoch = 4
	if out := r.do(stale); out.Kind != providers.Refused || out.Fault.Code != fault.Expired {
		t.Fatalf("a stale writer: %+v", out)
	}
	for i := range r.ids { // the cleanup writes with epoch 1: end it here
		last := r.op(r.ids[i], events.VerbDestroy)
		last.Writer.Epoch = 5
		r.must(last)
	}
	r.ids = nil
}

func TestRefusalsExecuteNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	none := newID()
	p := r.plan("exec /no/such/command")
	p.Command = []string{"no-such-command"}
	id := r.provisioned(p)
	cases := map[string]struct {
		op   providers.Operation
		code fault.Code
	}{
		"no such environment":           {r.op(none, events.VerbStart), fault.NotFound},
		"not an environment id":         {r.op("../../etc", events.VerbReserve), fault.BadRequest},
		"unknown verb":                  {r.op(id, "fork"), fault.Unimplemented},
		"pause of what is not running":  {r.op(id, events.VerbPause), fault.FailedPrecondition},
		"resume of what is not paused":  {r.op(id, events.VerbResume), fault.FailedPrecondition},
		"a second reserve":              {r.op(id, events.VerbReserve), fault.AlreadyExists},
		"extend without a deadline":     {r.op(id, events.VerbExtend), fault.BadRequest},
		"checkpoint without an id":      {r.op(id, events.VerbCheckpoint), fault.BadRequest},
		"export without maxBytes":       {r.op(id, events.VerbExport), fault.BadRequest},
		"delete of no file":             {r.op(id, events.VerbDeleteFile), fault.NotFound},
		"a command that does not exist": {r.op(id, events.VerbStart), fault.FailedPrecondition},
	}
	for name, c := range cases {
		for range 2 { // the same refusal again
			out := r.do(c.op)
			if out.Kind != providers.Refused || out.Fault.Code != c.code || out.Fault.Outcome != fault.NotExecuted {
				t.Errorf("%s: %s, %v, want %s", name, out.Kind, out.Fault, c.code)
			}
		}
	}
	if s := r.inspect(id).State; s != events.StateCreating {
		t.Errorf("after the refusals the environment is %s", s)
	}
	bad := r.op(id, events.VerbStop)
	bad.Arguments.Grace = "11m"
	if out := r.do(bad); out.Kind != providers.Refused {
		t.Errorf("a grace beyond the limit: %+v", out)
	}
	if _, err := os.Stat(r.d.Seat(none).Path); !errors.Is(err, os.ErrNotExist) {
		t.Error("a refusal left a directory")
	}
	wrong := r.op(id, events.VerbStop)
	wrong.Ref = "process:elsewhere:" + string(id)
	if out := r.do(wrong); out.Kind != providers.Refused || out.Fault.Code != fault.Conflict {
		t.Errorf("another reference: %+v", out)
	}
}
