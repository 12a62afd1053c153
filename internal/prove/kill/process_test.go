//go:build linux

package kill

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/projections"
	"berth/providers/process"
	"berth/providers/process/cgroup"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// seat says that it began, once, and goes on.
const seat = "echo begun; while :; do sleep 1; done"

// processWorld is a world for seats of this host, as isolated as it can.
func processWorld(t *testing.T) (*world, commands.SpawnInput) {
	t.Helper()
	w := newWorld(t)
	in := commands.SpawnInput{Provider: process.Name, TTL: "1h", Ready: "5m", Command: []string{"/bin/sh", "-c", seat}, Options: map[string]string{}}
	plan, err := in.Plan()
	w.must(err)
	d, err := process.New(process.Config{Dir: filepath.Join(t.TempDir(), "trial")})
	w.must(err)
	defer d.Close()
	for _, option := range []string{process.OptionIsolation, process.OptionLimits} {
		pre, err := d.Preflight(t.Context(), plan)
		w.must(err)
		if c, failed := pre.Failed(); failed {
			t.Logf("WITHOUT %s: %s", option, c.Detail)
			plan.Options[option] = "none"
		}
	}
	in.Options = plan.Options
	t.Cleanup(func() { w.sweep() })
	return w, in
}

// sweep leaves no seat behind, whatever the test did: custodians take theirs along.
func (w *world) sweep() {
	w.kill(syscall.SIGKILL)
	for _, id := range w.seats() {
		var i seatdir.Ident
		if w.seatDir(id).ReadJSON(seatdir.FileIdent, &i) == nil {
			_ = identity.Signal(i.Custodian, unix.SIGKILL)
			_ = identity.Signal(i.Seat, unix.SIGKILL)
		}
	}
}

func (w *world) seatDir(id events.EnvironmentID) seatdir.Dir {
	return seatdir.In(filepath.Join(w.dir, "seats"), id)
}

// seats are the directories that the provider really has.
func (w *world) seats() (ids []events.EnvironmentID) {
	entries, _ := os.ReadDir(filepath.Join(w.dir, "seats"))
	for _, e := range entries {
		if id, err := events.ParseEnvironmentID(e.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func (w *world) ident(id events.EnvironmentID) (i seatdir.Ident) {
	w.Helper()
	w.must(w.seatDir(id).ReadJSON(seatdir.FileIdent, &i))
	return i
}

// begun waits until the seat has spoken and counts how often one was begun.
func (w *world) begun() {
	w.Helper()
	w.do("the seat's output", func(ctx context.Context, c *client.Client) error {
		l, err := client.Call(ctx, c, commands.Logs, commands.LogsInput{Named: commands.Named{Name: name}})
		switch n := strings.Count(string(l.Data), "begun"); {
		case err != nil:
			return err
		case n == 0:
			return notYet("no output")
		case n > 1:
			w.Errorf("the seat was begun %d times", n)
		}
		return nil
	})
}

// nothingLeft lays the log beside this host: one directory, its life over, no
// process, no control group, no mount (scenario 48).
func (w *world) nothingLeft(l life) {
	w.Helper()
	ids := w.seats()
	if len(ids) != 1 || ids[0] != l.spawned.Environment {
		w.Fatalf("this host has the seats %v; the client was told of %s", ids, l.spawned.Environment)
	}
	j, err := w.seatDir(ids[0]).LoadJournal()
	if err != nil || j.Phase != seatdir.PhaseDestroyed {
		w.Errorf("the seat's own journal: %v, %v", j, err)
	}
	if left := identity.WithEnvironment(events.EnvEnvironment + "=" + string(ids[0])); len(left) > 0 {
		w.Errorf("processes were left behind: %+v", left)
	}
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(mounts), w.dir) {
		w.Errorf("a mount was left behind below %s", w.dir)
	}
	g := cgroup.Detect()
	for _, p := range []string{g.CPU, g.Memory, g.PIDs, g.Freezer, g.Kill} {
		if _, err := os.Stat(filepath.Join(p, "berth-"+string(ids[0]))); p != "" && err == nil {
			w.Errorf("a control group was left behind below %s", p)
		}
	}
}

// The manager is killed around calls to the process driver: what the seats
// directory and /proc say is what the log says (scenarios 41, 46, 48, 49).
func TestKilledWithProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts managers, servers and seats; -short leaves it out")
	}
	all, tries := []at{{"call:start:after", 1}, {"call:restore:after", 1}}, 0
	if proving() {
		all, tries = append(all, at{"append:restore:after", 1}, at{"call:restore:before", 1}), 24
	}
	places := generated()
	chosen().Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	all = merge(all, places[:tries])
	t.Logf("%d kill points with processes", len(all))
	for _, place := range all {
		t.Run(place.String(), func(t *testing.T) {
			t.Parallel()
			w, in := processWorld(t)
			w.crash = place.String()
			w.up()
			w.ready = w.begun
			l := w.live(in, time.Hour)
			w.down()
			w.missed, w.crash = w.crash, ""
			w.up()
			want := map[events.Verb]int{}
			for v, n := range done {
				want[v] = n
			}
			want[events.VerbExtend] = 1 // a day at a time
			w.settled(l, want)
			w.nothingLeft(l)
			if w.missed != "" {
				t.Errorf("the manager never passed %s", place)
			}
		})
	}
}

