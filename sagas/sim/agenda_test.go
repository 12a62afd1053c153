package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// What is planned comes by time, and in the order of planning at one time.
func TestAgendaKeepsOrder(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	s := &sim{now: epochZero}
	last, left := item{at: -1}, 0
	for range 20_000 {
		if left == 0 || g.IntN(9) < 5 {
			s.after(time.Duration(last.at+1+g.Int64N(40)), nil)
			left++
			continue
		}
		it := s.agenda.pop()
		if left--; it.before(&last) || len(s.agenda) != left {
			t.Fatalf("%d, %d after %d, %d; %d of %d are left", it.at, it.n, last.at, last.n, len(s.agenda), left)
		}
		last = it
	}
}
