package stream

import (
	"sync"

	"berth/events"
)

// maxHeads bounds the memory of heads: about 150 bytes each.
const maxHeads = 1 << 16

// head is the newest known commit of a boundary.
type head struct {
	sequence uint64
	hash     events.Hash
	id       events.EventID
}

// heads remembers the newest commit of boundaries, so that an append needs no
// read before it to know the hash it chains to. It is only ever a hint: the
// server compares the sequence.
type heads struct {
	mu sync.Mutex
	m  map[events.Boundary]head
}

func (h *heads) get(b events.Boundary) (head, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, ok := h.m[b]
	return v, ok
}

func (h *heads) put(r events.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.m == nil {
		h.m = make(map[events.Boundary]head)
	}
	if old, ok := h.m[r.Boundary]; ok && old.sequence >= r.Sequence {
		return
	} else if !ok && len(h.m) >= maxHeads {
		for b := range h.m { // any one will do
			delete(h.m, b)
			break
		}
	}
	h.m[r.Boundary] = head{r.Sequence, r.Hash, r.Meta.ID}
}
