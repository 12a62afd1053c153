package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/projections"
)

const (
	// retireAtOnce is how many lives `stop --with-seats` ends at the same time.
	retireAtOnce = 8
	// stopRounds is how often it looks again for names that were claimed meanwhile.
	stopRounds = 4
	// settleFor is how long an end that is uncertain is waited for.
	settleFor = 3 * time.Second
	// lookAtEnd is how often it looks whether the manager has ended.
	lookAtEnd = 100 * time.Millisecond
)

// stopFlags is what `stop` takes.
type stopFlags struct {
	seats     bool
	grace, on string
}

// endedSeat is what became of one life that was to end with its manager.
type endedSeat struct {
	Name    events.Alias      `json:"name"`
	UID     events.UID        `json:"uid"`
	Status  aggregates.Status `json:"status"`
	Retired bool              `json:"retired"`
	Fault   *fault.Error      `json:"fault,omitempty"`
}

// stopResult is the answer of `stop`.
type stopResult struct {
	InstanceID events.InstanceID `json:"instanceId"`
	Held       int               `json:"held"`            // names whose environments go on
	Seats      []endedSeat       `json:"seats,omitempty"` // with --with-seats
}

func (a *app) stopCommand() *cobra.Command {
	var f stopFlags
	c := &cobra.Command{
		Use: "stop", Short: "End a manager; its environments go on, unless --with-seats", Args: args(),
		Long: `End a manager in order, as SIGTERM does: no new work is taken in, what is being answered
is answered. Its environments go on running, and its next start takes them up: so a
manager is upgraded (stop it, replace the program, start it). With --with-seats each of
them is retired before, and the manager then ends in any case: an environment whose end
could not be proved is named, stays held, and the next start goes on with its end.`,
		Example: "  berth stop\n  berth stop --with-seats --grace 30s",
		RunE: func(c *cobra.Command, _ []string) error {
			if f.grace != "" && !f.seats {
				return usage("--grace means something with --with-seats only")
			}
			return a.stop(c.Context(), f)
		},
	}
	c.Flags().BoolVar(&f.seats, "with-seats", false, "retire every environment that it holds before it ends")
	c.Flags().StringVar(&f.grace, "grace", "", "with --with-seats: how long a seat may take to stop before it is killed (default 10s)")
	c.Flags().StringVar(&f.on, "on", "", "id of the instance; that of the data directory if absent")
	return c
}

func (a *app) stop(ctx context.Context, f stopFlags) error {
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	l, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	r := stopResult{InstanceID: l.instance}
	if f.on != "" {
		if r.InstanceID, err = events.ParseInstanceID(f.on); err != nil {
			return err
		}
	}
	if r.InstanceID == "" {
		return usage("say which instance is to end, with --on").WithHint("`berth hosts` lists the instances")
	}
	if err := a.endInstance(ctx, l, f, &r); err != nil {
		return err
	}
	if err := a.awaitEnd(ctx, l, r.InstanceID); err != nil {
		return err
	}
	if err := a.show(r, func(w io.Writer) { sayStopped(w, f, r) }); err != nil {
		return err
	}
	return leftOver(r)
}

// endInstance retires what is to be retired, and asks for the end. A name that
// was claimed after the look is found by the manager, which then refuses.
func (a *app) endInstance(ctx context.Context, l *link, f stopFlags, r *stopResult) error {
	in := commands.ShutdownInput{Empty: f.seats}
	for round := 1; ; round++ {
		if f.seats {
			if err := a.retireAll(ctx, l, f, r); err != nil {
				return err
			}
			in.Except = in.Except[:0]
			for _, s := range r.Seats {
				if !s.Retired && len(in.Except) < commands.MaxExcept {
					in.Except = append(in.Except, string(s.Name))
				}
			}
		}
		got, err := client.Call(ctx, l.Client, commands.Shutdown, in, client.WithInstance(r.InstanceID))
		if err == nil {
			r.Held = got.Held
			return nil
		}
		if round == stopRounds || !slices.ContainsFunc(fault.From(err).Details, func(d fault.Detail) bool { return d.Kind == commands.DetailSeatsHeld }) {
			return err
		}
	}
}

