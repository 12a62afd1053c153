package plane

import (
	"context"
	"io"
	"log/slog"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/aggregates/instance"
	"berth/aggregates/numbering"
	"berth/events"
	"berth/events/eventlog"
	"berth/internal/connector"
	"berth/internal/handoff"
	"berth/projections"
	"berth/providers"
	"berth/terminal"
)

// Shelf makes decisions on boundaries; sagas.Shelf is one.
type Shelf interface {
	Seat(ctx context.Context, owner events.Owner, alias events.Alias) (aggregates.Seat, error)
	Goal(ctx context.Context, b events.Boundary) (goal.State, uint64, error)
	DecideSeat(ctx context.Context, owner events.Owner, alias events.Alias, meta events.Meta, f func(aggregates.Seat) ([]events.Event, error)) (aggregates.Seat, events.Record, error)
	Personas(ctx context.Context, owner events.Owner) (aggregates.Personas, error)
	DecidePersonas(ctx context.Context, owner events.Owner, meta events.Meta, f func(aggregates.Personas) ([]events.Event, error)) (aggregates.Personas, events.Record, error)
	DecideNumber(ctx context.Context, b events.Boundary, meta events.Meta, f func(numbering.State) ([]events.Event, error)) (numbering.State, events.Record, error)
	Number(ctx context.Context, b events.Boundary) (numbering.State, uint64, error)
	Instance(ctx context.Context, id events.InstanceID) (instance.State, uint64, error)
	DecideGoal(ctx context.Context, b events.Boundary, meta events.Meta, f func(goal.State) ([]events.Event, error)) (goal.State, events.Record, error)
}

// Views are the projections that reads answer from; projections.Runner is one.
type Views interface {
	Read(func(*projections.Views))
	WaitFor(ctx context.Context, sequence uint64) error
	Until(ctx context.Context, f func(*projections.Views) bool) error
	Sequence() uint64
}

// Providers finds drivers by name; providers.Registry is one.
type Providers interface {
	Get(name string) (providers.Entry, error)
	Names() []string
}

// Transfers is the instance's own bucket, through which transcripts come;
// transfer.Bucket is one.
type Transfers interface {
	Name() string
	Has(ctx context.Context, object string) (bool, error)
	Fetch(ctx context.Context, object string, most int64, to io.Writer) error
	Remove(ctx context.Context, object string) error
}

// LocalOwner is the one owner of open mode (decision 21).
const LocalOwner events.Owner = "local"

// Options is what a plane works with. Everything is required but the last group.
type Options struct {
	Space     events.Space
	Self      events.Writer
	Log       eventlog.Log
	Shelf     Shelf
	Views     Views
	Providers Providers
	IDs       events.IDs
	Now       func() time.Time
	// ExportsDir is where the engine keeps accepted files, by operation id.
	ExportsDir string
	// TranscriptsDir is where transcripts are kept, by claim, and Transfers how
	// they come. Nil: this plane receives none.
	TranscriptsDir string
	Transfers      Transfers

	Version    string
	Durability string
	// Caller is the one caller of open mode, told in status (decision 21).
	Caller events.Caller
	// Engine tells what the engine does: open, uncertain, stuck, in flight.
	Engine func() map[string]int64
	// Poke is told of a boundary that a command has just committed to: a hint.
	// Nil: nobody waits for it.
	Poke func(events.Boundary)
	// Requests tells what the binding counts; service.Service.Counts is one.
	Requests func() map[string]uint64
	// Shared says which providers make environments on the manager's own host:
	// they share its CPUs, memory and disk. Nil: none does.
	Shared func(provider string) bool
	// Bound says which providers' environments only their own instance can
	// reach: they are on its host or in its directory. Nil: none are.
	Bound func(provider string) bool
	// Silent asks whether nobody answers in the place of an instance: nil, or
	// why that is not known or not so. Nil: nobody ever answers.
	Silent func(ctx context.Context, id events.InstanceID) error
	// Lease is how long an instance may trust its last check of its epoch.
	Lease time.Duration
	// MaxSeats is how many names this instance holds at most, those that it has
	// accepted with them; zero is no limit of its own.
	MaxSeats int
	// Admit refuses new work while the host can't take it (a nearly full
	// disk). Nil admits. What ends work is never refused by it.
	Admit func() error
	// End asks the manager to end in order, once what it answers now is sent.
	// Nil: this plane's manager is ended by the program that it is part of.
	End func()
	// Sign signs offers of terminal sessions with the instance's key. Nil: this
	// plane offers none.
	Sign func(terminal.Offer) (terminal.Offer, error)
	// Delegation is what hand-offs have in common; nil refuses delegated seats.
	Delegation *handoff.Profile
	// Connectors are those that this instance runs, and how.
	Connectors connector.Available
	Logger     *slog.Logger
}
