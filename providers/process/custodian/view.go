//go:build linux

package custodian

import (
	"sync"
	"time"

	"berth/internal/screen"
	"berth/providers"
)

const (
	// feedAt is how many bytes of output wait before the screen is brought up
	// to date though nobody looks: less than the ring has, so that none is
	// missed, and an idle seat costs no emulator.
	feedAt = RingBytes / 2
	// maxData bounds the bytes of one part of output.
	maxData = 64 << 10
	// restPassed is how many times as long as it worked the emulator rests when
	// output has passed it: what it shows is passed again at once, and the
	// processor is better left to the seat and to those who look.
	restPassed = 9
)

// tracker is what the terminal shows. It stands beside the output and never
// in its way: the emulator is a hundred times slower than a seat may write.
type tracker struct {
	mu      sync.Mutex
	s       *screen.Screen // nil until it is needed
	partial bool           // output was missed that may still show
}

// keepScreen feeds what has gathered, at most half of the time, and a tenth
// while output is too fast for it.
func (o *output) keepScreen() {
	for {
		o.mu.Lock()
		for !o.closed && o.total-o.fed < feedAt {
			o.more.Wait()
		}
		closed := o.closed
		o.mu.Unlock()
		if closed {
			return
		}
		begun := time.Now()
		o.screen.mu.Lock()
		passed := o.catchUp()
		o.screen.mu.Unlock()
		rest := time.Since(begun)
		if passed {
			rest *= restPassed
		}
		time.Sleep(rest)
	}
}

// catchUp feeds the screen all that the ring has at this moment. It needs
// o.screen.mu and not o.mu. It says whether output had passed the screen.
func (o *output) catchUp() (missed bool) {
	t := &o.screen
	o.mu.Lock()
	size := o.size
	from := max(o.fed, o.total-int64(len(o.ring)))
	missed = from > o.fed
	data := append([]byte(nil), o.ring[int64(len(o.ring))-(o.total-from):]...)
	o.fed = o.total
	o.mu.Unlock()
	if t.s == nil {
		t.s = screen.New(int(size.Rows), int(size.Cols))
	}
	if missed {
		t.s.Skip()
		t.partial = true
	}
	_, _ = t.s.Write(data)
	return missed
}

// resize gives the terminal a size by set, brings the screen to it after what
// came before, and wakes those who look. Both are done under the screen's lock,
// as a nudge is: otherwise the terminal could be left with another size than
// the one that is told.
func (o *output) resize(s providers.Size, set func(providers.Size) error) error {
	t := &o.screen
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.s != nil {
		o.catchUp()
	}
	if err := set(s); err != nil {
		return err
	}
	if t.s != nil {
		t.s.Resize(int(s.Rows), int(s.Cols))
	}
	t.partial = false // every program paints its whole screen after a resize
	o.mu.Lock()
	o.size = s
	o.more.Broadcast()
	o.mu.Unlock()
	return nil
}

// repaint is the whole screen, and the offset at which output goes on.
func (o *output) repaint() (providers.Part, int64) {
	t := &o.screen
	t.mu.Lock()
	defer t.mu.Unlock()
	o.catchUp()
	o.mu.Lock()
	size, fed := o.size, o.fed
	o.mu.Unlock()
	// What scrolls is whole again after a screenful; a program that owns the
	// whole screen paints only what changes.
	p := providers.Part{Kind: providers.PartRepaint, Data: t.s.Repaint(), Size: size, Partial: t.partial && t.s.Full()}
	if p.Partial && o.nudge != nil {
		t.partial = false
		defer o.nudge()
	}
	return p, fed - int64(t.s.Pending())
}

// view writes a repaint, then what comes. A reader that is so slow that the
// ring has passed it gets another repaint, which says how much it missed.
func (o *output) view(w *follower) error {
	l := o.begin()
	defer o.leave(l)
	p, next := o.repaint()
	for {
		if err := providers.WritePart(w, p); err != nil {
			return err
		}
		o.reached(l, next, true)
		at, size := next, p.Size
		for {
			part, from, passed := o.after(w, at, size)
			if passed {
				p, next = o.repaint()
				p.Dropped = max(next-at, 0)
				break
			}
			if part.Kind == 0 {
				return nil // closed, and everything was given; or nobody reads
			}
			if err := providers.WritePart(w, part); err != nil {
				return err
			}
			if part.Kind == providers.PartSize {
				size = part.Size
			}
			at = from
			o.reached(l, at, false)
		}
	}
}

// after waits for output beyond an offset, or for another size. passed says
// that the ring no longer has the offset; a part of no kind that it is all over.
func (o *output) after(w *follower, at int64, size providers.Size) (p providers.Part, next int64, passed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at >= o.total && !o.closed && !w.gone && o.size == size {
		o.more.Wait()
	}
	start := o.total - int64(len(o.ring))
	switch {
	case w.gone:
		return providers.Part{}, at, false
	case o.size != size:
		return providers.Part{Kind: providers.PartSize, Size: o.size}, at, false
	case at >= o.total:
		return providers.Part{}, at, false
	case at < start:
		return providers.Part{}, at, true
	}
	data := append([]byte(nil), o.ring[at-start:min(at-start+maxData, int64(len(o.ring)))]...)
	return providers.Part{Kind: providers.PartData, Data: data}, at + int64(len(data)), false
}
