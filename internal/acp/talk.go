package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	proto "github.com/coder/acp-go-sdk"
)

const (
	// MaxWaiting bounds the lines that wait for the end of a turn.
	MaxWaiting = 16
	// MaxAsked bounds the questions of the agent that wait for their answer.
	MaxAsked = 16
	// version is the protocol's that is spoken.
	version = 1
	// authRequired is the error by which an agent says that it wants a login.
	authRequired = -32000
)

// errGone is the end of an agent that nobody asked for.
var errGone = errors.New("the agent closed its connection")

// errLong is the end of an agent that is not read any further.
var errLong = fmt.Errorf("the agent sent a message of more than %d MiB, which is not read", maxMessage>>20)

// Seat is what surrounds a conversation.
type Seat struct {
	In         io.Reader // lines that are typed
	Out        io.Writer // what people see
	Interrupts <-chan os.Signal
	Dir        string        // where the agent is to work, absolute
	Home       string        // where the session is remembered; empty: nowhere
	Material   string        // directory of prompt and persona; empty: none
	Ready      func()        // called once, when there is a session
	Turns      Turns         // what the manager asks of it; nil: nothing
	TurnCheck  time.Duration // how often that is asked for
}

// Talk is the conversation with one agent.
type Talk struct {
	seat    Seat
	page    *page
	conn    *proto.ClientSideConnection
	session proto.SessionId
	preface string // goes before the first prompt
	first   string // the first prompt; empty: none
	typing  typing // a prompt that is not whole yet

	input     <-chan string // lines that are typed
	opening   bool          // there is no session yet
	asks      chan *ask
	withdrawn chan *ask
	asked     []*ask // that wait for an answer, the shown one first
	broken    *broken
	said      *paced
	waiting   []string
	turn      chan ending // answered when the turn under way ends; nil: none is
	given     *offer      // the manager's turn that is under way; nil: it is not the manager's
}

// ending is how a turn ended.
type ending struct {
	reason proto.StopReason
	err    error
}

// ask is a question of the agent.
type ask struct {
	request proto.RequestPermissionRequest
	answer  chan proto.RequestPermissionOutcome
}

// New is a conversation with an agent whose input and output are given. Nothing
// is sent before Open.
func New(s Seat, in io.Writer, out io.Reader) *Talk {
	t := &Talk{seat: s, page: newPage(s.Out), asks: make(chan *ask), withdrawn: make(chan *ask)}
	t.broken = newBroken(t.page)
	t.said = newPaced(out)
	t.conn = proto.NewClientSideConnection(&client{t}, in, t.said)
	t.conn.SetLogger(slog.New(t.broken))
	close(t.said.ready)
	return t
}

// Talk goes on until the input ends, which is no error, or the agent does.
func (t *Talk) Talk(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	offers := make(chan *offer)
	if t.seat.Turns != nil {
		go desk{t.seat.Turns, t.seat.TurnCheck, t.page, offers}.run(ctx)
	}
	if t.first != "" {
		t.begin(ctx, t.first)
	}
	for {
		select {
		case line, ok := <-t.input:
			if !ok {
				return nil
			}
			if said, whole := t.typing.take(line); whole {
				t.hear(ctx, said)
			}
		case a := <-t.asks:
			t.ask(a)
		case a := <-t.withdrawn:
			t.withdraw(a)
		case <-t.broken.all:
			return errBroken
		case o := <-offers:
			if t.turn != nil {
				close(o.end) // it is offered again
				continue
			}
			t.page.line("[turn %s] %s", o.goal, o.text)
			t.given = o
			t.begin(ctx, o.text)
		case e := <-t.turn:
			t.turn = nil
			t.drop()
			if e.err != nil {
				t.page.line("[the turn failed: %s]", said(e.err))
			} else {
				t.page.line("[%s]", cmp.Or(string(e.reason), "end of turn"))
			}
			if t.given != nil {
				t.given.end <- result{e.err == nil && e.reason == proto.StopReasonEndTurn, t.page.answer()}
				t.given = nil
			}
			if len(t.waiting) > 0 {
				next := t.waiting[0]
				t.waiting = t.waiting[1:]
				t.begin(ctx, next)
			}
		case <-t.seat.Interrupts:
			t.cancel(ctx)
		case <-t.conn.Done():
			return t.gone()
		}
	}
}

