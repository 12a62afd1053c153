package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"berth/events"
)

// Limits of a frame, in bytes. Chunk is how much of a stream one frame takes.
const (
	MaxFrame = 1 << 20
	Chunk    = 256 << 10
	MaxFiles = 256 << 10 // of a launch, together
)

// What the supervisor asks. Each is answered by frames of the same number; the
// last one has More false, and Error if it failed.
const (
	DoHello   = "hello"   // Unix, Entropy, Name: sets the clock, stirs the entropy, names the host
	DoPut     = "put"     // unpacks Data, a tar in chunks, below Path
	DoGet     = "get"     // answers with a tar of Path in chunks; the seat is stopped meanwhile
	DoLaunch  = "launch"  // Files, Launch: writes the material, and starts the seat's command on a terminal
	DoInput   = "input"   // Data: to the terminal
	DoResize  = "resize"  // Rows, Cols
	DoSignal  = "signal"  // Signal: to every process of the seat
	DoQuiesce = "quiesce" // nothing is sent after the answer, until a hello
	DoOff     = "off"     // the machine ends; there may be no answer
)

// What the agent says by itself, with number 0.
const (
	SayReady  = "ready"  // the agent runs; Version
	SayOutput = "output" // Data: from the terminal
	SaySign   = "sign"   // the seat has given the sign of Launch.Ready
	SayExit   = "exit"   // Code: the seat's command has ended and so has all it started
)

// Door is said by both sides with number 0: Data of the stream with that number
// between a program in the guest and the manager's door. The first one of a
// number begins it, one without More ends it, and the end of stream 0 is the end of all.
const Door = "door"

// Limits of the door: streams of one guest at a time, the bytes of one frame,
// and how many frames wait for a peer that does not read before its stream ends.
const (
	MaxDoors      = 16
	DoorChunk     = 32 << 10
	MaxDoorChunks = 64
)

// Version of this protocol; both sides are of one build, so it only has to
// tell that something else is on the port.
const Version = 1

// Frame is one message. Absent fields are zero.
type Frame struct {
	N       uint64  `json:"n"`
	Do      string  `json:"do,omitempty"`
	Error   string  `json:"error,omitempty"`
	More    bool    `json:"more,omitempty"`
	Data    []byte  `json:"data,omitempty"`
	Path    string  `json:"path,omitempty"`
	Name    string  `json:"name,omitempty"`
	Unix    int64   `json:"unix,omitempty"` // nanoseconds
	Entropy []byte  `json:"entropy,omitempty"`
	Launch  *Launch `json:"launch,omitempty"`
	// Files are small material that goes along with a launch, by name.
	Files   map[string][]byte `json:"files,omitempty"`
	Rows    uint16            `json:"rows,omitempty"`
	Cols    uint16            `json:"cols,omitempty"`
	Signal  int               `json:"signal,omitempty"`
	Code    int               `json:"code,omitempty"`
	Version int               `json:"version,omitempty"`
	Stream  uint64            `json:"stream,omitempty"`
}

// Launch is the seat's command and what it finds.
type Launch struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env"`
	Dir     string            `json:"dir"`
	Rows    uint16            `json:"rows"`
	Cols    uint16            `json:"cols"`
	// Ready is the sign to look for inside; a pattern is looked for outside.
	Ready *events.ReadySign `json:"ready,omitempty"`
	// Door says that the seat's programs find their manager at a door.
	Door bool `json:"door,omitempty"`
}

// Writer sends frames, one at a time; it is safe for concurrent use.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter makes a Writer over w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Send writes one frame whole.
func (w *Writer) Send(f Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.send(f)
}

// SendAndHold writes one frame and keeps every other one back until Release.
func (w *Writer) SendAndHold(f Frame) error {
	w.mu.Lock()
	return w.send(f)
}

// Release ends a hold.
func (w *Writer) Release() { w.mu.Unlock() }

func (w *Writer) send(f Frame) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if len(b) > MaxFrame {
		return fmt.Errorf("a frame of %d bytes; at most %d are sent", len(b), MaxFrame)
	}
	b = append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b))), b...)
	_, err = w.w.Write(b)
	return err
}

// Read reads one frame; an error leaves the stream unusable.
func Read(r io.Reader) (Frame, error) {
	var f Frame
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxFrame {
		return f, fmt.Errorf("a frame of %d bytes; at most %d are read", n, MaxFrame)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return f, err
	}
	return f, json.Unmarshal(b, &f)
}

// Hello is the frame that gives a guest the time and fresh entropy.
func Hello(name string, now time.Time, entropy []byte) Frame {
	return Frame{Do: DoHello, Name: name, Unix: now.UnixNano(), Entropy: entropy}
}
