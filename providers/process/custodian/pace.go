//go:build linux

package custodian

import (
	"sync"
	"time"
)

const (
	// paceRate is the least that a seat may write while somebody looks, in
	// bytes a second: it is never held below that, however slow they are.
	paceRate = 2 << 20
	// paceMost is how long it waits at most at a time: more than a busy machine
	// takes to come to whoever reads.
	paceMost = 250 * time.Millisecond
)

// pacer holds a seat that writes faster than anybody can look to the pace of
// the quickest view, as any terminal does: otherwise even that one would see
// nothing but repaints. Slower views are passed, and nobody waits for them. All
// is under the output's lock.
type pacer struct {
	moved sync.Cond
	views map[*looking]struct{}
	most  time.Duration // that is waited at a time
	left  time.Duration // what may still be waited; it grows with what is written
	last  int64         // the offset of the newest hold
	ended bool
}

// looking is one view: the offset of its next byte, and whether it is waited for.
type looking struct {
	at      int64
	counted bool
	buf     []byte    // of the newest part
	sent    time.Time // when output was given last
	late    bool      // gathering took long enough
}

func (p *pacer) init(l sync.Locker) {
	p.moved.L, p.views, p.most, p.left = l, map[*looking]struct{}{}, paceMost, paceMost
}

// behind says that every view that is waited for would lose output if the
// seat had written up to the offset.
func (p *pacer) behind(to int64) bool {
	some := false
	for l := range p.views {
		if l.counted && to-l.at <= RingBytes {
			return false
		}
		some = some || l.counted
	}
	return some
}

// hold waits until the quickest view has room for output up to the offset, or
// the time for it is used up: those who look are then too slow, and are waited
// for again after their next repaint.
func (p *pacer) hold(to int64) {
	p.left = min(p.left+time.Duration(to-p.last)*time.Second/paceRate, p.most)
	p.last = to
	if p.ended || !p.behind(to) {
		return
	}
	begun, late := time.Now(), false
	t := time.AfterFunc(p.left, func() {
		p.moved.L.Lock()
		late = true
		p.moved.Broadcast()
		p.moved.L.Unlock()
	})
	defer t.Stop()
	for !late && !p.ended && p.behind(to) {
		p.moved.Wait()
	}
	if p.left -= time.Since(begun); !late {
		return
	}
	p.left = 0
	for l := range p.views {
		l.counted = l.counted && to-l.at <= RingBytes
	}
}

// release ends waiting for good.
func (p *pacer) release() {
	p.ended = true
	p.moved.Broadcast()
}

// begin takes a view in. It is waited for from its first repaint on.
func (o *output) begin() *looking {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := &looking{}
	o.pacer.views[l] = struct{}{}
	return l
}

// reached says that a view has all output before the offset; painted, that it
// just got a repaint.
func (o *output) reached(l *looking, at int64, painted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l.at, l.sent = at, time.Now()
	l.counted = l.counted || painted
	o.pacer.moved.Broadcast()
}

func (o *output) leave(l *looking) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.pacer.views, l)
	o.pacer.moved.Broadcast()
}
