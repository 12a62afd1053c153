//go:build linux

package kill

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"berth"
	"berth/aggregates"
	"berth/aggregates/instance"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/events/eventlog/stream"
	"berth/internal/embedded"
	"berth/providers/drill"
	"berth/providers/process/identity"
	"berth/sagas"
)

// twiceTheLease is how long a manager is frozen when everything is tried.
const twiceTheLease = 11 * time.Second

// A manager with the embedded server is frozen in the middle of its work and
// goes on: nothing is lost and nothing is done twice (scenario 52).
func TestFrozen(t *testing.T) {
	if testing.Short() {
		t.Skip("starts managers and servers; -short leaves it out")
	}
	places, frozen := []at{{"append:provision:after", 1}}, 200*time.Millisecond
	if proving() {
		places, frozen = append(places, at{"call:reserve:after", 1}, at{"append:goal:before", 1}, at{"call:destroy:before", 1}), twiceTheLease
	}
	for _, place := range places {
		t.Run(place.String(), func(t *testing.T) {
			t.Parallel()
			w := drillWorld(t, nil)
			w.signal, w.crash = "stop", place.String()
			w.start()
			thawed := make(chan bool, 1)
			go func(pid int, ended chan struct{}) { thawed <- thaw(pid, ended, frozen) }(w.cmd.Process.Pid, w.ended)
			for end := time.Now().Add(patience); !w.serving(); time.Sleep(pause) {
				if w.dead() || time.Now().After(end) {
					t.Fatalf("the manager was not ready\n%s", w.out.String())
				}
			}
			w.crash = "" // it must not die
			drillLife(w)
			if !<-thawed {
				t.Errorf("the manager never passed %s", place)
			}
		})
	}
}

// thaw waits until the process has frozen itself and lets it go on after d;
// false if it ended before.
func thaw(pid int, ended chan struct{}, d time.Duration) bool {
	for {
		select {
		case <-ended:
			return false
		case <-time.After(pause):
		}
		if _, state, err := identity.StartTime(pid); err == nil && state == 'T' {
			time.Sleep(d)
			return syscall.Kill(pid, syscall.SIGCONT) == nil
		}
	}
}

// A manager on an external server is frozen; meanwhile another process takes
// its identity and a seat over. When it goes on it does nothing more to that
// seat, and after its lease nothing at all (decision 1, law 3, scenario 52).
// The next start of it takes everything up.
func TestFrozenAndFenced(t *testing.T) {
	if testing.Short() {
		t.Skip("starts managers and servers; -short leaves it out")
	}
	t.Parallel()
	w := drillWorld(t, nil)
	srv, err := embedded.Start(t.Context(), embedded.Options{StoreDir: filepath.Join(filepath.Dir(w.dir), "server"), Name: "external", SyncAlways: true, Listen: true, Host: "127.0.0.1", Port: -1})
	w.must(err)
	t.Cleanup(srv.Stop)
	w.flags = append(w.flags, "--nats", srv.ClientURL(), "--init-space")
	w.up()
	w.spawn(commands.SpawnInput{Provider: "drill", TTL: "1h", Ready: "5m", Command: []string{"true"}})
	w.until("running", status(aggregates.StatusRunning))

	w.must(w.cmd.Process.Signal(syscall.SIGSTOP))
	w.usurp(srv.ClientURL())
	w.must(w.cmd.Process.Signal(syscall.SIGCONT))
	write(w, commands.Pause, commands.SeatInput{Named: commands.Named{Name: name}})

	// Names are asked for until one of them meets the end of the lease, which
	// may be in the middle of its life; nothing is begun of the one after that.
	var last string
	var over bool
	for n, end := 1, time.Now().Add(patience); ; n++ {
		if time.Now().After(end) {
			t.Fatalf("the manager never noticed\n%s", w.out.String())
		}
		last = fmt.Sprintf("late-%d", n)
		w.ask(last)
		held := w.held(last)
		if over {
			if !held {
				t.Errorf("%s was let through after the lease had ended", last)
			}
			break
		}
		over = held
	}
	s, err := drill.ReadStatus(filepath.Join(w.dir, "drill"), time.Now())
	w.must(err)
	for _, e := range s.Environments {
		for _, o := range e.Operations {
			if string(e.Alias) == last || string(e.Alias) == name && o.Verb == "pause" {
				t.Errorf("the stale manager had %s of %s done", o.Verb, e.Alias)
			}
		}
	}
	w.kill(syscall.SIGKILL)
	w.up()
	w.until("the pause", status(aggregates.StatusPaused))
	if g := w.awaited("spawn-" + last); g.State != events.GoalSucceeded {
		t.Errorf("the goal that was held ended: %s, %v", g.State, g.Fault)
	}
	w.retire()
	w.berth("replay", "--verify")
	w.berth("verify")
}

// usurp registers the next epoch of the manager's instance and takes its seat,
// as another process with the same identity does when it starts.
func (w *world) usurp(url string) {
	w.Helper()
	e, err := berth.ReadEndpoint(w.dir)
	w.must(err)
	nc, err := nats.Connect(url)
	w.must(err)
	defer nc.Close()
	log, err := stream.Open(w.Context(), nc, stream.Config{Space: e.Space})
	w.must(err)
	defer log.Close()
	shelf := sagas.NewShelf(log)
	var epoch uint64
	meta := func() events.Meta {
		return events.Meta{ID: events.EventID(w.ids.UUID()), Time: events.MillisUTC(time.Now()), Caller: e.Caller, Writer: events.Writer{Instance: e.Instance, Epoch: epoch}}
	}
	_, _, err = shelf.DecideInstance(w.Context(), e.Instance, meta(), func(s instance.State) ([]events.Event, error) {
		epoch = s.Epoch + 1
		return s.Register(e.Instance, events.HostFacts{Host: "another"}, "", "test"), nil
	})
	w.must(err)
	_, _, err = shelf.DecideSeat(w.Context(), "local", name, meta(), func(s aggregates.Seat) ([]events.Event, error) {
		return s.TakeOver(e.Instance, epoch)
	})
	w.must(err)
}

// ask asks for another name until it is accepted.
func (w *world) ask(other string) {
	w.Helper()
	id := w.command()
	w.do("spawn "+other, func(ctx context.Context, c *client.Client) error {
		_, err := client.Call(ctx, c, commands.Spawn, commands.SpawnInput{Name: other, Goal: "spawn-" + other, Provider: "drill", TTL: "1h", Ready: "5m", Command: []string{"true"}}, id)
		return err
	})
}

// held waits for what becomes of the name: true if the manager says that it
// holds back because its epoch is over, false if it was still let through.
func (w *world) held(other string) (held bool) {
	w.Helper()
	w.do("what becomes of "+other, func(ctx context.Context, c *client.Client) error {
		for _, line := range strings.Split(w.out.String(), "\n") {
			if strings.Contains(line, "."+other) && strings.Contains(line, "another process registered") {
				held = true
				return nil
			}
		}
		g, err := client.Call(ctx, c, commands.GoalGet, commands.GoalRef{Goal: "spawn-" + other})
		if err == nil && !g.Ended {
			err = notYet("%s", g.State)
		}
		return err
	})
	return held
}
