package plane_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/commands"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func refused(t *testing.T, err error, code fault.Code, outcome fault.Outcome) {
	t.Helper()
	if c, o := commandstest.Code(err); c != code || o != outcome {
		t.Errorf("refused with %s, %s (%v); want %s, %s", c, o, err, code, outcome)
	}
}

// One whole life, each command answered as the contract says.
func TestOneLife(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	s := w.Spawn("demo")
	if s.Name != "demo" || s.Owner != "local" || s.GoalID != "spawn-demo" || len(s.UID) != 26 || s.Environment == "" || len(s.Fingerprint) != 64 {
		t.Errorf("the acceptance is %+v", s)
	}
	if g := w.Ended("spawn-demo"); g.State != events.GoalSucceeded || g.Allocated.UID != s.UID {
		t.Errorf("the goal ended %+v", g)
	}
	ins := must[commands.InspectResult](t)(commandstest.Ask(w, commands.Inspect, "", commands.Named{Name: "demo", UID: string(s.UID)}))
	if !ins.Live || ins.Slot.Phase != "active" || ins.Head.Gate != "open" || ins.Environment.ID != s.Environment || ins.Consistency != "snapshot" || ins.AsOf == 0 {
		t.Errorf("inspect: %+v", ins)
	}
	extended := must[commands.WriteResult](t)(commandstest.Ask(w, commands.Extend, "x-1", commands.ExtendInput{Named: commands.Named{Name: "demo"}, By: "30m"}))
	if !extended.Changed || extended.Verb != events.VerbExtend || extended.Deadline == "" {
		t.Errorf("extend: %+v", extended)
	}
	operated(t, w, extended.Operation)
	paused := must[commands.WriteResult](t)(commandstest.Ask(w, commands.Pause, "p-1", commands.SeatInput{Named: commands.Named{Name: "demo"}}))
	operated(t, w, paused.Operation)
	resumed := must[commands.WriteResult](t)(commandstest.Ask(w, commands.Resume, "p-2", commands.SeatInput{Named: commands.Named{Name: "demo"}}))
	operated(t, w, resumed.Operation)
	exportOf(t, w)
	lists(t, w, s)

	retired := must[commands.WriteResult](t)(commandstest.Ask(w, commands.Retire, "r-1", commands.RetireInput{Named: commands.Named{Name: "demo"}, Grace: "1s"}))
	if retired.Operation != events.OperationID("retire-"+string(s.UID)) || !retired.Changed {
		t.Errorf("retire: %+v", retired)
	}
	waited := must[commands.WaitResult](t)(commandstest.Ask(w, commands.Wait, "", commands.WaitInput{Name: "demo", UID: string(s.UID), Until: []string{"retired"}}))
	if !waited.Met {
		t.Errorf("retire did not end: %+v", waited)
	}
	_, err := commandstest.Ask(w, commands.Pause, "p-3", commands.SeatInput{Named: commands.Named{Name: "demo"}})
	refused(t, err, fault.NotFound, fault.NotExecuted)
	all := must[commands.LsResult](t)(commandstest.Ask(w, commands.Ls, "", commands.LsInput{All: true}))
	if len(all.Items) != 1 || all.Items[0].Status != "retired" {
		t.Errorf("ls --all: %+v", all.Items)
	}
}

func operated(t *testing.T, w *commandstest.World, op events.OperationID) {
	t.Helper()
	r := must[commands.WaitResult](t)(commandstest.Ask(w, commands.Wait, "", commands.WaitInput{Name: "demo", Operation: string(op)}))
	if !r.Met || r.Operation == nil || r.Operation.State != "confirmed" {
		t.Fatalf("operation %s: %+v", op, r)
	}
}

