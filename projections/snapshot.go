package projections

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"golang.org/x/sync/errgroup"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
)

// snapshotVersion rises when the meaning of a fold changes; a change of
// fields is seen without it (shape).
const snapshotVersion = 1

// Limits of a snapshot file.
const (
	MaxSnapshotBytes = 4 << 30
	seatsPerPart     = 256 // parts are read side by side
)

const snapshotMagic = "BERTHVIEWS\n"

// snapshotHead is what decides whether a snapshot is of any use.
type snapshotHead struct {
	Version  int          `json:"version"`
	Fold     int          `json:"fold"` // aggregates.SnapshotFormat
	Shape    string       `json:"shape"`
	Space    events.Space `json:"space"`
	Stream   string       `json:"stream"`
	Sequence uint64       `json:"sequence"`
	Rest     int          `json:"rest"`   // bytes of the dump
	Seats    []int        `json:"seats"`  // bytes of each part of the live seats
	Chunks   []int        `json:"chunks"` // bytes of each piece of the retired
	Rows     int          `json:"rows"`   // retired rows
}

// stored keeps zero values out of the file: most of a seat is zero.
var stored = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv2.OmitZeroStructFields(true))

// Save writes the views to a file so that a start reads the log's tail only.
// stream is the identity of the stream that was folded. The file is complete
// and synced before it takes the place of the one before.
func Save(path, stream string, v *Views) error {
	b, err := encodeSnapshot(stream, v)
	if err != nil {
		return fault.New(fault.Internal, "the snapshot at sequence %d can't be encoded: %s", v.sequence, events.Scrub(err.Error()))
	}
	if err := durable.WriteFile(path, b, 0o600); err != nil {
		return fault.New(fault.Unavailable, "the snapshot %s can't be written: %s", path, events.Scrub(err.Error())).
			WithHint("the one before is kept; without one a start reads the whole log")
	}
	return nil
}

// Load reads a snapshot. It refuses with not-found where there is none, and
// with failed-precondition one that is damaged, of another program, space or
// stream: the caller folds from the beginning then (law 4).
func Load(path, stream string, space events.Space) (*Views, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "there is no snapshot %s", path)
	case err != nil:
		return nil, useless(path, events.Scrub(err.Error()))
	case info.Size() > MaxSnapshotBytes:
		return nil, useless(path, "it is too large to be one")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, useless(path, events.Scrub(err.Error()))
	}
	v, err := decodeSnapshot(b, stream, space)
	if err != nil {
		return nil, useless(path, events.Scrub(err.Error()))
	}
	return v, nil
}

func useless(path, why string) error {
	return fault.New(fault.FailedPrecondition, "the snapshot %s is not used: %s", path, why).
		WithHint("nothing is lost: everything is folded from the log")
}

func encodeSnapshot(stream string, v *Views) ([]byte, error) {
	head := snapshotHead{Version: snapshotVersion, Fold: aggregates.SnapshotFormat, Shape: shape(), Space: v.space, Stream: stream, Sequence: v.sequence, Rows: len(v.retired.rows)}
	rest, err := jsonv2.Marshal(v.dump(), stored, jsonv2.Deterministic(true))
	if err != nil {
		return nil, err
	}
	head.Rest = len(rest)
	parts, err := v.seatParts()
	if err != nil {
		return nil, err
	}
	size := len(rest) + 8*len(v.retired.rows)
	for _, p := range parts {
		head.Seats = append(head.Seats, len(p))
		size += len(p)
	}
	for _, c := range v.retired.chunks {
		head.Chunks = append(head.Chunks, len(c))
		size += len(c)
	}
	h, err := jsonv2.Marshal(head)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, size+len(h)+64)
	b = append(b, snapshotMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(h)))
	b = append(append(b, h...), rest...)
	for _, p := range slices.Concat(parts, v.retired.chunks) {
		b = append(b, p...)
	}
	for _, r := range v.retired.rows {
		b = binary.LittleEndian.AppendUint64(b, r)
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...), nil
}

func (v *Views) seatParts() ([][]byte, error) {
	all := v.sorted(Query{})
	var parts [][]byte
	for some := range slices.Chunk(all, seatsPerPart) {
		ds := make([]liveDump, len(some))
		for i, e := range some {
			ds[i] = liveDump{Seat: e.seat, Released: e.released, Prev: e.prev}
		}
		b, err := jsonv2.Marshal(ds, stored, jsonv2.Deterministic(true))
		if err != nil {
			return nil, err
		}
		parts = append(parts, b)
	}
	return parts, nil
}

func decodeSnapshot(b []byte, stream string, space events.Space) (v *Views, err error) {
	// A file with a right checksum was written by Save; what is still wrong
	// with it is a defect, which must cost a rebuild and not the start.
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("reading it failed: %v", p)
		}
	}()
	body, ok := bytes.CutPrefix(b, []byte(snapshotMagic))
	if !ok || len(body) < 4+sha256.Size {
		return nil, errors.New("it is not a snapshot")
	}
	end := len(b) - sha256.Size
	if sum := sha256.Sum256(b[:end]); !bytes.Equal(sum[:], b[end:]) {
		return nil, errors.New("its checksum is wrong")
	}
	body = body[:len(body)-sha256.Size]
	take := func(n int) []byte {
		part := body[:n:n]
		body = body[n:]
		return part
	}
	var head snapshotHead
	if err := jsonv2.Unmarshal(take(int(binary.LittleEndian.Uint32(take(4)))), &head); err != nil {
		return nil, err
	}
	switch {
	case head.Version != snapshotVersion || head.Fold != aggregates.SnapshotFormat || head.Shape != shape():
		return nil, errors.New("it was written by another version of this program")
	case head.Space != space || head.Stream != stream:
		return nil, errors.New("it is of another stream")
	}
	v = NewViews(space)
	v.sequence = head.Sequence
	var d dump
	if err := jsonv2.Unmarshal(take(head.Rest), &d, stored); err != nil {
		return nil, err
	}
	if err := v.restore(d); err != nil {
		return nil, err
	}
	parts := make([][]byte, len(head.Seats))
	for i, n := range head.Seats {
		parts[i] = take(n)
	}
	for _, n := range head.Chunks {
		// A copy, so that the file's bytes can go.
		v.retired.chunks = append(v.retired.chunks, bytes.Clone(take(n)))
	}
	for range head.Rows {
		v.retired.rows = append(v.retired.rows, binary.LittleEndian.Uint64(take(8)))
	}
	v.names()
	return v, v.readSeats(parts)
}

// readSeats reads the parts of the live seats side by side.
func (v *Views) readSeats(parts [][]byte) error {
	read := make([][]liveDump, len(parts))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range parts {
		g.Go(func() error { return jsonv2.Unmarshal(p, &read[i], stored) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, ds := range read {
		for _, d := range ds {
			v.tidyAll(&d.Seat)
			v.live[d.Seat.Boundary()] = &entry{seat: d.Seat, released: d.Released, prev: d.Prev}
		}
	}
	return nil
}
