package testscripts

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"berth"
)

// cmdRestarts ends the manager and starts it again N times, by turns in order
// and with kill -9, each time right after a spawn was accepted: restarts N.
// The epoch must rise by one at each start.
func cmdRestarts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: restarts N")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	m := managerOf(ts)
	before := m.epoch(ts)
	for i := range n {
		if code := run(ts, []string{"berth", "spawn", "r-" + strconv.Itoa(i), "--provider", "drill", "--goal", "g-" + strconv.Itoa(i), "--", "true"}); code != 0 {
			ts.Fatalf("spawn %d ended with %d\n%s", i, code, m.output.String())
		}
		sig := syscall.SIGTERM
		if i%2 == 1 {
			sig = syscall.SIGKILL
		}
		ts.Check(m.stop(sig))
		ts.Check(m.start(ts))
		ts.Check(m.ready())
		now := m.epoch(ts)
		if now != before+1 {
			ts.Fatalf("after restart %d the epoch is %d, and was %d", i+1, now, before)
		}
		before = now
	}
}

// epoch is the one that the manager tells.
func (m *manager) epoch(ts *testscript.TestScript) int {
	e, err := berth.ReadEndpoint(m.data)
	ts.Check(err)
	code, body, err := get(e.HTTP, "/metrics")
	ts.Check(err)
	if code != http.StatusOK {
		ts.Fatalf("/metrics: %d", code)
	}
	for _, line := range strings.Split(body, "\n") {
		var n int
		if _, err := fmt.Sscanf(line, "berth_epoch %d", &n); err == nil {
			return n
		}
	}
	ts.Fatalf("/metrics has no epoch:\n%s", body)
	return 0
}

// cmdScribble overwrites bytes in the middle of a file of the data directory:
// scribble FILE.
func cmdScribble(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: scribble FILE")
	}
	path := filepath.Join(managerOf(ts).data, args[0])
	b, err := os.ReadFile(path)
	ts.Check(err)
	for i := len(b) / 2; i < min(len(b)/2+16, len(b)); i++ {
		b[i] ^= 0xa5
	}
	ts.Check(os.WriteFile(path, b, 0o600))
}