// gone is why there is no connection any more.
func (t *Talk) gone() error {
	if t.said.long.Load() {
		return errLong
	}
	return errGone
}

// hear takes what was typed: the answer to what is asked, a prompt, or one for
// when the turn under way has ended.
func (t *Talk) hear(ctx context.Context, y typed) {
	switch {
	case y.why != "":
		t.page.line("[%s: nothing is sent; `berth turn` takes more]", y.why)
	case len(t.asked) > 0:
		t.reply(y.text)
	case strings.TrimSpace(y.text) == "":
	case t.turn == nil:
		t.begin(ctx, y.text)
	case len(t.waiting) == MaxWaiting:
		t.page.line("[%d prompts wait already: this one is dropped]", MaxWaiting)
	default:
		t.waiting = append(t.waiting, y.text)
		t.page.line("[it is asked when this turn has ended; Ctrl-C ends it now]")
	}
}

// begin sends a prompt. Only one is under way.
func (t *Talk) begin(ctx context.Context, text string) {
	if t.preface != "" {
		text, t.preface = t.preface+"\n\n"+text, ""
	}
	done := make(chan ending, 1)
	t.turn = done
	t.page.fresh()
	go func() {
		r, err := t.conn.Prompt(ctx, proto.PromptRequest{SessionId: t.session, Prompt: []proto.ContentBlock{proto.TextBlock(text)}})
		done <- ending{r.StopReason, err}
	}()
}

// reply answers the question that is shown with one of its options, by number.
func (t *Talk) reply(line string) {
	a := t.asked[0]
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || n < 1 || n > len(a.request.Options) {
		t.page.line("[a number from 1 to %d]", len(a.request.Options))
		return
	}
	a.answer <- proto.NewRequestPermissionOutcomeSelected(a.request.Options[n-1].OptionId)
	if t.asked = slices.Delete(t.asked, 0, 1); len(t.asked) > 0 {
		t.page.question(t.asked[0].request)
	}
}

// cancel ends the turn under way, and answers what is asked in it so.
func (t *Talk) cancel(ctx context.Context) {
	if t.typing.drop() {
		t.page.line("[what was typed is dropped]")
		return
	}
	if t.turn == nil {
		t.page.line("[nothing is under way; Ctrl-D ends the session]")
		return
	}
	if err := t.conn.Cancel(ctx, proto.CancelNotification{SessionId: t.session}); err != nil {
		t.page.line("[the turn could not be cancelled: %s]", said(err))
	}
	t.drop()
}

// ask takes a question of the agent in. One that nobody could answer is refused.
func (t *Talk) ask(a *ask) {
	switch {
	case t.turn == nil && !t.opening, len(a.request.Options) == 0:
		a.answer <- proto.NewRequestPermissionOutcomeCancelled()
		t.page.line("[the agent asks out of turn, or without an answer to choose: it is refused]")
		return
	case len(t.asked) == MaxAsked:
		a.answer <- proto.NewRequestPermissionOutcomeCancelled()
		t.page.line("[%d questions wait already: one more is refused]", MaxAsked)
		return
	}
	if t.asked = append(t.asked, a); len(t.asked) == 1 {
		t.page.question(a.request)
	}
}

// withdraw takes a question back that the agent does not ask any more.
func (t *Talk) withdraw(a *ask) {
	i := slices.Index(t.asked, a)
	if i < 0 {
		return // it was answered in the same moment
	}
	t.asked = slices.Delete(t.asked, i, i+1)
	if i > 0 {
		return // nobody has seen it
	}
	t.page.line("[the agent takes its question back]")
	if len(t.asked) > 0 {
		t.page.question(t.asked[0].request)
	}
}

// drop refuses the questions that wait: their turn has ended.
func (t *Talk) drop() {
	for _, a := range t.asked {
		a.answer <- proto.NewRequestPermissionOutcomeCancelled()
	}
	t.asked = nil
}
