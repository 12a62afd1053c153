package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"berth/events"
	"berth/providers/hosted/wire"
)

// maxChanges is how many changes are kept for clients that do not ask; one
// that is further behind is told to look at everything.
const maxChanges = 10_000

// hub keeps what changed by itself, in order, for clients that poll.
type hub struct {
	boot string // another one after every start: older cursors mean nothing

	mu      sync.Mutex
	first   uint64 // number of the first change that is kept
	changes []events.EnvironmentID
	bell    chan struct{} // closed at the next change
}

func newHub() *hub {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails (crypto/rand)
	return &hub{boot: hex.EncodeToString(b[:]), bell: make(chan struct{})}
}

// changed notes that an environment changed by itself.
func (h *hub) changed(id events.EnvironmentID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.changes) >= maxChanges {
		half := len(h.changes) / 2
		h.changes, h.first = slices.Clone(h.changes[half:]), h.first+uint64(half)
	}
	h.changes = append(h.changes, id)
	h.ring()
}

// reset makes every cursor too old.
func (h *hub) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first, h.changes = h.first+uint64(len(h.changes))+1, nil
	h.ring()
}

func (h *hub) ring() {
	close(h.bell)
	h.bell = make(chan struct{})
}

// after waits for changes after a cursor, until ctx ends. An empty cursor is
// answered at once, with one to begin from.
func (h *hub) after(ctx context.Context, cursor string) wire.Changes {
	for {
		c, bell := h.look(cursor)
		if cursor == "" || c.Reset || len(c.Environments) > 0 {
			return c
		}
		select {
		case <-bell:
		case <-ctx.Done():
			return c
		}
	}
}

func (h *hub) look(cursor string) (wire.Changes, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := h.first + uint64(len(h.changes))
	c := wire.Changes{Cursor: fmt.Sprintf("%s-%d", h.boot, end), Environments: []events.EnvironmentID{}}
	if cursor == "" {
		return c, h.bell
	}
	boot, number, _ := strings.Cut(cursor, "-")
	at, err := strconv.ParseUint(number, 10, 64)
	if boot != h.boot || err != nil || at < h.first || at > end {
		c.Reset = true
		return c, h.bell
	}
	seen := map[events.EnvironmentID]bool{}
	for _, id := range h.changes[at-h.first:] {
		if !seen[id] {
			seen[id] = true
			c.Environments = append(c.Environments, id)
		}
	}
	return c, h.bell
}
