//go:build linux

package qemu

import (
	"fmt"
	"net"
	"testing"

	"berth/events"
	"berth/events/fault"
)

// listenRole makes the test binary, which is also in the guest, a program that
// listens on listenPort when it was told something.
const (
	listenRole = "__listen"
	listenPort = 7777
)

func listen() {
	var x string
	_, _ = fmt.Scanln(&x)
	if _, err := net.Listen("tcp", fmt.Sprintf(":%d", listenPort)); err != nil {
		panic(err)
	}
	select {}
}

// A machine shows the sign of its seat: a line on the descriptor is seen by the
// agent inside, and so is a port; a pattern in the output by whoever holds the machine. Until then
// it runs and is not ready.
func TestAMachineShowsItsSign(t *testing.T) {
	needMachines(t)
	r := newRig(t)
	for want, c := range map[string]struct {
		ready  events.ReadySign
		script string
	}{
		"it wrote a line on descriptor 3": {events.ReadySign{Kind: events.SignFD}, "read x; echo up >&3; exec sleep 1000"},
		"its output matched the pattern":  {events.ReadySign{Kind: events.SignPattern, Pattern: "^all is up$"}, "read x; echo all is up; exec sleep 1000"},
		"it listens on port 7777":         {events.ReadySign{Kind: events.SignPort, Port: listenPort}, "exec /proc/1/exe " + listenRole},
	} {
		p := plan(c.script)
		p.Connector = &events.Connector{Name: "exec", Ready: &c.ready}
		id, facts := r.running(p)
		if facts.Ready != nil || r.inspect(id).Ready != nil {
			t.Errorf("%s: it is ready before its sign", c.ready)
		}
		if err := r.say(id, "go\n"); err != nil {
			t.Fatal(err)
		}
		r.until("the sign", func() bool { f := r.inspect(id); return f.Ready != nil && f.Ready.Evidence == want })
		r.must(r.op(id, events.VerbDestroy))
	}
}

// What goes on from a memory would not show its sign again.
func TestASignAndAMemoryExcludeEachOther(t *testing.T) {
	p := events.Plan{Options: map[string]string{OptionCheckpoint: "memory"}, Connector: &events.Connector{Name: "exec", Ready: &events.ReadySign{Kind: events.SignFD}}}
	if _, err := choices(p); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Errorf("%v", err)
	}
	p.Options = nil
	if _, err := choices(p); err != nil {
		t.Errorf("a cold one: %v", err)
	}
}
