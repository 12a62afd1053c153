package events

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"berth/events/fault"
)

// text is a member's name, with what is before it, and its text.
func (s *scanner) text(name string) string {
	s.lit(name)
	return s.shared()
}

// textIf is a member that is left out when it is empty.
func (s *scanner) textIf(name string) string {
	if !s.maybe(name) {
		return ""
	}
	return s.shared()
}

func (s *scanner) number(name string) uint64 {
	s.lit(name)
	return s.uint()
}

func (s *scanner) boolean(name string) bool {
	s.lit(name)
	if s.maybe(`true`) {
		return true
	}
	s.lit(`false`)
	return false
}

func (s *scanner) timeOrNull() *time.Time {
	if s.maybe(`null`) {
		return nil
	}
	t := s.time()
	return &t
}

// rawObject is a copy of an object that is kept as it is.
func (s *scanner) rawObject() []byte {
	o := s.object()
	if s.bad || !jsontext.Value(o).IsValid() {
		s.bad = true
		return nil
	}
	return append([]byte(nil), o...)
}

// fault is a failure without structured details.
func (s *scanner) fault() *fault.Error {
	f := &fault.Error{Code: fault.Code(s.text(`{"code":`)), Message: s.text(`,"message":`), Hint: s.textIf(`,"hint":`), Outcome: fault.Outcome(s.text(`,"outcome":`))}
	f.Retryable = s.boolean(`,"retryable":`)
	if s.maybe(`,"details":`) {
		f.Details = listOf(s, s.detail)
	}
	f.ID = s.textIf(`,"id":`)
	s.lit(`}`)
	s.bad = s.bad || f.Outcome == "" // it would be read as unknown (E4)
	return f
}

func (s *scanner) detail() fault.Detail {
	d := fault.Detail{Kind: s.text(`{"kind":`)}
	if s.maybe(`,"facts":`) {
		d.Facts = s.textMap()
	}
	s.lit(`}`)
	return d
}

func (s *scanner) lastFault() *fault.Error {
	s.lit(`,"fault":`)
	f := s.fault()
	s.lit(`}`)
	return f
}

func (s *scanner) texts() []string { return listOf(s, s.shared) }

// listOf is a list, or null for one that is nil.
func listOf[T any](s *scanner, one func() T) []T {
	if s.maybe(`null`) {
		return nil
	}
	s.lit(`[`)
	out := []T{}
	if s.maybe(`]`) {
		return out
	}
	for !s.bad {
		out = append(out, one())
		if !s.maybe(`,`) {
			break
		}
	}
	s.lit(`]`)
	return out
}

func (s *scanner) textMap() map[string]string {
	s.lit(`{`)
	out := map[string]string{}
	if s.maybe(`}`) {
		return out
	}
	for !s.bad {
		k := s.shared()
		s.lit(`:`)
		out[k] = s.shared()
		if !s.maybe(`,`) {
			break
		}
	}
	s.lit(`}`)
	return out
}

// The table of shared strings: at most 4096 of up to 64 bytes are kept alive.
const (
	sharedSlots = 1 << 12
	maxShared   = 64
)

var sharedStrings [sharedSlots]atomic.Pointer[string]

// slotOf is the place of a string: by its length and its two ends, which may
// overlap, since types share their ends and ids their beginnings.
func slotOf(b []byte) uint64 {
	const odd = 0x9E3779B97F4A7C15
	h := uint64(len(b)) * odd
	if len(b) >= 8 {
		h = (h ^ binary.LittleEndian.Uint64(b)) * odd
		h = (h ^ h>>32 ^ binary.LittleEndian.Uint64(b[len(b)-8:])) * odd
	} else {
		for _, c := range b {
			h = (h ^ uint64(c)) * odd
		}
	}
	return h >> 52
}

// shared is str for what is likely to have been read before: the ids of a life
// are in each of its records, and what the folds keep of them is one string
// then, not one for each place. Which one is kept of two that fall on one slot
// does not matter.
func (s *scanner) shared() string {
	b := s.raw()
	if len(b) == 0 {
		return ""
	}
	if len(b) > maxShared {
		return string(b)
	}
	slot := &sharedStrings[slotOf(b)]
	if p := slot.Load(); p != nil && *p == string(b) {
		return *p
	}
	t := string(b)
	slot.Store(&t)
	return t
}
