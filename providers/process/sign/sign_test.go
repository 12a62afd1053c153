//go:build linux

package sign

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A line is the sign; its end without one is none, nor is one that is too long.
func TestLine(t *testing.T) {
	for said, want := range map[string]bool{
		"ready\n": true, "\n": true, "ready": false, "": false,
		strings.Repeat("x", MaxLine-1) + "\n": true, strings.Repeat("x", MaxLine) + "\n": false,
	} {
		if got := Line(strings.NewReader(said)); got != want {
			t.Errorf("%.10q: %t", said, got)
		}
	}
}

// TestMain lets the test binary be a program that listens, and says where.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "listen" {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		fmt.Println(ln.Addr().(*net.TCPAddr).Port)
		select {}
	}
	os.Exit(m.Run())
}

// The port of a process below this one is the sign. That of another one, as this
// one itself, is not, and is not waited for for ever.
func TestPort(t *testing.T) {
	cmd := exec.Command(os.Args[0], "listen")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var port int
	if _, err := fmt.Fscanln(out, &port); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	if !Port(os.Getpid(), port, done) {
		t.Error("the port of a child is not seen")
	}
	own, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	close(done)
	if Port(os.Getpid(), own.Addr().(*net.TCPAddr).Port, done) {
		t.Error("the port of another program is taken for the seat's")
	}
}

// Only sockets that listen on the port count, of both families.
func TestListeners(t *testing.T) {
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 222 1 0 100 0 0 10 0
   2: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 333 1
   3: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 444 1
   4: short
`
	if got := listeners(strings.NewReader(table), 8080); !slices.Equal(got, []string{"111", "333"}) {
		t.Errorf("%q", got)
	}
}