// retireAll ends every life that the instance holds and that was not tried yet.
func (a *app) retireAll(ctx context.Context, l *link, f stopFlags, r *stopResult) error {
	var rows []projections.Row
	err := l.Ls(ctx, commands.LsInput{}, func(page commands.LsResult) error {
		for _, row := range page.Items {
			tried := slices.ContainsFunc(r.Seats, func(s endedSeat) bool { return s.UID == row.UID })
			if row.Holder == r.InstanceID && !tried {
				rows = append(rows, row)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	ended, turns := make([]endedSeat, len(rows)), make(chan struct{}, retireAtOnce)
	var all sync.WaitGroup
	for i, row := range rows {
		turns <- struct{}{}
		a.say("retiring %s ...", row.Alias)
		all.Go(func() {
			defer func() { <-turns }()
			ended[i] = retireOne(ctx, l, f, row)
		})
	}
	all.Wait()
	r.Seats = append(r.Seats, ended...)
	return nil
}

// retireOne ends one life and waits for the proof. One that somebody else
// retired meanwhile is as good.
func retireOne(ctx context.Context, l *link, f stopFlags, row projections.Row) endedSeat {
	s := endedSeat{Name: row.Alias, UID: row.UID, Status: row.Status}
	in := commands.RetireInput{Named: commands.Named{Name: string(row.Alias), UID: string(row.UID)}, Grace: f.grace}
	w, err := client.Call(ctx, l.Client, commands.Retire, in)
	if err == nil {
		s.Status, err = awaitRetired(ctx, l, &w)
	}
	switch code := fault.CodeOf(err); {
	case err == nil, code == fault.NotFound, code == fault.Expired:
		s.Retired = true
	default:
		s.Fault = asFault(err)
	}
	return s
}

// awaitRetired waits until a life has ended, and not much longer than until its
// end turns out to be uncertain.
func awaitRetired(ctx context.Context, l *link, w *commands.WriteResult) (aggregates.Status, error) {
	until := []aggregates.Status{aggregates.StatusRetired, aggregates.StatusWrittenOff, aggregates.StatusHeld}
	got, err := l.WaitStatus(ctx, w.Name, w.UID, w.Sequence, append(until, aggregates.StatusUncertain)...)
	if err == nil && got.Status == aggregates.StatusUncertain {
		short, cancel := context.WithTimeout(ctx, settleFor)
		defer cancel()
		if settled, err := l.WaitStatus(short, w.Name, w.UID, w.Sequence, until...); err == nil {
			got = settled
		}
	}
	switch {
	case err != nil:
		return w.Status, err
	case got.Status == aggregates.StatusUncertain:
		return got.Status, uncertain("retire", w).(*uncertainError).cause
	case got.Status == aggregates.StatusHeld:
		return got.Status, fault.New(fault.FailedPrecondition, "its end is not proved, and it is held").WithOutcome(fault.Unknown).WithHint("berth inspect %s --explain", w.Name)
	}
	return got.Status, nil
}

// awaitEnd waits until the instance answers no more, and where its data
// directory is here until that is free.
func (a *app) awaitEnd(ctx context.Context, l *link, id events.InstanceID) error {
	ended := func() (bool, error) {
		_, err := client.Call(ctx, l.Client, commands.Status, commands.Empty{}, client.WithInstance(id))
		return err != nil, nil
	}
	if l.dir != "" && id == l.instance {
		ended = func() (bool, error) {
			lock, err := durable.TryLock(filepath.Join(l.dir, "lock"))
			if fault.CodeOf(err) == fault.Conflict {
				return false, nil
			}
			if err == nil {
				err = lock.Unlock()
			}
			return true, err
		}
	}
	for {
		if done, err := ended(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fault.New(fault.DeadlineExceeded, "instance %s was asked to end, and has not yet", id).WithOutcome(fault.Executed).WithHint("it goes on ending; `berth doctor` looks at it")
		case <-time.After(lookAtEnd):
		}
	}
}

func sayStopped(w io.Writer, f stopFlags, r stopResult) {
	retired := 0
	for _, s := range r.Seats {
		if s.Retired {
			retired++
		} else {
			fmt.Fprintf(w, "%s could not be retired: it is %s (%s)\n", s.Name, s.Status, oneLine(s.Fault.Message))
		}
	}
	fmt.Fprintf(w, "instance %s has ended\n", r.InstanceID)
	switch {
	case f.seats:
		fmt.Fprintf(w, "environments retired: %d, still held: %d\n", retired, r.Held)
	case r.Held > 0:
		fmt.Fprintf(w, "environments that go on as they are: %d\nnext: berth up\n", r.Held)
	}
}

// leftOver is the error of a stop that left some lives held.
func leftOver(r stopResult) error {
	var names []string
	unknown := false
	for _, s := range r.Seats {
		if !s.Retired {
			names = append(names, string(s.Name))
			unknown = unknown || s.Fault.Outcome == fault.Unknown
		}
	}
	if len(names) == 0 {
		return nil
	}
	e := fault.New(fault.FailedPrecondition, "the manager has ended, and %d of %d environments could not be retired: %s", len(names), len(r.Seats), clip(fmt.Sprint(names))).
		WithOutcome(fault.Executed).WithHint("they stay held, and their end goes on when the manager is started again")
	if unknown {
		return &uncertainError{e.WithOutcome(fault.Unknown)}
	}
	return e
}
