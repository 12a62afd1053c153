package acp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"berth/events"
	"berth/internal/durable"
)

// MemoryFile is where a seat's home remembers the session: a checkpoint has it,
// so that a restored seat, or one that begins from it, can take it up.
const MemoryFile = ".berth-acp-session"

// maxText bounds a file that is read, in bytes.
const maxText = 256 << 10

// memory is what a home remembers.
type memory struct {
	Session string `json:"session"`
	Prompt  string `json:"prompt"` // digest of the first prompt, which the session has seen
}

// remembered is the earlier session, or nothing: what can't be read is not
// taken up.
func (s Seat) remembered() (m memory) {
	if s.Home == "" {
		return m
	}
	b, err := read(filepath.Join(s.Home, MemoryFile))
	if err != nil || json.Unmarshal([]byte(b), &m) != nil {
		return memory{}
	}
	return m
}

// remember keeps the session. A home that can't be written to costs that it can
// be taken up, and not the session.
func (s Seat) remember(m memory) {
	if s.Home == "" {
		return
	}
	if b, err := json.Marshal(m); err == nil {
		_ = durable.WriteFile(filepath.Join(s.Home, MemoryFile), append(b, '\n'), 0o600)
	}
}

// texts are the prompt and the persona that the seat was given; empty: none.
func (s Seat) texts() (prompt, persona string, err error) {
	if s.Material == "" {
		return "", "", nil
	}
	prompt, err = read(filepath.Join(s.Material, events.FilePrompt))
	if err == nil {
		persona, err = read(filepath.Join(s.Material, events.FilePersona))
	}
	return strings.TrimSpace(prompt), strings.TrimSpace(persona), err
}

// read is a file's text; a file that is not there is empty.
func read(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err == nil && len(b) > maxText {
		err = fmt.Errorf("%s is longer than %d bytes", filepath.Base(path), maxText)
	}
	return string(b), err
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
