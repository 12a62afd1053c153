package providers

import (
	"encoding/binary"
	"fmt"
	"io"
)

// MaxPart bounds the bytes of one part on its way.
const MaxPart = 4 << 20

// keptPart bounds the memory that a stream keeps for the next part.
const keptPart = 128 << 10

// partHead is a part's head on a stream: kind, partial, rows, columns,
// dropped and the length of the data, big-endian.
const partHead = 1 + 1 + 2 + 2 + 8 + 4

// WritePart writes one part as ReadPart reads it, in one Write.
func WritePart(w io.Writer, p Part) error { return (&PartWriter{W: w}).Write(p) }

// PartWriter writes parts to W, for one goroutine. It keeps its memory from
// one part to the next.
type PartWriter struct {
	W   io.Writer
	buf []byte
}

// Write writes one part as ReadPart reads it, in one Write.
func (w *PartWriter) Write(p Part) error {
	if len(p.Data) > MaxPart {
		return fmt.Errorf("a part of %d bytes: at most %d", len(p.Data), MaxPart)
	}
	b := append(w.buf[:0], byte(p.Kind), 0)
	if p.Partial {
		b[1] = 1
	}
	b = binary.BigEndian.AppendUint16(b, p.Size.Rows)
	b = binary.BigEndian.AppendUint16(b, p.Size.Cols)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Dropped))
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.Data)))
	b = append(b, p.Data...)
	if cap(b) <= keptPart {
		w.buf = b
	}
	_, err := w.W.Write(b)
	return err
}

// ReadPart reads one part; io.EOF if the stream ended before it. A stream that
// ends within a part is io.ErrUnexpectedEOF, and what is no part an error.
func ReadPart(r io.Reader) (Part, error) { return readPart(r, nil) }

// readPart has the data in buf, if there is room.
func readPart(r io.Reader, buf []byte) (Part, error) {
	var h [partHead]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return Part{}, err
	}
	p := Part{
		Kind: PartKind(h[0]), Partial: h[1] == 1, Dropped: int64(binary.BigEndian.Uint64(h[6:])),
		Size: Size{binary.BigEndian.Uint16(h[2:]), binary.BigEndian.Uint16(h[4:])},
	}
	n := binary.BigEndian.Uint32(h[14:])
	if p.Kind < PartRepaint || p.Kind > PartSize || h[1] > 1 || p.Dropped < 0 || n > MaxPart {
		return Part{}, fmt.Errorf("not a part of a view")
	}
	if p.Kind != PartData && p.Size.Check() != nil {
		return Part{}, fmt.Errorf("a part of a view with an impossible size")
	}
	if p.Data = buf[:0]; buf == nil || cap(buf) < int(n) {
		p.Data = make([]byte, 0, n)
	}
	p.Data = p.Data[:n]
	if _, err := io.ReadFull(r, p.Data); err != nil {
		return Part{}, io.ErrUnexpectedEOF
	}
	return p, nil
}

// PartStream is a View over a stream of parts that R reads and C closes.
type PartStream struct {
	R   io.Reader
	C   io.Closer
	buf []byte
}

// Next implements View.
func (s *PartStream) Next() (Part, error) {
	p, err := readPart(s.R, s.buf)
	if cap(p.Data) <= keptPart {
		s.buf = p.Data
	}
	return p, err
}

// Close implements View.
func (s *PartStream) Close() error { return s.C.Close() }
