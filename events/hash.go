package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"sync"

	"berth/events/fault"
)

// hashText is the number of base64url characters of a Hash.
const hashText = 43

var (
	b64        = base64.RawURLEncoding.Strict()
	hashMember = []byte(`,"hash":"`)
	hashers    = sync.Pool{New: func() any { return &hasher{Hash: sha256.New()} }}
)

// hasher keeps what the hash of a commit needs beside the digest, which would
// be allocated each time otherwise.
type hasher struct {
	hash.Hash
	head [128]byte
	sum  Hash
}

// String is the base64url text of h, without padding.
func (h Hash) String() string { return b64.EncodeToString(h[:]) }

func (h Hash) append(b []byte) []byte { return b64.AppendEncode(b, h[:]) }

// IsZero says that h is the hash before the first commit.
func (h Hash) IsZero() bool { return h == Hash{} }

// MarshalText writes base64url.
func (h Hash) MarshalText() ([]byte, error) { return b64.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads exactly 43 base64url characters.
func (h *Hash) UnmarshalText(b []byte) error {
	if len(b) != hashText {
		return fault.New(fault.BadRequest, "hash %q is not 43 base64url characters", clip(string(b)))
	}
	if _, err := b64.Decode(h[:], b); err != nil {
		return fault.New(fault.BadRequest, "hash %q is not 43 base64url characters", clip(string(b)))
	}
	return nil
}

// HashOf is the hash of a stored body on a boundary, as doc.go defines it, and
// whether the body's own hash member says the same. The boundary is in it, so
// that a commit moved to another subject is found out.
func HashOf(b Boundary, body []byte) (computed Hash, matches bool) {
	content, stated, ok := splitHash(body)
	computed = hashContent(b, content)
	return computed, ok && computed == stated
}

func hashContent(b Boundary, content []byte) Hash {
	h := hashers.Get().(*hasher)
	defer hashers.Put(h)
	h.Reset()
	buf := append(h.head[:0], "berth.commit.v1\n"...)
	buf = append(buf, b...)
	buf = append(buf, '\n')
	h.Write(buf)
	h.Write(content)
	h.Sum(h.sum[:0])
	return h.sum
}

// splitHash cuts `,"hash":"…"}` off a body.
func splitHash(body []byte) (content []byte, stated Hash, ok bool) {
	tail := len(hashMember) + hashText + 2
	if len(body) < tail || !bytes.HasSuffix(body, []byte(`"}`)) {
		return body, stated, false
	}
	cut := len(body) - tail
	if !bytes.HasPrefix(body[cut:], hashMember) {
		return body, stated, false
	}
	if stated.UnmarshalText(body[cut+len(hashMember):len(body)-2]) != nil {
		return body, Hash{}, false
	}
	return body[:cut], stated, true
}

// ChainNext is the running hash of a whole stream after one more record:
// SHA-256 of the chain before, the sequence (8 bytes, big endian) and the
// record's hash. The chain before the first record is zero.
func ChainNext(chain Hash, sequence uint64, record Hash) Hash {
	var buf [32 + 8 + 32]byte
	copy(buf[:], chain[:])
	binary.BigEndian.PutUint64(buf[32:], sequence)
	copy(buf[40:], record[:])
	return sha256.Sum256(buf[:])
}
