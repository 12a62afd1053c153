package terminal

import (
	"encoding/binary"
	"encoding/json"

	"berth/events/fault"
)

// Kind is what a frame says.
type Kind string

// The kinds of frames. Data goes both ways: output to the holder, input from it.
const (
	KindData   Kind = "data"   // Seq and Data; only these are counted by the window
	KindReady  Kind = "ready"  // to the holder: the whole screen follows
	KindResize Kind = "resize" // both ways: Rows and Cols
	KindDrop   Kind = "drop"   // to the holder: Bytes of output are missing here; the whole screen follows
	KindWriter Kind = "writer" // to the holder: whether it is the one that may write
	KindEnd    Kind = "end"    // to the holder: Reason; nothing follows
	KindAck    Kind = "ack"    // from the holder: data up to Seq arrived
	KindPing   Kind = "ping"   // from the holder
	KindPong   Kind = "pong"   // to the holder
	KindClose  Kind = "close"  // from the holder: it leaves
)

// Reason is why a session ended.
type Reason string

// The reasons, told apart.
const (
	EndExit     Reason = "process-exit"
	EndClosed   Reason = "closed" // by the holder, it was silent or faster than the seat reads, or the terminal can't be reached
	EndExpired  Reason = "expired"
	EndDespawn  Reason = "target-despawn"
	EndRestart  Reason = "manager-restart" // ask for a new session
	EndLinkLost Reason = "link-lost"       // found by the holder alone: ask for a new session
)

// Frame is one message of a session.
type Frame struct {
	Kind   Kind   `json:"t"`
	Seq    uint64 `json:"seq,omitempty"`
	Data   []byte `json:"data,omitempty"`
	Rows   uint16 `json:"rows,omitempty"`
	Cols   uint16 `json:"cols,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	Writer bool   `json:"writer,omitempty"`
	Reason Reason `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// dataMark begins a data frame: it is followed by the sequence, 8 bytes
// big-endian, and the bytes as they are. Every other frame is JSON.
const dataMark = 1

// Encode writes a frame.
func (f Frame) Encode() ([]byte, error) { return f.Append(nil) }

// Append writes a frame behind b, in its memory if there is room.
func (f Frame) Append(b []byte) ([]byte, error) {
	if f.Kind != KindData {
		j, err := json.Marshal(f)
		return append(b, j...), err
	}
	b = binary.BigEndian.AppendUint64(append(b, dataMark), f.Seq)
	return append(b, f.Data...), nil
}

// Decode reads a frame. Unknown kinds are given as they are, for the reader to
// pass over; what is no frame is refused with bad-request.
func Decode(b []byte) (Frame, error) {
	if len(b) >= 9 && b[0] == dataMark && len(b) <= 9+MaxFrame {
		return Frame{Kind: KindData, Seq: binary.BigEndian.Uint64(b[1:]), Data: b[9:]}, nil
	}
	var f Frame
	if len(b) > MaxOffer || len(b) == 0 || b[0] != '{' || json.Unmarshal(b, &f) != nil || f.Kind == "" || f.Kind == KindData {
		return Frame{}, fault.New(fault.BadRequest, "not a frame of a terminal session")
	}
	return f, nil
}