// A restore to a checkpoint: it ends with that checkpoint, and one that is not
// there is refused before anything is done.
func restoreOf(t *testing.T, w *commandstest.World, captured json.RawMessage) {
	t.Helper()
	in := commands.RestoreInput{Named: commands.Named{Name: "demo"}, Checkpoint: "no-such-checkpoint"}
	_, err := commandstest.Ask(w, commands.Restore, "r-0", in)
	refused(t, err, fault.NotFound, fault.NotExecuted)
	var cp, back events.Checkpoint
	if err := json.Unmarshal(captured, &cp); err != nil {
		t.Fatal(err)
	}
	in.Checkpoint = cp.ID
	must[commands.OperationResult](t)(commandstest.Ask(w, commands.Restore, "r-1", in))
	g := w.Ended("r-1")
	if err := json.Unmarshal(g.Result, &back); g.State != events.GoalSucceeded || err != nil || back.ID != cp.ID || back.SHA256 != cp.SHA256 {
		t.Fatalf("the restore ended %+v %v", g, err)
	}
}

// A checkpoint, its export, and the bytes of the file, chunk by chunk.
func exportOf(t *testing.T, w *commandstest.World) {
	t.Helper()
	_, err := commandstest.Ask(w, commands.Export, "e-0", commands.ExportInput{Named: commands.Named{Name: "demo"}})
	refused(t, err, fault.FailedPrecondition, fault.NotExecuted) // there is no checkpoint yet
	must[commands.OperationResult](t)(commandstest.Ask(w, commands.Checkpoint, "c-1", commands.CheckpointInput{Named: commands.Named{Name: "demo"}}))
	if g := w.Ended("c-1"); g.State != events.GoalSucceeded {
		t.Fatalf("the checkpoint ended %+v", g)
	}
	restoreOf(t, w, w.Ended("c-1").Result)
	must[commands.OperationResult](t)(commandstest.Ask(w, commands.Export, "e-1", commands.ExportInput{Named: commands.Named{Name: "demo"}}))
	g := w.Ended("e-1")
	var file events.File
	if err := json.Unmarshal(g.Result, &file); g.State != events.GoalSucceeded || err != nil {
		t.Fatalf("the export ended %+v %v", g, err)
	}
	h := sha256.New()
	in := commands.ExportReadInput{GoalRef: commands.GoalRef{Goal: "e-1"}, Limit: 100}
	for chunks := 0; ; chunks++ {
		if chunks > 0 {
			in.Limit = commands.MaxChunk
		}
		c := must[commands.ExportReadResult](t)(commandstest.Ask(w, commands.ExportRead, "", in))
		h.Write(c.Data)
		in.Offset = c.Next
		if c.EOF {
			break
		}
	}
	if in.Offset != file.ByteLength || hex.EncodeToString(h.Sum(nil)) != file.SHA256 {
		t.Errorf("the file read has %d bytes and another digest than %+v", in.Offset, file)
	}
	in.Offset = file.ByteLength + 1
	_, err = commandstest.Ask(w, commands.ExportRead, "", in)
	refused(t, err, fault.BadRequest, fault.NotExecuted)
	_, err = commandstest.Ask(w, commands.ExportRead, "", commands.ExportReadInput{GoalRef: commands.GoalRef{Goal: "c-1"}})
	refused(t, err, fault.FailedPrecondition, fault.NotExecuted)
	// A file that was cut after it was accepted is refused, never served short.
	path := filepath.Join(w.Plane.ExportsDir, string(g.Allocated.Operation))
	if err := os.Truncate(path, file.ByteLength/2); err != nil {
		t.Fatal(err)
	}
	in.Offset = 0
	_, err = commandstest.Ask(w, commands.ExportRead, "", in)
	refused(t, err, fault.Expired, fault.NotExecuted)
}

