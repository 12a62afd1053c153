//go:build linux

package custodian

import (
	"net"
	"time"

	"berth/providers/process/seatdir"
)

// Stood waits, on the connection of a seat that stands still, for what became of
// the one that was to take its place. true: it has taken it, and this seat must
// end without a word, because what is said of the environment from now on is
// about the other one. false: the other one is proved to have ended, and this
// seat goes on.
func (p *Post) Stood(conn net.Conn, st Standing) (yield bool) {
	_ = conn.SetReadDeadline(time.Time{})
	b := make([]byte, 1)
	if n, _ := conn.Read(b); n == 1 && b[0] == yielding {
		return true
	}
	for ended(st.Next, 0) != nil { // its holder has died or given up: it must not run beside this one
		time.Sleep(time.Second)
	}
	for {
		j, err := p.Dir.LoadJournal()
		if err == nil {
			return landed(j, st.Operation)
		}
		// Standing still is safe; going on beside a record that says otherwise is not.
		if there, derr := p.Dir.Exists(); derr == nil && !there {
			return true
		}
		time.Sleep(time.Second)
	}
}

// Yield ends the seat without a proof of its end: its place is taken.
func (p *Post) Yield() {
	p.Mu.Lock()
	p.Ending, p.yielded = true, true
	p.Mu.Unlock()
	p.seat.Kill()
}

// prove writes the exit proof, unless the place is taken.
func (p *Post) prove(code *int, at time.Time) {
	p.Mu.Lock()
	proof, yielded := seatdir.Exit{Seat: p.Ident.Seat, Why: p.Why, Code: code, At: at}, p.yielded
	p.Mu.Unlock()
	if yielded {
		return
	}
	for p.Dir.WriteJSON(seatdir.FileExit, proof) != nil {
		// A full disk. Ending without the proof would lose the exit code.
		if ok, err := p.Dir.Exists(); err == nil && !ok {
			return
		}
		time.Sleep(time.Second)
	}
}
