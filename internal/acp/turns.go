package acp

import (
	"cmp"
	"context"
	"errors"
	"time"
)

const (
	// MaxNote bounds what is told of a turn, in bytes: the agent's last words.
	MaxNote = 4096
	// TurnCheck is how often it is asked for a turn, and how soon an answer that
	// did not get through is given again.
	TurnCheck = time.Second
	// doorPatience bounds one question at the manager's door.
	doorPatience = 10 * time.Second
)

// Turns is how a seat is asked by its manager (docs/turns.md).
type Turns interface {
	// Pending is the turn that waits for the seat; an empty goal: none does.
	Pending(context.Context) (goal, text string, err error)
	// Yield gives it back, done or blocked, with a note of at most MaxNote
	// bytes. A repeat is answered alike. ErrOver says that it is of no use any
	// more, and ErrNote that the note can't be told.
	Yield(ctx context.Context, goal string, done bool, note string) error
}

// What Yield says.
var (
	ErrOver = errors.New("the turn is over")
	ErrNote = errors.New("the note can't be told")
)

// offer is a turn that waits. Its end is told once; closed: it was not taken.
type offer struct {
	goal, text string
	end        chan result
}

// result is how a turn ended: done, or blocked; and what the agent said.
type result struct {
	done bool
	note string
}

// desk takes the manager's turns, one after the other, and gives them back.
type desk struct {
	turns  Turns
	every  time.Duration
	page   *page
	offers chan<- *offer
}

// noNote stands for a note that can't be told.
const noNote = "what the agent said is no public text; it is on the seat's terminal"

func (d desk) run(ctx context.Context) {
	for d.pause(ctx) {
		goal, text, err := d.ask(ctx)
		if err != nil || goal == "" {
			continue // a manager that does not answer may be starting again
		}
		o := &offer{goal, text, make(chan result, 1)}
		select {
		case d.offers <- o:
		case <-ctx.Done():
			return
		}
		select {
		case r, taken := <-o.end:
			if taken {
				d.giveBack(ctx, goal, r)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (d desk) ask(ctx context.Context) (goal, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, doorPatience)
	defer cancel()
	return d.turns.Pending(ctx)
}

// giveBack tells the end of a turn until it is heard. A note that is no public
// text is left out: the words stay on the terminal.
func (d desk) giveBack(ctx context.Context, goal string, r result) {
	r.note = cmp.Or(r.note, "the agent said nothing")
	for {
		err := d.yield(ctx, goal, r)
		switch {
		case err == nil:
			d.page.line("[turn %s is given back]", goal)
			return
		case errors.Is(err, ErrOver), errors.Is(err, ErrNote) && r.note == noNote:
			d.page.line("[turn %s was over]", goal)
			return
		case errors.Is(err, ErrNote):
			r.note = noNote
		}
		if !d.pause(ctx) {
			return
		}
	}
}

func (d desk) yield(ctx context.Context, goal string, r result) error {
	ctx, cancel := context.WithTimeout(ctx, doorPatience)
	defer cancel()
	return d.turns.Yield(ctx, goal, r.done, r.note)
}

// pause is false when the context ended instead.
func (d desk) pause(ctx context.Context) bool {
	t := time.NewTimer(d.every)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
