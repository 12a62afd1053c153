package projections

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/aggregates/environment"
	"berth/events"
)

// chunkBytes is the size of one piece of the store of retired rows: pieces are
// never copied when it grows.
const chunkBytes = 64 << 10

// Retired is one lifecycle that has ended.
type Retired struct {
	Owner      events.Owner
	Alias      events.Alias
	UID        events.UID
	Holder     events.InstanceID
	Reason     string // why it ended
	WrittenOff bool
	Refused    bool // it ended before or during creation
	Resources  events.Resources
	ClaimedAt  int64 // epoch ms
	ReleasedAt int64 // epoch ms: proof of exit or write-off
	RetiredAt  int64 // epoch ms
	ExitCode   *int
	Record     ManagedEnvironmentRecord // as it was last
	prev       uint32
}

func (r Retired) ended() time.Time { return time.UnixMilli(r.RetiredAt).UTC() }

func retiredOf(e *entry, at int64) Retired {
	s := &e.seat
	claimed := stamp(s.Environment.CreatedAt)
	reason := s.Slot.Reason
	if s.Environment.WrittenOff {
		reason = "written-off"
	}
	return Retired{
		Owner: s.Owner, Alias: s.Alias, UID: s.Slot.UID, Holder: s.Slot.Holder, Reason: reason,
		WrittenOff: s.Environment.WrittenOff, Refused: s.Environment.Refusal != nil,
		Resources: s.Environment.Plan.Resources, ClaimedAt: claimed, ReleasedAt: max(e.released, claimed),
		RetiredAt: max(at, claimed), ExitCode: s.Environment.ExitCode, Record: RecordOf(*s, ""), prev: e.prev,
	}
}

// packed holds retired rows as bytes: what repeats (owners, providers,
// images, hosts, capabilities) is stored once and named by number.
type packed struct {
	chunks [][]byte
	rows   []uint64 // chunk number << 32 | offset
	words  table[string]
	sizes  table[events.Quantity]
	caps   table[events.Capabilities]
}

// table numbers distinct values in the order in which they came.
type table[T comparable] struct {
	values []T
	index  map[T]uint64
}

func (t *table[T]) number(v T) uint64 {
	n, ok := t.index[v]
	if !ok {
		v = own(v)
		if t.index == nil {
			t.index = map[T]uint64{}
		}
		n = uint64(len(t.values))
		t.values = append(t.values, v)
		t.index[v] = n
	}
	return n
}

func (t *table[T]) clone() table[T] {
	return table[T]{values: slices.Clone(t.values), index: maps.Clone(t.index)}
}

// own copies a text that may be a part of a large record, which would stay
// in memory with it.
func own[T comparable](v T) T {
	if s, ok := any(&v).(*string); ok {
		*s = strings.Clone(*s)
	}
	return v
}

// tableOf is a table that holds values already.
func tableOf[T comparable](values []T) table[T] {
	var t table[T]
	for _, v := range values {
		t.number(v)
	}
	return t
}

// Flags of a row.
const (
	flagWrittenOff = 1 << iota
	flagRefused
	flagExit
	flagStopped
	flagExpires
	flagProbed
)

func (p *packed) add(r Retired) uint32 {
	b := p.pack(make([]byte, 0, 256), r)
	n := len(p.chunks) - 1
	if n < 0 || len(p.chunks[n])+len(b) > cap(p.chunks[n]) {
		p.chunks = append(p.chunks, make([]byte, 0, max(chunkBytes, len(b))))
		n++
	}
	at := len(p.chunks[n])
	p.chunks[n] = append(p.chunks[n], b...)
	p.rows = append(p.rows, uint64(n)<<32|uint64(at))
	return uint32(len(p.rows) - 1)
}