// loss is a way in which a seat ends without the manager.
type loss struct {
	name   string
	strike func(w *world, i seatdir.Ident)
}

var losses = []loss{
	{"seat", func(w *world, i seatdir.Ident) { w.must(identity.Signal(i.Seat, unix.SIGKILL)) }},
	{"custodian", func(w *world, i seatdir.Ident) { w.must(identity.Signal(i.Custodian, unix.SIGKILL)) }},
	{"both", func(w *world, i seatdir.Ident) {
		w.must(identity.Signal(i.Custodian, unix.SIGKILL))
		if err := identity.Signal(i.Seat, unix.SIGKILL); err != nil && !errors.Is(err, identity.ErrGone) {
			w.Fatal(err)
		}
	}},
}

// The seat, its custodian or both are killed, with the manager there or down:
// what is shown is what is, and the end of the life works.
func TestSeatLost(t *testing.T) {
	if testing.Short() {
		t.Skip("starts managers, servers and seats; -short leaves it out")
	}
	for _, l := range losses {
		for _, down := range []bool{false, true} {
			if !proving() && (l.name == "both") != down {
				continue
			}
			t.Run(l.name+map[bool]string{false: "", true: " while the manager is down"}[down], func(t *testing.T) {
				t.Parallel()
				w, in := processWorld(t)
				w.up()
				s := w.spawn(in)
				w.begun()
				i := w.ident(s.Environment)
				if down {
					w.kill(syscall.SIGKILL)
				}
				l.strike(w, i)
				w.over(s)
			})
		}
	}
}

// over waits until the loss is seen, ends the life, and looks at what is left.
func (w *world) over(s commands.SpawnResult) {
	w.Helper()
	r := w.until("the loss to be seen", func(r projections.Inspection) bool {
		return !r.Live && (r.Status == aggregates.StatusStopped || r.Status == aggregates.StatusFailed)
	})
	if r.Slot.UID != s.UID || r.Slot.Phase != "active" {
		w.Errorf("the slot after the loss: %+v", r.Slot)
	}
	w.retire()
	w.nothingLeft(life{spawned: s})
	w.views(life{spawned: s})
	w.files(life{spawned: s})
	w.berth("replay", "--verify")
	w.berth("verify")
}

// The machine was started anew: nothing of the seat lives, and its pids belong
// to others, which nobody may signal (scenario 53). Simulated by ending the
// seat and writing a stranger's pid of another boot into its papers.
func TestAnotherBoot(t *testing.T) {
	if testing.Short() {
		t.Skip("starts managers, servers and seats; -short leaves it out")
	}
	t.Parallel()
	w, in := processWorld(t)
	w.up()
	s := w.spawn(in)
	w.begun()
	i := w.ident(s.Environment)
	w.kill(syscall.SIGKILL)
	w.must(identity.Signal(i.Custodian, unix.SIGKILL))
	for end := time.Now().Add(patience); ; time.Sleep(pause) {
		_, seatErr := identity.Open(i.Seat)
		_, custodianErr := identity.Open(i.Custodian)
		if errors.Is(seatErr, identity.ErrGone) && errors.Is(custodianErr, identity.ErrGone) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the seat outlived its custodian: %v, %v", seatErr, custodianErr)
		}
	}
	// The stranger is this test itself: a signal would show.
	stranger, err := identity.Of(os.Getpid())
	w.must(err)
	stranger.BootID = "00000000-0000-4000-8000-000000000000"
	i.Seat, i.Custodian = stranger, stranger
	w.must(w.seatDir(s.Environment).WriteJSON(seatdir.FileIdent, i))
	w.over(s)
}
