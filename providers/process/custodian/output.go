//go:build linux

package custodian

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"berth/providers"
	"berth/providers/process/seatdir"
)

// Bounds on the output that is kept of one seat, in bytes. The files hold
// between (Segments-1) and Segments times SegmentBytes of the newest output.
const (
	RingBytes    = 256 << 10
	SegmentBytes = 4 << 20
	Segments     = 4
)

const segmentSuffix = ".log"

// output keeps what the seat wrote: the newest in a ring for those who
// attach, more of it in files that outlive the custodian.
type output struct {
	mu     sync.Mutex
	more   sync.Cond // by await and wake alone
	want   int64     // the least offset that somebody waits for
	dir    string
	ring   []byte // the last bytes before total
	total  int64  // bytes ever written: the offset of the next one
	seg    *os.File
	segLen int64
	closed bool
	size   providers.Size // of the terminal, for those who look at it
	fed    int64          // offset of the next byte that the screen gets
	nudge  func()         // asks the seat's program to paint its screen again; may be nil
	screen tracker
	pacer  pacer
	moment time.Duration // that a view gathers for
	sought *matcher      // nil when there is nothing to look for any more
	found  func()        // called once, with mu held

	followers int
}

// watch has f called once the pattern is in the output.
func (o *output) watch(m *matcher, f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sought, o.found = m, f
}

func newOutput(d seatdir.Dir) (*output, error) {
	o := &output{dir: d.File(seatdir.DirOutput), want: math.MaxInt64, moment: gatherFor, size: providers.Size{Rows: defaultRows, Cols: defaultCols}}
	o.more.L = &o.mu
	o.pacer.init(&o.mu)
	if err := os.Mkdir(o.dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	segs, err := listSegments(o.dir)
	if err != nil {
		return nil, err
	}
	if len(segs) > 0 { // an earlier start of the same environment
		last := segs[len(segs)-1]
		o.total = last.from + last.length
	}
	o.fed = o.total
	go o.keepScreen()
	return o, nil
}

// Write never fails: a full disk costs kept output, not the seat. It waits a
// little for those who look (pacer).
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pacer.hold(o.total + int64(len(p)))
	o.ring = append(o.ring, p...)
	if over := len(o.ring) - RingBytes; over > RingBytes {
		o.ring = append(o.ring[:0], o.ring[over:]...)
	}
	o.keep(p)
	if o.sought != nil && o.sought.matches(p) {
		o.sought = nil
		o.found()
	}
	o.total += int64(len(p))
	if o.total >= o.want {
		o.wake()
	}
	return len(p), nil
}

// await waits, under the output's lock, until there is output up to the offset
// or something else happened. A seat that floods its terminal would spend its
// time on waking, if everybody were woken by every write.
func (o *output) await(offset int64) {
	o.want = min(o.want, offset)
	o.more.Wait()
}

// wake lets all who wait look again.
func (o *output) wake() {
	o.want = math.MaxInt64
	o.more.Broadcast()
}

func (o *output) keep(p []byte) {
	if o.seg != nil && o.segLen >= SegmentBytes {
		_ = o.seg.Close()
		o.seg = nil
	}
	if o.seg == nil {
		f, err := os.OpenFile(filepath.Join(o.dir, fmt.Sprintf("%020d%s", o.total, segmentSuffix)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return
		}
		o.seg, o.segLen = f, 0
		o.prune()
	}
	n, err := o.seg.Write(p)
	o.segLen += int64(n)
	if err != nil { // the next write begins a segment at its true offset
		_ = o.seg.Close()
		o.seg = nil
	}
}

func (o *output) prune() {
	segs, err := listSegments(o.dir)
	for i := 0; err == nil && i < len(segs)-Segments; i++ {
		_ = os.Remove(segs[i].path)
	}
}

// copyTo writes the ring from offset and then what comes, until the output
// ends, w fails or is gone, or is so slow that the ring has passed it.
func (o *output) copyTo(w *follower, from int64) error {
	var chunk []byte
	for {
		o.mu.Lock()
		for from >= o.total && !o.closed && !w.gone {
			o.await(from + 1)
		}
		start := o.total - int64(len(o.ring))
		if w.gone || from >= o.total && o.closed {
			o.mu.Unlock()
			return nil
		}
		if from < start {
			o.mu.Unlock()
			return fmt.Errorf("output from %d is no longer in memory", from)
		}
		chunk = append(chunk[:0], o.ring[from-start:]...)
		o.mu.Unlock()
		if _, err := w.Write(chunk); err != nil {
			return err
		}
		from += int64(len(chunk))
	}
}

// span is the first and the next offset that the ring can serve.
func (o *output) span() (from, next int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total - int64(len(o.ring)), o.total
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.wake()
	o.pacer.release()
	if o.seg != nil {
		_ = o.seg.Close()
		o.seg = nil
	}
}

type segment struct {
	path         string
	from, length int64
}

func listSegments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []segment
	for _, e := range entries {
		from, err := strconv.ParseInt(strings.TrimSuffix(e.Name(), segmentSuffix), 10, 64)
		if err != nil || !strings.HasSuffix(e.Name(), segmentSuffix) {
			continue
		}
		st, err := e.Info()
		if err != nil {
			continue // pruned at this moment
		}
		out = append(out, segment{filepath.Join(dir, e.Name()), from, st.Size()})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].from < out[j].from })
	return out, nil
}

// ReadOutput writes the kept output from the offset to w and returns the
// offset after it. What is older than the oldest kept byte is skipped.
func ReadOutput(d seatdir.Dir, from int64, w io.Writer) (int64, error) {
	segs, err := listSegments(d.File(seatdir.DirOutput))
	if err != nil {
		return from, err
	}
	for _, s := range segs {
		if from >= s.from+s.length {
			continue
		}
		from = max(from, s.from)
		n, err := copySegment(w, s, from)
		from += n
		if err != nil {
			return from, err
		}
	}
	return from, nil
}

func copySegment(w io.Writer, s segment, from int64) (int64, error) {
	f, err := os.Open(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(w, io.NewSectionReader(f, from-s.from, s.from+s.length-from))
}
