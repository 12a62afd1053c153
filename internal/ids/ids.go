// Package ids makes the ids that pure code may not make: from the system's
// random source, or from a seed for the simulation.
package ids

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"io"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"berth/events"
)

// alphabet is that of tokens; 26 characters of 36 carry 134 bits.
const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

// tokenLength is the length of a minted lifecycle uid or instance id.
const tokenLength = 26

// step is how far apart the ids of one source are: the events of a
// commit take its id plus 0 to 31, so the last bits are left to them.
const step = 1 << 12

// Source implements events.IDs. It is safe for concurrent use.
type Source struct {
	mu     sync.Mutex
	random io.Reader
	now    func() time.Time
	buf    [2 * tokenLength]byte // scratch
	last   uint64                // 48 bits of milliseconds, 12 of a counter
}

var _ events.IDs = (*Source)(nil)

// New is the source of a running program: crypto/rand and the wall clock.
func New() *Source { return &Source{random: rand.Reader, now: time.Now} }

// Seeded gives the same ids for the same seed and clock, for simulations and
// tests only: its ids can be guessed.
func Seeded(seed uint64, now func() time.Time) *Source {
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], seed)
	return &Source{random: bufio.NewReader(mathrand.NewChaCha8(key)), now: now}
}

// UUID implements events.IDs: a UUIDv7 that rises within this source also
// within one millisecond and when the clock is set back. Its last 12 bits are
// zero, so that the ids of a commit's events never meet those of another.
func (s *Source) UUID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := uint64(max(s.now().UnixMilli(), 0)) << 12
	if t <= s.last {
		t = s.last + 1
	}
	s.last = t
	var u uuid.UUID
	s.read(s.buf[:8])
	copy(u[8:], s.buf[:8])
	binary.BigEndian.PutUint32(u[0:], uint32(t>>28))
	binary.BigEndian.PutUint16(u[4:], uint16(t>>12))
	binary.BigEndian.PutUint16(u[6:], 0x7000|uint16(t&0xfff))
	u[8] = u[8]&0x3f | 0x80
	binary.BigEndian.PutUint16(u[14:], binary.BigEndian.Uint16(u[14:])&^(step-1))
	return u.String()
}

// Token implements events.IDs.
func (s *Source) Token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]byte, 0, tokenLength)
	b := s.buf[:]
	for len(out) < tokenLength {
		s.read(b)
		for _, c := range b {
			// 252 is the largest multiple of 36 in a byte: above it, characters
			// would not be equally likely.
			if c < 252 && len(out) < tokenLength {
				out = append(out, alphabet[c%36])
			}
		}
	}
	return string(out)
}

// read can't fail: crypto/rand ends the program if the system has no
// randomness, and a seeded source never ends.
func (s *Source) read(b []byte) {
	if _, err := io.ReadFull(s.random, b); err != nil {
		panic("ids: no randomness: " + err.Error())
	}
}
