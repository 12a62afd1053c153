//go:build linux

package machine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"berth/providers/kept"
)

// A golden state is the memory of a machine that has booted and was given
// nothing: no time of its own, no name, no secret, no command. Every later
// start of the same hardware loads it instead of booting. It is a cache: what
// is missing, damaged or does not run is made anew by a cold boot.
const (
	MaxGolden      = 4         // states that are kept; the longest unused goes first
	MaxGoldenBytes = 512 << 20 // of one state; a larger one is not kept
	goldenPrefix   = "golden-"
	goldenPatience = 60 * time.Second // for making one, and for waking one up
)

// GoldenFile is the path of a part of h's golden state in a directory: StateExt,
// .json or .lock.
func GoldenFile(dir string, h Hardware, ext string) string {
	return filepath.Join(dir, goldenPrefix+h.Digest()[:24]+ext)
}

func (s *supervisor) goldenFile(ext string) string {
	return GoldenFile(s.start.Golden, s.start.Hardware, ext)
}

// wantsGolden says that this start may use and make a golden state.
func (s *supervisor) wantsGolden() bool { return s.start.Golden != "" && !s.forks() }

var errNoGolden = errors.New("there is no golden state of this hardware")

// goldenState reads the manifest of the state that fits this start.
func (s *supervisor) goldenState() (Restore, error) {
	var r Restore
	b, err := os.ReadFile(s.goldenFile(".json"))
	if err != nil || json.Unmarshal(b, &r) != nil {
		return r, errNoGolden
	}
	return r, nil
}

// fromGolden starts the machine from its golden state. With an error and
// nothing given to the guest, the caller boots instead.
func (s *supervisor) fromGolden(ctx context.Context) error {
	if !s.wantsGolden() {
		return errNoGolden
	}
	r, err := s.goldenState()
	if err != nil {
		return err
	}
	f, err := os.Open(s.goldenFile(StateExt))
	if err != nil {
		s.dropGolden() // a manifest without its state would keep a new one from being made
		return errNoGolden
	}
	defer f.Close()
	is, known := s.knownGolden(f)
	right := func() error { return nil }
	if !known {
		sum := digest(f) // while QEMU starts and reads the same file
		right = func() error { return same(r, <-sum) }
	}
	err = s.attempt(ctx, true, func(ctx context.Context) error {
		wctx, cancel := context.WithTimeout(ctx, goldenPatience)
		defer cancel()
		if err := s.load(wctx, func(c io.Writer) error {
			if _, err := io.Copy(c, f); err != nil {
				return err
			}
			return right()
		}); err != nil {
			return err
		}
		if err := s.mon.Do(wctx, "cont", nil, nil); err != nil {
			return err
		}
		if err := s.hello(wctx); err != nil {
			return err
		}
		return s.equip(ctx)
	})
	if err != nil && !s.given {
		s.Clear()
		s.dropGolden()
	}
	if err == nil { // used: it is not the next to go
		if now := time.Now(); known {
			_ = os.Chtimes(s.goldenFile(knownExt), now, now)
		} else {
			s.noteGolden(is)
		}
	}
	return err
}

// digest reads f beside whoever reads it, and gives its SHA-256 once; of what
// can't be read it is no digest at all. It ends when f is closed.
func digest(f *os.File) <-chan string {
	sum := make(chan string, 1)
	go func() {
		h := sha256.New()
		if _, err := io.Copy(h, io.NewSectionReader(f, 0, MaxGoldenBytes)); err != nil {
			sum <- "unknown: " + err.Error()
			return
		}
		sum <- hex.EncodeToString(h.Sum(nil))
	}()
	return sum
}

func (s *supervisor) dropGolden() {
	for _, ext := range []string{".json", knownExt, StateExt} {
		_ = os.Remove(s.goldenFile(ext))
	}
}

// keepGolden saves the state of a guest whose agent has just spoken. That it
// can't be kept is no failure of the start; that the guest does not go on is.
func (s *supervisor) keepGolden(ctx context.Context) error {
	if !s.wantsGolden() {
		return nil
	}
	lock, err := os.OpenFile(s.goldenFile(".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil
	}
	defer lock.Close()
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil // another machine of this hardware is at it
	}
	if _, err := s.goldenState(); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, goldenPatience)
	defer cancel()
	if err := s.freeze(ctx); err != nil {
		s.start.Golden = ""
		return errSilent // it hangs: begin anew, and without this
	}
	if s.saveGolden(ctx) != nil {
		s.dropGolden()
		_ = s.mon.Do(ctx, "migrate_cancel", nil, nil)
	}
	if s.thaw(ctx) != nil {
		s.dropGolden()
		s.start.Golden = ""
		return errSilent
	}
	trimGolden(s.start.Golden)
	return nil
}

// saveGolden writes the stopped machine's memory and last its manifest. The
// digest finds out later what a power cut left of it.
func (s *supervisor) saveGolden(ctx context.Context) error {
	part := s.goldenFile(".part")
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(part)
	defer f.Close()
	m := kept.NewMeasure(f, MaxGoldenBytes)
	if err := s.migrate(ctx, m); err != nil {
		return err
	}
	if err := os.Rename(part, s.goldenFile(StateExt)); err != nil {
		return err
	}
	if is, ok := knowing(f); ok {
		s.noteGolden(is)
	}
	b, err := json.Marshal(Restore{Kind: "memory", SHA256: m.SHA256(), ByteLength: m.Bytes})
	if err == nil {
		err = os.WriteFile(part, b, 0o600)
	}
	if err == nil {
		err = os.Rename(part, s.goldenFile(".json"))
	}
	if err != nil {
		return fmt.Errorf("the golden state's manifest: %w", err)
	}
	return nil
}

// trimGolden removes the states that were not used for the longest time. A
// machine that is loading one has it open.
func trimGolden(dir string) {
	names, _ := filepath.Glob(filepath.Join(dir, goldenPrefix+"*"+StateExt))
	used := map[string]time.Time{}
	for _, n := range names {
		for _, ext := range []string{StateExt, knownExt} {
			if st, err := os.Stat(strings.TrimSuffix(n, StateExt) + ext); err == nil && st.ModTime().After(used[n]) {
				used[n] = st.ModTime()
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(used[b].Compare(used[a]), cmp.Compare(a, b)) })
	for _, n := range names[min(len(names), MaxGolden):] {
		stem := strings.TrimSuffix(n, StateExt)
		for _, ext := range []string{".json", knownExt, StateExt, ".lock"} {
			_ = os.Remove(stem + ext)
		}
	}
}
