package client

import (
	"errors"
	"strings"
	"testing"

	"berth/commands"
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