// Everything that lists shows the same environment.
func lists(t *testing.T, w *commandstest.World, s commands.SpawnResult) {
	t.Helper()
	ls := must[commands.LsResult](t)(commandstest.Ask(w, commands.Ls, "", commands.LsInput{}))
	if len(ls.Items) != 1 || ls.Items[0].Environment.ID != s.Environment {
		t.Errorf("ls: %+v", ls)
	}
	slots := must[commands.SlotsResult](t)(commandstest.Ask(w, commands.Slots, "", commands.SlotsInput{Names: []string{"demo", "other"}}))
	if len(slots.Items) != 1 || slots.Items[0].UID != s.UID || slots.Items[0].Head.Gate != "open" {
		t.Errorf("slots: %+v", slots)
	}
	story := must[commands.HistoryResult](t)(commandstest.Ask(w, commands.History, "", commands.HistoryInput{Name: "demo"}))
	if len(story.Items) < 10 || story.Next != 0 {
		t.Errorf("history has %d lines, next %d", len(story.Items), story.Next)
	}
	first := must[commands.HistoryResult](t)(commandstest.Ask(w, commands.History, "", commands.HistoryInput{Name: "demo", Limit: 3}))
	if len(first.Items) < 3 || first.Next == 0 || first.Next != first.Items[len(first.Items)-1].Sequence {
		t.Errorf("the first page of history: %+v", first)
	}
	page := must[commands.EventsResult](t)(commandstest.Ask(w, commands.Events, "", commands.EventsInput{From: 1, Limit: 2}))
	if len(page.Items) < 2 || page.Next != 3 || page.Items[0].SpecVersion != "1.0" || !strings.HasPrefix(page.Items[0].Type, "berth.goal.accepted.v") || page.Tip < 10 {
		t.Errorf("events: %+v", page)
	}
	goals := must[commands.GoalsResult](t)(commandstest.Ask(w, commands.Goals, "", commands.GoalsInput{Ended: true, Limit: 2}))
	if len(goals.Items) != 2 || goals.Next == "" {
		t.Errorf("goals: %+v", goals)
	}
	usage := must[commands.UsageResult](t)(commandstest.Ask(w, commands.Usage, "", commands.UsageInput{ByEnvironment: true}))
	if len(usage.Environments) != 1 || usage.Environments[0].Environment != s.Environment {
		t.Errorf("usage: %+v", usage)
	}
	hosts := must[commands.HostsResult](t)(commandstest.Ask(w, commands.Hosts, "", commands.Empty{}))
	if _, ok := hosts.Headroom["drill"]; !ok {
		t.Errorf("hosts: %+v", hosts)
	}
	for _, read := range []*commands.Contract{commands.Status.Contract, commands.Health.Contract, commands.Describe.Contract} {
		if r := w.Send(read, commands.Request{}, struct{}{}); !r.OK {
			t.Errorf("%s: %v", read.Name, r.Error)
		}
	}
	logs := must[commands.LogsResult](t)(commandstest.Ask(w, commands.Logs, "", commands.LogsInput{Named: commands.Named{Name: "demo"}}))
	if logs.Next != logs.From+int64(len(logs.Data)) {
		t.Errorf("logs: %+v", logs)
	}
}

// reserve, provision and start are the same life, asked for in parts.
func TestReserveProvisionStart(t *testing.T) {
	w := commandstest.New(t, commandstest.Config{})
	must[commands.SpawnResult](t)(commandstest.Ask(w, commands.Reserve, "g-1", commandstest.Drill("parts")))
	if g := w.Ended("g-1"); g.State != events.GoalSucceeded {
		t.Fatalf("the reserve ended %+v", g)
	}
	is := func(want string) {
		t.Helper()
		w.Until(want, func(v *projections.Views) bool {
			s, ok := v.Seat("local", "parts")
			return ok && (want == "provisioned" && s.Environment.Provisioned || string(s.Status()) == want)
		})
	}
	is("reserved")
	must[commands.WriteResult](t)(commandstest.Ask(w, commands.Provision, "s-1", commands.SeatInput{Named: commands.Named{Name: "parts"}}))
	is("provisioned")
	must[commands.WriteResult](t)(commandstest.Ask(w, commands.Start, "s-2", commands.SeatInput{Named: commands.Named{Name: "parts"}}))
	is("running")
	// Asking for less than there is changes nothing, and says so.
	r := must[commands.WriteResult](t)(commandstest.Ask(w, commands.Provision, "s-3", commands.SeatInput{Named: commands.Named{Name: "parts"}}))
	if r.Changed {
		t.Errorf("provision of a running seat: %+v", r)
	}
	// A spawn under the id of the reserve is another request.
	_, err := commandstest.Ask(w, commands.Spawn, "g-1", commandstest.Drill("parts"))
	refused(t, err, fault.Conflict, fault.NotExecuted)
}
