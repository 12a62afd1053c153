package door

import (
	"net"
	"slices"
	"sync"
)

// hall is the connections that have a place. Any seat reaches the door, and may
// open as many as it likes and ask nothing: it must not keep the others out.
type hall struct {
	mu      sync.Mutex
	places  map[net.Conn]bool
	waiting []net.Conn // of them, those that have asked nothing yet, the oldest first
}

// enter gives a connection a place, that of the oldest which has asked nothing
// where none is left; false if all have asked.
func (h *hall) enter(c net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.places) == MaxConnections {
		if len(h.waiting) == 0 {
			return false
		}
		oldest := h.waiting[0]
		h.forget(oldest)
		_ = oldest.Close() // whoever reads from it finds it over
	}
	h.places[c] = true
	h.waiting = append(h.waiting, c)
	return true
}

// asks lets a connection keep its place from now on; false if it has none.
func (h *hall) asks(c net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	has := h.places[c]
	h.forget(c)
	if has {
		h.places[c] = true
	}
	return has
}

// leave gives the place back, if the connection still has one.
func (h *hall) leave(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(c)
}

// forget needs mu.
func (h *hall) forget(c net.Conn) {
	delete(h.places, c)
	if at := slices.Index(h.waiting, c); at >= 0 {
		h.waiting = slices.Delete(h.waiting, at, at+1)
	}
}
