package cli

import (
	"context"
	"os"
	"path/filepath"

	"berth/commands"
	"berth/commands/door"
	"berth/events"
	"berth/events/fault"
	"berth/internal/ids"
)

// askAtDoor asks as the seat that this program runs in: its name, and the
// lifecycle and the credential of its launch.
func askAtDoor[In commands.Input, Out any](ctx context.Context, a *app, dir string, c commands.Command[In, Out], in In) (Out, error) {
	var none Out
	lost := func(err error) error {
		return fault.New(fault.FailedPrecondition, "this seat does not find who it is: %s", events.Scrub(err.Error())).
			WithOutcome(fault.NotExecuted).WithHint("a seat has it in the directory that %s names, with the user that it started as", events.EnvMaterial)
	}
	material := a.Env(events.EnvMaterial)
	raw, err := os.ReadFile(filepath.Join(material, events.FileLaunch))
	if err != nil {
		return none, lost(err)
	}
	launch, err := events.DecodeLaunchRequest(raw)
	if err != nil {
		return none, lost(err)
	}
	seed, err := os.ReadFile(filepath.Join(material, events.PurposeAgentCredential))
	if err != nil {
		return none, lost(err)
	}
	defer clear(seed)
	who := door.Holder{Dir: dir, Actor: events.Actor(a.Env(events.EnvSeat)), UID: launch.UID, Seed: seed}
	return door.Ask(ctx, who, c, events.CommandID(ids.New().UUID()), in)
}
