package drill

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"berth/events"
)

// The simulated state of an environment is bytes derived from the ids alone,
// so that a person, a test and the provider agree on them without storing any.
const (
	minContent   = 64 << 10 // of a machine that was told nothing else
	contentRange = 4 << 10
)

// KeepSmall makes states from least bytes on instead of 64 KiB, for whoever
// plays very many histories of one machine. It is not part of the snapshot:
// the same machine must always be told the same.
func (m *Machine) KeepSmall(least int64) { m.small = least }

func (m *Machine) length(id events.EnvironmentID, checkpoint string) int64 {
	if m.small > 0 {
		return contentLength(m.small, id, checkpoint)
	}
	return contentLength(minContent, id, checkpoint)
}

func contentSeed(id events.EnvironmentID, checkpoint string) [32]byte {
	return sha256.Sum256([]byte("drill content\x00" + string(id) + "\x00" + checkpoint))
}

func contentLength(least int64, id events.EnvironmentID, checkpoint string) int64 {
	s := contentSeed(id, checkpoint)
	return least + int64(s[0])<<8%contentRange + int64(s[1])
}

// Content is the bytes of a checkpoint, as an export delivers them.
func Content(id events.EnvironmentID, checkpoint string) []byte {
	return appendContent(nil, contentLength(minContent, id, checkpoint), id, checkpoint)
}

// AppendContent appends to b what Content is of this machine.
func (m *Machine) AppendContent(b []byte, id events.EnvironmentID, checkpoint string) []byte {
	return appendContent(b, m.length(id, checkpoint), id, checkpoint)
}

func appendContent(b []byte, size int64, id events.EnvironmentID, checkpoint string) []byte {
	n := len(b)
	b = slices.Grow(b, int(size))[:n+int(size)]
	if _, err := rand.NewChaCha8(contentSeed(id, checkpoint)).Read(b[n:]); err != nil {
		panic("drill: ChaCha8 can't fail: " + err.Error())
	}
	return b
}

// lastContent is what was asked for last: a checkpoint, its export and its file
// are asked for one after the other.
type lastContent struct {
	environment events.EnvironmentID
	checkpoint  string
	bytes       []byte
	sha256      string
}

// contentOf is Content and its digest. The bytes must not be changed.
func (m *Machine) contentOf(id events.EnvironmentID, checkpoint string) ([]byte, string) {
	if c := &m.content; c.bytes == nil || c.environment != id || c.checkpoint != checkpoint {
		b := m.AppendContent(nil, id, checkpoint)
		*c = lastContent{id, checkpoint, b, digest(b)}
	}
	return m.content.bytes, m.content.sha256
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (e *env) checkpoint(id string) *checkpoint {
	for i := range e.Checkpoints {
		if e.Checkpoints[i].ID == id {
			return &e.Checkpoints[i]
		}
	}
	return nil
}

func (e *env) file(id string) *file {
	for i := range e.Files {
		if e.Files[i].ID == id {
			return &e.Files[i]
		}
	}
	return nil
}

// capture keeps a checkpoint: of memory while there is any, else cold.
func (m *Machine) capture(t time.Time, e *env, id string) *events.Checkpoint {
	kind := "cold"
	if e.State == events.StateRunning || e.State == events.StatePaused {
		kind = "memory"
	}
	e.Checkpoints = append(e.Checkpoints, checkpoint{ID: id, Kind: kind, At: t})
	b, sum := m.contentOf(e.ID, id)
	return &events.Checkpoint{ID: id, Kind: kind, ByteLength: int64(len(b)), SHA256: sum, CapturedAt: t}
}

// export makes a checkpoint's bytes readable as a provider file, or says what
// is written at the host path. The checkpoint is not touched (R41).
func (m *Machine) export(e *env, c Call) *events.File {
	b, sum := m.contentOf(e.ID, c.Arguments.CheckpointID)
	f := &events.File{ByteLength: int64(len(b)), SHA256: sum}
	if c.Arguments.HostPath != "" {
		f.Path = c.Arguments.HostPath
		return f
	}
	f.ID = "file-" + string(c.Operation)
	e.Files = append(e.Files, file{ID: f.ID, Checkpoint: c.Arguments.CheckpointID})
	return f
}

// hostFile is what an export to a host path writes, spoiled as the fault says.
func (m *Machine) hostFile(e *env, c Call, f Fault) *HostFile {
	if events.Verb(c.Verb) != events.VerbExport || c.Arguments.HostPath == "" {
		return nil
	}
	b, _ := m.contentOf(e.ID, c.Arguments.CheckpointID)
	return &HostFile{Path: c.Arguments.HostPath, Bytes: spoil(b, f)}
}

// grown is how many bytes grow-stream adds.
const grown = 1024

// spoil applies a stream fault to the bytes that are about to be sent.
func spoil(b []byte, f Fault) []byte {
	switch f {
	case TruncateStream:
		return b[:len(b)/2]
	case GrowStream:
		return append(b[:len(b):len(b)], make([]byte, grown)...)
	case CorruptStream:
		c := append([]byte(nil), b...)
		if len(c) > 0 {
			c[len(c)/2] ^= 0xff
		}
		return c
	}
	return b
}

// output is what the simulated seat has printed: one line for each operation
// that landed.
func (e *env) output() []byte {
	var b strings.Builder
	for _, o := range e.Ops {
		if o.Phase == landed {
			fmt.Fprintf(&b, "%s drill %s %s\n", o.At.Format(time.RFC3339), e.Alias, o.Verb)
		}
	}
	return []byte(b.String())
}
