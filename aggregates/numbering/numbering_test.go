package numbering_test

import (
	"strings"
	"testing"

	"berth/aggregates/numbering"
	"berth/events"
	"berth/events/fault"
)

// Rules 3: a number that was issued is never handed out again, also not to one
// who asks for it or for an earlier one.
func TestANumberIsIssuedOnce(t *testing.T) {
	var s numbering.State
	seen := map[uint64]bool{}
	for _, ask := range []uint64{0, 2, 2, 9, 3, 10, 1} {
		es, err := s.Issue(ask, "goal.o.a.u.g")
		if err != nil || len(es) != 1 {
			t.Fatal(es, err)
		}
		n := es[0].(events.NumberIssued).Number
		if seen[n] || n < ask || n < numbering.First {
			t.Errorf("asked for %d and got %d", ask, n)
		}
		seen[n] = true
		s = s.Apply(es[0])
	}
	if s.Last != 12 || s.Next() != 13 {
		t.Errorf("the last number is %d and the next %d", s.Last, s.Next())
	}
	if again := s.Apply(events.NumberIssued{Number: 4}); again != s {
		t.Error("an earlier number was folded over a later one")
	}
	s.Last = numbering.MaxNumber - 1
	es, err := s.Issue(0, "goal.o.a.u.g")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(es[0]).Issue(0, "goal.o.a.u.g"); fault.CodeOf(err) != fault.ResourceExhausted {
		t.Errorf("beyond the last number: %v", err)
	}
}

// The longest base with the longest number is still a name.
func TestNames(t *testing.T) {
	if got := numbering.Name("reviewer", 1); got != "reviewer" {
		t.Errorf("the first name is %s", got)
	}
	if got := numbering.Name("reviewer", 2); got != "reviewer_2" {
		t.Errorf("the second name is %s", got)
	}
	long := events.Alias(strings.Repeat("a", numbering.MaxBase))
	if _, err := events.ParseAlias(string(numbering.Name(long, numbering.MaxNumber))); err != nil {
		t.Error(err)
	}
	if _, err := events.ParseAlias(string(numbering.Name(long+"a", numbering.MaxNumber))); err == nil {
		t.Error("a longer base fits, so the limit is too low")
	}
}
