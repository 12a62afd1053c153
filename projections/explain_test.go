package projections_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/head"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

// Every status has a sentence that says why, and whatever a person can do
// something about says what.
func TestEveryStatusIsExplained(t *testing.T) {
	nothingToDo := []aggregates.Status{aggregates.StatusNone, aggregates.StatusRunning, aggregates.StatusUncertain}
	for _, s := range aggregates.Statuses {
		if s == aggregates.StatusNone {
			continue // `inspect` answers not-found
		}
		e := projections.Inspection{Alias: "demo", Status: s, Target: events.TargetRunning}.Explain(time.UnixMilli(0))
		if len(e.Why) == 0 {
			t.Errorf("%s is not explained", s)
		}
		if (len(e.Next) == 0) != slices.Contains(nothingToDo, s) {
			t.Errorf("%s: next is %q", s, e.Next)
		}
	}
}

// What is uncertain is told with its operation, what was refused with the
// refusal and that nothing was executed, and a frozen gate with what froze it.
func TestExplanations(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	op := func(p environment.Phase, f *fault.Error) *projections.OperationView {
		return &projections.OperationView{ID: "op-0000000000000001", Verb: events.VerbProvision, State: p, At: now.Add(-90 * time.Second).UnixMilli(), Stuck: true, Fault: f}
	}
	deadline, code := now.Add(time.Hour).UnixMilli(), 3
	for name, c := range map[string]struct {
		i    projections.Inspection
		says []string
	}{
		"uncertain": {projections.Inspection{Alias: "demo", Status: aggregates.StatusUncertain, Operation: op(environment.Uncertain, fault.New(fault.DeadlineExceeded, "no answer"))},
			[]string{"provision (operation op-0000000000000001) was lost 1m30s ago", "no answer", "longer than it should", "berth write-off demo", "law 2"}},
		"in flight": {projections.Inspection{Alias: "demo", Status: aggregates.StatusStarting, Target: events.TargetRunning, Operation: op(environment.Dispatched, nil)},
			[]string{"on its way to running", "not answered yet"}},
		"refused": {projections.Inspection{Alias: "demo", Status: aggregates.StatusFailed, Fault: fault.New(fault.Unimplemented, "no such image"), Operation: op(environment.Refused, fault.New(fault.ResourceExhausted, "quota"))},
			[]string{"no such image", "nothing of it was executed", "quota", "tried again", "berth retire demo"}},
		"retiring": {projections.Inspection{Alias: "demo", Status: aggregates.StatusRetiring, Slot: projections.Slot{Reason: "expired"}, Head: projections.Head{State: head.Retiring, Gate: head.GateFrozen, Kind: "retirement", Operation: "retire-x"}},
			[]string{"because of: expired", "retirement retire-x has frozen the gate", "head is retiring"}},
		"running": {projections.Inspection{Alias: "demo", Status: aggregates.StatusRunning, Deadline: &deadline, Machines: 4, Restores: 1, Queue: []projections.OperationView{{Verb: events.VerbPause}, {Verb: events.VerbResume}}},
			[]string{"another 1h0m0s", "2 times", "2 operations are asked for and not begun", "pause, resume"}},
		"stopped": {projections.Inspection{Alias: "demo", Status: aggregates.StatusStopped, ExitCode: &code, Operation: op(environment.Excluded, nil)},
			[]string{"exit code 3", "never to have happened"}},
		"stopped, with a checkpoint": {projections.Inspection{Alias: "demo", Status: aggregates.StatusStopped, Checkpoints: []events.Checkpoint{{ID: "older"}, {ID: "newer"}},
			Environment: &projections.ManagedEnvironmentRecord{Capabilities: events.Capabilities{Snapshot: true}}},
			[]string{"berth restore demo newer"}},
		"paused": {projections.Inspection{Alias: "demo", Status: aggregates.StatusPaused}, []string{"berth resume demo"}},
		"its instance is away": {projections.Inspection{Alias: "demo", Status: aggregates.StatusRetiring, HolderAway: true, Slot: projections.Slot{Holder: "cccccccccccccccccccccccccc"}},
			[]string{"instance cccccccccccccccccccccccccc was stopped", "berth takeover cccccccccccccccccccccccccc"}},
		"a network that is another": {projections.Inspection{Alias: "demo", Status: aggregates.StatusRunning, Drift: "host", Environment: &projections.ManagedEnvironmentRecord{Network: "none"}},
			[]string{`observed as "host"`, "R25"}},
	} {
		e := c.i.Explain(now)
		all := strings.Join(append(e.Why, e.Next...), "\n")
		for _, s := range c.says {
			if !strings.Contains(all, s) {
				t.Errorf("%s does not say %q:\n%s", name, s, all)
			}
		}
	}
}