func (p *packed) pack(b []byte, r Retired) []byte {
	rec := r.Record
	var flags byte
	optional := []struct {
		flag byte
		on   bool
	}{{flagWrittenOff, r.WrittenOff}, {flagRefused, r.Refused}, {flagExit, r.ExitCode != nil}, {flagStopped, rec.StoppedAt != nil}, {flagExpires, rec.ExpiresAt != nil}, {flagProbed, rec.ProbedAt != nil}}
	for _, o := range optional {
		if o.on {
			flags |= o.flag
		}
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(r.prev))
	b = appendID(b, rec.ID)
	for _, s := range []string{string(r.Alias), string(r.UID), rec.ProviderRef, rec.VolumeID} {
		b = appendText(b, s)
	}
	for _, s := range []string{string(r.Owner), string(r.Holder), r.Reason, rec.Provider, rec.Host, rec.Architecture, rec.Engine,
		rec.Image.Kind, rec.Image.Reference, rec.Image.Digest, string(rec.State), rec.Network} {
		b = binary.AppendUvarint(b, p.words.number(s))
	}
	b = binary.AppendUvarint(b, p.sizes.number(r.Resources.CPUs))
	b = binary.AppendUvarint(b, p.caps.number(rec.Capabilities))
	for _, n := range []int64{r.Resources.MemoryMiB, r.Resources.DiskGiB, r.ClaimedAt, r.ReleasedAt - r.ClaimedAt, r.RetiredAt - r.ClaimedAt} {
		b = binary.AppendVarint(b, n)
	}
	if r.ExitCode != nil {
		b = binary.AppendVarint(b, int64(*r.ExitCode))
	}
	for _, t := range []*int64{rec.StoppedAt, rec.ExpiresAt, rec.ProbedAt} {
		if t != nil {
			b = binary.AppendVarint(b, *t-r.ClaimedAt)
		}
	}
	return b
}

// row reads a row back; space is filled in by the caller.
func (p *packed) row(i uint32) Retired {
	at := p.rows[i]
	c := cursor{b: p.chunks[at>>32][at&0xffffffff:]}
	flags := c.b[0]
	c.b = c.b[1:]
	r := Retired{prev: uint32(c.uvarint()), WrittenOff: flags&flagWrittenOff != 0, Refused: flags&flagRefused != 0}
	rec := ManagedEnvironmentRecord{Version: RecordVersion, ID: events.EnvironmentID(c.id())}
	r.Alias, r.UID, rec.ProviderRef, rec.VolumeID = events.Alias(c.text()), events.UID(c.text()), c.text(), c.text()
	word := func() string { return p.words.values[c.uvarint()] }
	r.Owner, r.Holder, r.Reason = events.Owner(word()), events.InstanceID(word()), word()
	rec.Provider, rec.Host, rec.Architecture, rec.Engine = word(), word(), word(), word()
	rec.Image = RecordImage{Kind: word(), Reference: word(), Digest: word()}
	rec.State, rec.Network = environment.RecordState(word()), word()
	r.Resources.CPUs, rec.Capabilities = p.sizes.values[c.uvarint()], p.caps.values[c.uvarint()]
	r.Resources.MemoryMiB, r.Resources.DiskGiB, r.ClaimedAt = c.varint(), c.varint(), c.varint()
	r.ReleasedAt, r.RetiredAt = r.ClaimedAt+c.varint(), r.ClaimedAt+c.varint()
	if flags&flagExit != 0 {
		n := int(c.varint())
		r.ExitCode = &n
	}
	moment := func(flag byte) *int64 {
		if flags&flag == 0 {
			return nil
		}
		t := r.ClaimedAt + c.varint()
		return &t
	}
	rec.StoppedAt, rec.ExpiresAt, rec.ProbedAt = moment(flagStopped), moment(flagExpires), moment(flagProbed)
	rec.Owner, rec.CreatedAt = r.Owner, r.ClaimedAt
	r.Record = rec
	return r
}

// appendID stores a UUID in 16 bytes, and anything else as text.
func appendID(b []byte, id events.EnvironmentID) []byte {
	if u, err := uuid.Parse(string(id)); err == nil && u.String() == string(id) {
		return append(append(b, 1), u[:]...)
	}
	return appendText(append(b, 0), string(id))
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// cursor reads what pack wrote. Snapshots are checksummed, so it trusts them.
type cursor struct{ b []byte }

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	c.b = c.b[n:]
	return v
}

func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.b)
	c.b = c.b[n:]
	return v
}

func (c *cursor) text() string {
	n := c.uvarint()
	s := string(c.b[:n])
	c.b = c.b[n:]
	return s
}

func (c *cursor) id() string {
	isUUID := c.b[0] == 1
	c.b = c.b[1:]
	if !isUUID {
		return c.text()
	}
	u := uuid.UUID(c.b[:16])
	c.b = c.b[16:]
	return u.String()
}
