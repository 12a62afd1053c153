//go:build linux

package qemu

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"berth/events"
)

// The network is the plan's, and is recorded (R22, R23): a machine with
// network user reaches out through QEMU, one with none has no card.
func TestNetworkUser(t *testing.T) {
	if os.Getenv("BERTH_PROVE") == "" {
		t.Skip("NO NETWORK IS SHOWN: it boots two machines; BERTH_PROVE=1 runs it")
	}
	needMachines(t)
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("NO NETWORK IS SHOWN: this host has no bash, whose guest's copy opens connections")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	said := make(chan string, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b, _ := io.ReadAll(c)
		said <- string(b)
	}()
	r := newRig(t)
	script := fmt.Sprintf(`echo cards: $(ls /sys/class/net).; (echo hello from $(uname -n) >/dev/tcp/10.0.2.2/%d) 2>/dev/null; echo tried; sleep 600`, ln.Addr().(*net.TCPAddr).Port)
	p := plan("")
	p.Command = []string{"bash", "-c", script}

	id, f := r.running(p)
	if f.Network != "none" || r.inspect(id).Network != "none" {
		t.Errorf("the default's facts: %+v", f)
	}
	if out := r.untilLog(id, "tried"); !strings.Contains(out, "cards: lo.") {
		t.Errorf("without a network: %q", out)
	}
	p.Network = network("user")
	id, f = r.running(p)
	if f.Network != "user" || r.inspect(id).Network != "user" {
		t.Errorf("facts: %+v", f)
	}
	r.untilLog(id, "tried")
	select {
	case got := <-said:
		if got != "hello from demo\n" {
			t.Errorf("the machine said %q", got)
		}
	case <-r.context().Done():
		t.Error("the machine did not reach the host")
	}
	r.must(r.op(id, events.VerbStop))
}
