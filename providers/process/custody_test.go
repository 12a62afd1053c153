//go:build linux

package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/events/fault"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// The custodian keeps the terminal: input, size, and the output from any offset.
func TestTheTerminalIsReachable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, f := r.running(r.plan(`echo ready; read x; echo "got $x"; stty size; exit 5`))
	dir := r.d.Seat(id)
	r.untilLog(id, "ready")
	ask := func(q custodian.Request) error {
		_, err := custodian.Ask(r.context(), dir, *f.Custody, q)
		return err
	}
	if err := ask(custodian.Request{Ask: custodian.AskResize, Rows: 33, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	out, resp, err := custodian.Attach(r.context(), dir, *f.Custody, -1)
	if err != nil || resp.From != 0 {
		t.Fatalf("attaching: %+v, %v", resp, err)
	}
	defer out.Close()
	if err := ask(custodian.Request{Ask: custodian.AskInput, Data: []byte("hello\n")}); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(out) // it ends with the seat
	if err != nil || !strings.Contains(string(b), "got hello") || !strings.Contains(string(b), "33 77") {
		t.Fatalf("%q, %v", b, err)
	}
	if f := r.untilState(id, events.StateStopped); *f.ExitCode != 5 {
		t.Fatalf("%+v", f)
	}
}

// A view ends with the seat when its exit is proved; a custodian that is killed
// proves none (law 2).
func TestAViewEndsAsTheSeatDoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   func(*rig, events.EnvironmentID, events.Custody) error
		ended bool
	}{
		"exit": {func(r *rig, id events.EnvironmentID, _ events.Custody) error {
			_, err := r.d.Input(r.context(), id, "", []byte("\n"))
			return err
		}, true},
		"killed": {func(_ *rig, _ events.EnvironmentID, who events.Custody) error {
			return identity.Signal(who, unix.SIGKILL)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			id, f := r.running(r.plan("echo ready; read x"))
			v, err := r.d.View(r.context(), id, "")
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			for shown := ""; !strings.Contains(shown, "ready"); {
				p, err := v.Next()
				if err != nil {
					t.Fatal(err)
				}
				shown += string(p.Data)
			}
			if err := c.end(r, id, *f.Custody); err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = v.Next()
			}
			if c.ended != errors.Is(err, io.EOF) || !c.ended && fault.CodeOf(err) != fault.Unavailable {
				t.Fatalf("the view ended with %v", err)
			}
		})
	}
}

func TestACustodianRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, f := r.running(r.plan("sleep 600"))
	dir := r.d.Seat(id)
	for _, q := range []custodian.Request{
		{Ask: "fork"}, {Ask: custodian.AskResize}, {Ask: custodian.AskResize, Rows: 1001, Cols: 80},
		{Ask: custodian.AskInput, Data: make([]byte, custodian.MaxInput+1)},
	} {
		if _, err := custodian.Ask(r.context(), dir, *f.Custody, q); err == nil || fault.From(err).Outcome != fault.NotExecuted {
			t.Errorf("%s: %v", q.Ask, err)
		}
	}
	other := *f.Custody
	other.PID++
	if _, err := custodian.Dial(r.context(), dir, other); err == nil {
		t.Error("another peer was taken for the custodian")
	}
	st, err := os.Stat(dir.File(seatdir.FileSocket))
	if err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Errorf("the socket is open to others: %v, %v", st.Mode(), err)
	}
}

// A capture freezes the seat only as long as its manager lives, and is no pause.
func TestAHoldEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, f := r.running(r.plan(`while :; do echo tick; sleep 0.02; done`))
	dir := r.d.Seat(id)
	r.untilLog(id, "tick")
	c, err := custodian.Dial(r.context(), dir, *f.Custody)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, `{"ask":%q}`+"\n", custodian.AskHold)
	line, err := bufio.NewReader(c).ReadBytes('\n')
	var resp custodian.Response
	if err != nil || json.Unmarshal(line, &resp) != nil || resp.Fault != nil {
		t.Fatalf("%s, %v", line, err)
	}
	var quiet string
	r.until("a frozen seat", func() bool { quiet = r.logs(id); return r.logs(id) == quiet })
	if s := r.inspect(id).State; s != events.StateRunning {
		t.Fatalf("during a capture it is %s", s)
	}
	c.Close() // as the end of the manager would
	r.until("it goes on", func() bool { return len(r.logs(id)) > len(quiet) })
}

func TestLogsFollowUntilTheSeatEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, _ := r.running(r.plan("echo one; read x; echo two; exit 0"))
	r.untilLog(id, "one")
	pr, pw := io.Pipe()
	done := make(chan int64, 1)
	go func() {
		next, err := r.d.Logs(r.context(), id, "", 0, true, pw)
		if err != nil {
			next = -1
		}
		pw.Close()
		done <- next
	}()
	br := bufio.NewReader(pr)
	if line, err := br.ReadString('\n'); err != nil || line != "one\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	f := r.inspect(id)
	if _, err := custodian.Ask(r.context(), r.d.Seat(id), *f.Custody, custodian.Request{Ask: custodian.AskInput, Data: []byte("\n")}); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(br)
	if err != nil || !strings.Contains(string(rest), "two\r\n") {
		t.Fatalf("%q, %v", rest, err)
	}
	if next := <-done; next != int64(len("one\r\n")+len(rest)) {
		t.Fatalf("the next offset is %d", next)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.d.Logs(ctx, id, "", 0, true, io.Discard); err != nil {
		t.Fatalf("a follower that was called off: %v", err)
	}
	if _, err := r.d.Logs(ctx, id, "", -1, false, io.Discard); fault.CodeOf(err) != fault.BadRequest {
		t.Fatalf("a negative offset: %v", err)
	}
}
