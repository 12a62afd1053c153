package cli

import (
	"context"
	"fmt"
	"os"

	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/internal/acp"
)

// Agent runs the hidden role of an agent's client in a seat, with the turns that
// the seat's manager gives it at its door. handled and code are as acp.Main says.
func Agent(args []string) (handled bool, code int) {
	a := &app{Program: Program{Env: os.Getenv}}
	if a.Env(events.EnvDoor) == "" {
		return acp.Main(args, nil)
	}
	return acp.Main(args, doorTurns{a})
}

// doorTurns asks for turns as the seat that this program runs in.
type doorTurns struct{ a *app }

// Pending implements acp.Turns.
func (d doorTurns) Pending(ctx context.Context) (goal, text string, err error) {
	r, err := askAtDoor(ctx, d.a, d.a.Env(events.EnvDoor), commands.TurnPending, commands.Empty{})
	if err != nil || len(r.Turns) == 0 {
		return "", "", err
	}
	return string(r.Turns[0].GoalID), r.Turns[0].Payload, nil
}

// Yield implements acp.Turns.
func (d doorTurns) Yield(ctx context.Context, goal string, done bool, note string) error {
	in := commands.TurnYieldInput{GoalID: goal, Status: events.TurnBlocked, Note: note}
	if done {
		in.Status = events.TurnDone
	}
	if err := in.Check(); err != nil {
		return fmt.Errorf("%w: %w", acp.ErrNote, err)
	}
	_, err := askAtDoor(ctx, d.a, d.a.Env(events.EnvDoor), commands.TurnYield, in)
	switch fault.CodeOf(err) {
	case fault.NotFound, fault.Expired, fault.PermissionDenied, fault.Conflict, fault.FailedPrecondition:
		return fmt.Errorf("%w: %w", acp.ErrOver, err)
	}
	return err
}
