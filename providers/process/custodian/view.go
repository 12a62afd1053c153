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
	// Output flows to a view while parts of at least flowing bytes follow one
	// another within gatherFor. What is less than maxData then waits as long.
	flowing   = 2 << 10
	gatherFor = 2 * time.Millisecond
	// calmAt is how many bytes may come within calmIn for output that has passed
	// the emulator to be followed again. Faster output is only fed when somebody
	// looks: the emulator does some 1 MiB a second, and what it would show is
	// passed at once.
	calmAt = 32 << 10
	calmIn = 100 * time.Millisecond
)

// tracker is what the terminal shows. It stands beside the output and never
// in its way: the emulator is a hundred times slower than a seat may write.
type tracker struct {
	mu      sync.Mutex
	s       *screen.Screen // nil until it is needed
	partial bool           // output was missed that may still show
}

// keepScreen feeds what has gathered, at most half of the time, and not while
// output is too fast for it.
func (o *output) keepScreen() {
	for o.gathered() {
		begun := time.Now()
		o.screen.mu.Lock()
		o.catchUp()
		o.screen.mu.Unlock()
		time.Sleep(time.Since(begun))
	}
}

// gathered waits until there is enough for the screen, and output either has
// not passed it or is calm again. It is false when the output is closed.
func (o *output) gathered() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed && o.total-o.fed < feedAt {
		o.await(o.fed + feedAt)
	}
	for before := int64(-calmAt); !o.closed && o.passed() && o.total-before >= calmAt; {
		before = o.total
		o.mu.Unlock()
		time.Sleep(calmIn)
		o.mu.Lock()
	}
	return !o.closed
}

// passed says that the ring has lost what the screen would get next.
func (o *output) passed() bool { return o.total-int64(len(o.ring)) > o.fed }

// catchUp feeds the screen all that the ring has at this moment; if output has
// passed the screen, the newest of it, which is more than one screenful. It
// needs o.screen.mu and not o.mu.
func (o *output) catchUp() {
	t := &o.screen
	o.mu.Lock()
	size, from, missed := o.size, o.fed, o.passed()
	if missed {
		from = o.total - min(feedAt, int64(len(o.ring)))
	}
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
	o.wake()
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
	l, parts := o.begin(), providers.PartWriter{W: w}
	defer o.leave(l)
	p, next := o.repaint()
	for {
		if err := parts.Write(p); err != nil {
			return err
		}
		o.reached(l, next, true)
		at, size := next, p.Size
		for {
			part, from, passed := o.after(w, l, at, size)
			if passed {
				p, next = o.repaint()
				p.Dropped = max(next-at, 0)
				break
			}
			if part.Kind == 0 {
				return nil // closed, and everything was given; or nobody reads
			}
			if err := parts.Write(part); err != nil {
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
// The part's data is valid until the next call for the same view.
func (o *output) after(w *follower, l *looking, at int64, size providers.Size) (p providers.Part, next int64, passed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at >= o.total && !o.closed && !w.gone && o.size == size {
		o.await(at + 1)
	}
	o.gather(w, l, at, size)
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
	l.buf = append(l.buf[:0], o.ring[at-start:min(at-start+maxData, int64(len(o.ring)))]...)
	return providers.Part{Kind: providers.PartData, Data: l.buf}, at + int64(len(l.buf)), false
}

// gather waits a moment for more than a little output, if output flows: each
// part costs everybody on its way to a viewer the same, however short it is.
// Who types sees the echo at once: it follows no flow.
func (o *output) gather(w *follower, l *looking, at int64, size providers.Size) {
	enough := func() bool { return o.total-at >= maxData || o.closed || w.gone || o.size != size }
	if now := time.Now(); len(l.buf) < flowing || now.Sub(l.sent) > o.moment || enough() {
		return
	}
	l.late = false
	t := time.AfterFunc(o.moment, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		l.late = true
		o.wake()
	})
	defer t.Stop()
	for !l.late && !enough() {
		o.await(at + maxData)
	}
}
