package berth

import (
	"errors"
	"testing"

	"berth/events/fault"
)

func TestDiskGuardAtItsEdge(t *testing.T) {
	for _, test := range []struct {
		name string
		free int64
		err  error
		want fault.Code
	}{
		{"exactly enough", 100, nil, ""},
		{"one byte short", 99, nil, fault.ResourceExhausted},
		{"unreadable", 0, errors.New("input/output error"), fault.Unavailable},
	} {
		g := newDiskGuard("/", 100)
		g.free = func(string) (int64, error) { return test.free, test.err }
		err := g.Check()
		if fault.CodeOf(err) != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil && fault.From(err).Outcome != fault.NotExecuted {
			t.Errorf("%s: outcome %s", test.name, fault.From(err).Outcome)
		}
	}
	off := newDiskGuard("/", -1)
	off.free = func(string) (int64, error) { return 0, nil }
	if err := off.Check(); err != nil {
		t.Errorf("the guard is off, and refuses: %v", err)
	}
}
