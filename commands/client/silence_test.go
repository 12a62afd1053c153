package client

import (
	"errors"
	"strings"
	"testing"

	"berth/commands"
	"berth/events"
	"berth/events/fault"

	"github.com/nats-io/nats.go"
)

// TestE8SilenceSaysWhatToDoNext: a write that was not answered may have been
// done, and the hint says to look first; a read is simply asked again.
func TestE8SilenceSaysWhatToDoNext(t *testing.T) {
	for _, cause := range []error{nats.ErrTimeout, nats.ErrConnectionClosed, errors.New("broken")} {
		for _, c := range []struct {
			row     *commands.Contract
			outcome fault.Outcome
			hint    string
		}{
			{commands.Spawn.Contract, fault.Unknown, "ask what became of it"},
			{commands.Slots.Contract, fault.NotExecuted, "a read changes nothing"},
		} {
			var f *fault.Error
			if err := silence(c.row, commands.Any, cause); !errors.As(err, &f) || f.Outcome != c.outcome || !strings.Contains(f.Hint, c.hint) {
				t.Errorf("%s after %q: %v, hint %q", c.row.Name, cause, err, f.Hint)
			}
		}
	}
}

// Whoever did not hear of a goal is told its id: by that it can be asked about,
// and repeated.
func TestE8AnUnansweredGoalIsNamed(t *testing.T) {
	row, id := commands.Spawn.Contract, events.CommandID("request-1")
	for want, in := range map[string]commands.Input{
		"`berth goal request-1`": commands.SpawnInput{}, "`berth goal mine`": commands.SpawnInput{Goal: "mine"}, "`berth goal turn-1`": commands.TurnInput{Goal: "turn-1"},
	} {
		if f := fault.From(told(row, silence(row, commands.Any, nats.ErrTimeout), id, in)); !strings.Contains(f.Hint, want) || f.Outcome != fault.Unknown {
			t.Errorf("%v, hint %q, want %q", f, f.Hint, want)
		}
	}
	refused := fault.New(fault.Conflict, "taken").WithOutcome(fault.NotExecuted).WithHint("another name")
	if f := fault.From(told(row, refused, id, commands.SpawnInput{})); f.Hint != "another name" {
		t.Errorf("a refusal: %q", f.Hint)
	}
}

// E8: a change whose connection broke is uncertain for a script too; a read
// that was not answered did nothing.
func TestE8ABrokenConnectionIsUncertain(t *testing.T) {
	for _, row := range commands.Table {
		want := fault.ExitUncertain
		if row.Kind == commands.Read {
			want = fault.ExitUnavailable
		}
		if got := fault.ExitOf(silence(row, commands.Any, nats.ErrConnectionClosed)); got != want {
			t.Errorf("%s: exit %d, want %d", row.Name, got, want)
		}
	}
}
