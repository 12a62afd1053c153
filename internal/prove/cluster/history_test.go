package cluster

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"berth/events"
)

// asked is what a client asked of one boundary: an append that expects a
// sequence, or a read of the last one.
type asked struct {
	boundary events.Boundary
	append   bool
	expect   uint64
	id       events.EventID
}

// answered is what it was told.
type answered struct {
	stored   bool   // the append is stored, as
	sequence uint64 // or what was read, or what a conflict named
}

// model is a register that holds the last sequence of one boundary and is only
// written by compare-and-append.
var model = porcupine.Model{
	Partition: func(h []porcupine.Operation) [][]porcupine.Operation {
		by := map[events.Boundary][]porcupine.Operation{}
		for _, o := range h {
			b := o.Input.(asked).boundary
			by[b] = append(by[b], o)
		}
		var out [][]porcupine.Operation
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return uint64(0) },
	Step: func(state, input, output any) (bool, any) {
		last, in, out := state.(uint64), input.(asked), output.(answered)
		switch {
		case in.append && out.stored:
			return last == in.expect && out.sequence > last, out.sequence
		default:
			return last == out.sequence, last
		}
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(asked), output.(answered)
		if !in.append {
			return fmt.Sprintf("%s is at %d", in.boundary, out.sequence)
		}
		if out.stored {
			return fmt.Sprintf("%s after %d stored at %d", in.boundary, in.expect, out.sequence)
		}
		return fmt.Sprintf("%s after %d refused at %d", in.boundary, in.expect, out.sequence)
	},
}

// history is what all clients saw.
type history struct {
	mu      sync.Mutex
	start   time.Time
	ops     []porcupine.Operation
	unknown []porcupine.Operation // that were given up without an answer
	done    map[int]int           // successes by client
}

func newHistory() *history { return &history{start: time.Now(), done: map[int]int{}} }

func (h *history) now() int64 { return int64(time.Since(h.start)) }

func (h *history) add(client int, begun int64, in asked, out answered) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: begun, Output: out, Return: h.now()})
	if out.stored {
		h.done[client]++
	}
}

func (h *history) giveUp(client int, begun int64, in asked) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unknown = append(h.unknown, porcupine.Operation{ClientId: client, Input: in, Call: begun})
}

// progress is how many appends each client has had stored.
func (h *history) progress() map[int]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[int]int{}
	for c, n := range h.done {
		out[c] = n
	}
	return out
}

// check holds the history against the log, in which each commit id is listed
// with its sequences.
func (h *history) check(t *testing.T, log map[events.EventID][]uint64) {
	t.Helper()
	stored := 0
	for _, o := range h.ops {
		in, out := o.Input.(asked), o.Output.(answered)
		if !in.append {
			continue
		}
		at := log[in.id]
		if out.stored {
			stored++
			if len(at) != 1 || at[0] != out.sequence {
				t.Errorf("commit %s was acknowledged at %d; the log has it at %v", in.id, out.sequence, at)
			}
		} else if len(at) != 0 {
			t.Errorf("commit %s was refused; the log has it at %v", in.id, at)
		}
	}
	all := h.ops
	for _, o := range h.unknown {
		// What nobody knows may have happened at any time after it was asked: the
		// log says whether, and the end is open.
		if at := log[o.Input.(asked).id]; len(at) > 0 {
			o.Output, o.Return = answered{true, at[0]}, h.now()
			all = append(all, o)
		}
	}
	result, info := porcupine.CheckOperationsVerbose(model, all, 2*time.Minute)
	t.Logf("1 history checked: %d operations, %d stored, %d given up: %s", len(all), stored, len(h.unknown), result)
	switch result {
	case porcupine.Illegal:
		if f, err := os.CreateTemp("", "berth-history-*.html"); err == nil {
			defer f.Close()
			if porcupine.Visualize(model, info, f) == nil {
				t.Logf("the history is drawn in %s", f.Name())
			}
		}
		t.Errorf("the history is not linearizable")
	case porcupine.Unknown:
		t.Errorf("the checker did not come to an end; the clients' pace is too quick for it")
	}
}

// The model refuses what it should: a lost update, and a read of the past.
func TestModel(t *testing.T) {
	op := func(c int, from, to int64, in asked, out answered) porcupine.Operation {
		in.boundary = "uid.a"
		return porcupine.Operation{ClientId: c, Input: in, Call: from, Output: out, Return: to}
	}
	first := op(0, 0, 10, asked{append: true}, answered{true, 1})
	for name, c := range map[string]struct {
		ops []porcupine.Operation
		ok  bool
	}{
		"one after the other": {[]porcupine.Operation{first, op(1, 20, 30, asked{append: true, expect: 1}, answered{true, 2})}, true},
		"a conflict":          {[]porcupine.Operation{first, op(1, 5, 30, asked{append: true}, answered{false, 1})}, true},
		"two with one expect": {[]porcupine.Operation{first, op(1, 5, 30, asked{append: true}, answered{true, 2})}, false},
		"a stale read":        {[]porcupine.Operation{first, op(1, 20, 30, asked{}, answered{false, 0})}, false},
		"a read meanwhile":    {[]porcupine.Operation{first, op(1, 5, 30, asked{}, answered{false, 0})}, true},
	} {
		if porcupine.CheckOperations(model, c.ops) != c.ok {
			t.Errorf("%s is accepted: %v", name, !c.ok)
		}
	}
}
