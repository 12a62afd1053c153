package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/aggregates/slot"
	"berth/events"
	"berth/providers"
	"berth/sagas"
)

// broken is the product with one thing changed.
func broken(change func(*Kernel)) Sabotage {
	k := Product()
	change(&k)
	return Sabotage{Kernel: &k}
}

// most is how many seeds a sabotage may hide in.
const most = 80

// The checks can fail: whoever breaks one of these is found by some seed of a
// bounded set, with a word of why.
func TestSabotageIsCaught(t *testing.T) {
	for name, c := range map[string]struct {
		s    Sabotage
		want string
		from uint64 // the first seed; some faults are rare, and their seed is known
	}{
		"an epoch does not take a seat before it acts": {broken(func(k *Kernel) { k.Next = unfenced }), "law 3", 0},
		"a name is freed before the proof":             {broken(func(k *Kernel) { k.Next = freesEarly }), "tables", 0},
		"an uncertain operation is called impossible":  {broken(func(k *Kernel) { k.Next = declaresImpossible }), "law 2", 0},
		"silence is taken for absence":                 {broken(func(k *Kernel) { k.Found = trustsSilence }), "law 2", 0},
		"a lost answer is taken for a refusal":         {broken(func(k *Kernel) { k.Outcome = takesLossForRefusal }), "law 2", 0},
		"a lost answer is taken for success":           {broken(func(k *Kernel) { k.Outcome = takesLossForSuccess }), "law 2", 0},
		"a refusal is taken for success":               {broken(func(k *Kernel) { k.Outcome = takesRefusalForSuccess }), "law 2", 0},
		"an operation id is used for the next one":     {broken(func(k *Kernel) { k.Next = usesIDAgain }), "", 0},
		"what is not wanted is not destroyed":          {broken(func(k *Kernel) { k.Next = neverDestroys }), "at the end", 0},
		"what was written off is forgotten":            {broken(func(k *Kernel) { k.Next = forgetsWrittenOff }), "at the end", 16},
		"an uncertain operation is never asked about":  {broken(func(k *Kernel) { k.Next = neverAsks }), "at the end", 0},
		"a credential is not revoked":                  {broken(func(k *Kernel) { k.Next = keepsCredentials }), "", 0},
		"a goal leads the fact":                        {broken(func(k *Kernel) { k.NextGoal = leads }), "2.6", 0},
		"a goal ends twice":                            {broken(func(k *Kernel) { k.NextGoal = endsTwice }), "2.6", 0},
		"an uncertain goal is never settled":           {broken(func(k *Kernel) { k.NextGoal = neverSettles }), "goal", 0},
		"a decision that never rests":                  {broken(func(k *Kernel) { k.Next = neverRests }), "rest", 0},
		"a command id is forgotten":                    {Sabotage{ForgetCommands: true}, "scenario 3", 0},
		"a secret is kept":                             {Sabotage{KeepSecrets: true}, "secret", 14},
		"any file is accepted":                         {Sabotage{AcceptAny: true}, "R37", 47},
		"an environment id is used again":              {Sabotage{SameEnvironment: true}, "environment", 0},
		"a turn waits for ever":                        {broken(func(k *Kernel) { k.Next = neverLapses }), "2.6", 0},
		"a projection skips a record":                  {Sabotage{LosesRecords: true}, "", 0},
		"an offer is claimed when it is over":          {broken(func(k *Kernel) { k.Claim = claimsLate }), "decision 11", 0},
		"an offer is ended before it is over":          {broken(func(k *Kernel) { k.Lapse = lapsesEarly }), "decision 11", 0},
		"a claim that comes late is not fenced off":    {Sabotage{NoFence: true}, "decision 11", 100},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			for seed := c.from; seed < c.from+most; seed++ {
				if _, err := RunWith(seed, Options{Sabotage: c.s}); err != nil {
					if !strings.Contains(err.Error(), c.want) {
						t.Errorf("caught, for another reason: %v", err)
					}
					t.Logf("%.200s", err)
					return
				}
			}
			t.Errorf("nobody noticed in %d seeds", most)
		})
	}
}

func unfenced(v *sagas.View) sagas.Action {
	a := sagas.Next(v)
	a.Events = slices.DeleteFunc(slices.Clone(a.Events), func(e events.Event) bool { _, ok := e.(events.SlotTakenOver); return ok })
	return a
}

func neverLapses(v *sagas.View) sagas.Action {
	w := *v
	w.Seat.Turns.Pending = nil
	return sagas.Next(&w)
}

