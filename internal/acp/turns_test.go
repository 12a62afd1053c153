package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// office is a manager that has turns to give.
type office struct {
	mu      sync.Mutex
	waiting []string           // texts; the goal of each is its text
	told    []string           // what was given back
	fails   map[string][]error // of each yield of a goal, first to last
	news    chan struct{}
}

func (o *office) Pending(context.Context) (goal, text string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return "", "", nil
	}
	return o.waiting[0], o.waiting[0], nil
}

func (o *office) Yield(_ context.Context, goal string, done bool, note string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, fmt.Sprintf("%s %t %s", goal, done, note))
	var err error
	if f := o.fails[goal]; len(f) > 0 {
		err, o.fails[goal] = f[0], f[1:]
	}
	if err == nil || errors.Is(err, ErrOver) {
		o.waiting = slices.DeleteFunc(o.waiting, func(t string) bool { return t == goal })
	}
	o.news <- struct{}{}
	return err
}

// A turn of the manager is a prompt, and the agent's last words are its note; it
// is given back until that is heard, or is of no use.
func TestTurnsOfTheManager(t *testing.T) {
	long := "long " + strings.Repeat("ä", MaxNote)
	o := &office{waiting: []string{"first", "fail", "secret", long, "gone"}, news: make(chan struct{}, 64), fails: map[string][]error{
		"first":  {errors.New("no manager answers"), nil},
		"secret": {ErrNote, nil},
		"gone":   {ErrOver},
	}}
	w := enter(t, &robot{}, "", nil)
	w.seat.Turns, w.seat.TurnCheck = o, time.Millisecond
	ended := w.opens(t)
	for range 7 {
		select {
		case <-o.news:
		case <-time.After(time.Minute):
			t.Fatalf("told %q\n%s", o.told, w.paper)
		}
	}
	w.paper.shows(t, "[turn gone was over]")
	w.types(t, "mine")
	w.paper.shows(t, "heard: mine")
	_ = w.keys.Close()
	if err := within(t, ended); err != nil {
		t.Error(err)
	}
	want := []string{"first true heard: first", "first true heard: first", "fail false the agent said nothing", "secret true heard: secret", "secret true " + noNote}
	if len(o.told) != 7 || !slices.Equal(o.told[:5], want) {
		t.Errorf("told %q", o.told)
	}
	if note := strings.TrimPrefix(o.told[5], long+" true "); len(note) > MaxNote || len(note) < MaxNote-8 || strings.Trim(note, "ä") != "" {
		t.Errorf("a long answer is told as %d bytes: %.20q", len(note), note)
	}
}

// A turn that comes while the seat is at something else is taken after it.
func TestATurnWaitsForTheSeat(t *testing.T) {
	o := &office{news: make(chan struct{}, 8)}
	w := enter(t, &robot{}, "", nil)
	w.seat.Turns, w.seat.TurnCheck = o, time.Millisecond
	w.opens(t)
	w.types(t, "wait")
	<-w.robot.begun
	o.mu.Lock()
	o.waiting = []string{"later"}
	o.mu.Unlock()
	w.types(t, "and mine")
	w.paper.shows(t, "it is asked when this turn has ended")
	w.interrupts <- nil
	for _, want := range []string{"and mine", "later"} {
		if got := <-w.robot.begun; got != want {
			t.Errorf("asked %q, want %q", got, want)
		}
	}
	<-o.news
	if len(o.told) != 1 || o.told[0] != "later true heard: later" {
		t.Errorf("told %q", o.told)
	}
}