func freesEarly(v *sagas.View) sagas.Action {
	a := sagas.Next(v)
	if a.Step == "destroy" {
		return sagas.Action{Kind: sagas.Append, Events: []events.Event{events.SlotRetired{UID: v.Seat.Slot.UID}}}
	}
	return a
}

func declaresImpossible(v *sagas.View) sagas.Action {
	if op := v.Seat.Environment.Operation; op != nil && op.Phase == environment.Uncertain && sagas.Next(v).Kind == sagas.Reconcile {
		return sagas.Action{Kind: sagas.Append, Events: []events.Event{events.OperationExcluded{Environment: v.Seat.Environment.ID, Operation: op.ID, Evidence: "none"}}}
	}
	return sagas.Next(v)
}

func trustsSilence(s aggregates.Seat, id events.OperationID, f providers.Finding, fresh events.OperationID) []events.Event {
	if f.Verdict == providers.Open {
		f.Verdict = providers.Excluded
	}
	return sagas.Found(s, id, f, fresh)
}

func takesLossForRefusal(s aggregates.Seat, id events.OperationID, out providers.Outcome, fresh events.OperationID) []events.Event {
	if out.Kind == providers.Unknown {
		out.Kind = providers.Refused
	}
	return sagas.Outcome(s, id, out, fresh)
}

func takesLossForSuccess(s aggregates.Seat, id events.OperationID, out providers.Outcome, fresh events.OperationID) []events.Event {
	if out.Kind == providers.Unknown {
		out.Kind = providers.Done
	}
	return sagas.Outcome(s, id, out, fresh)
}

func takesRefusalForSuccess(s aggregates.Seat, id events.OperationID, out providers.Outcome, fresh events.OperationID) []events.Event {
	if op := s.Environment.Operation; out.Kind == providers.Refused && op != nil && op.Verb != events.VerbExport {
		out.Kind = providers.Done
	}
	return sagas.Outcome(s, id, out, fresh)
}

func usesIDAgain(v *sagas.View) sagas.Action {
	if last, ok := v.Seat.Environment.Last(); ok {
		again := *v
		again.Fresh = last.ID
		return sagas.Next(&again)
	}
	return sagas.Next(v)
}

func without(step string, v *sagas.View) sagas.Action {
	if a := sagas.Next(v); a.Step != step {
		return a
	}
	return sagas.Action{Kind: sagas.Idle}
}

func neverDestroys(v *sagas.View) sagas.Action    { return without("destroy", v) }
func keepsCredentials(v *sagas.View) sagas.Action { return without("revoke", v) }

func forgetsWrittenOff(v *sagas.View) sagas.Action {
	if v.Seat.Sequence != 0 && v.Seat.Slot.Phase == slot.Terminalizing && v.Seat.Slot.ClaimedAt.IsZero() {
		return sagas.Action{Kind: sagas.Idle}
	}
	return sagas.Next(v)
}

func neverAsks(v *sagas.View) sagas.Action {
	if a := sagas.Next(v); a.Kind != sagas.Reconcile && a.Kind != sagas.Exclude {
		return a
	}
	return sagas.Action{Kind: sagas.Idle}
}

func neverRests(v *sagas.View) sagas.Action {
	if a := sagas.Next(v); a.Step != "rest" {
		return a
	}
	return sagas.Action{Kind: sagas.Append}
}

func leads(g goal.State, s aggregates.Seat, b events.Boundary, now time.Time) []events.Event {
	if s.Slot.UID == g.Allocated.UID && s.Environment.Provisioned {
		return g.End(events.GoalSucceeded, nil, g.Answer())
	}
	return sagas.NextGoal(g, s, b, now)
}

func endsTwice(g goal.State, s aggregates.Seat, b events.Boundary, now time.Time) []events.Event {
	if es := sagas.NextGoal(g, s, b, now); len(es) == 1 {
		return append(es, es...)
	}
	return nil
}

func claimsLate(g goal.State, by events.InstanceID, _ time.Time) []events.Event {
	return g.Claim(by, g.Until.Add(-1))
}

func lapsesEarly(g goal.State, now time.Time) []events.Event { return g.Lapse(g.Until) }

func neverSettles(g goal.State, s aggregates.Seat, b events.Boundary, now time.Time) []events.Event {
	if g.State.Terminal() {
		return nil
	}
	return sagas.NextGoal(g, s, b, now)
}
