package sim

import "time"

// item is one thing that is to happen. Its time is in nanoseconds since the
// beginning of the history; n is the order among those of one time.
type item struct {
	at int64
	n  int
	m  *manager // who does it, if he is there; nil for the world
	do func()
}

func (i *item) before(o *item) bool { return i.at < o.at || i.at == o.at && i.n < o.n }

// agenda is a heap of what is to happen, by time and then by order. It is
// written out, with items by value: it is pushed and popped for every step.
type agenda []item

func (s *sim) after(d time.Duration, do func()) { s.at(s.now.Add(d), do) }

func (s *sim) at(t time.Time, do func()) { s.put(t, nil, do) }

// after is what a manager does later, if it is alive then, or when it wakes up.
func (m *manager) after(d time.Duration, do func()) { m.s.put(m.s.now.Add(d), m, do) }

func (s *sim) put(t time.Time, m *manager, do func()) {
	s.n++
	s.agenda.push(item{int64(t.Sub(epochZero)), s.n, m, do})
}

func (a *agenda) push(it item) {
	h := append(*a, it)
	*a = h
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !it.before(&h[up]) {
			break
		}
		h[i], i = h[up], up
	}
	h[i] = it
}

// pop takes the first item. There is one.
func (a *agenda) pop() item {
	h := *a
	first, end := h[0], len(h)-1
	last := h[end]
	h[end] = item{} // what it did is garbage from here
	h = h[:end]
	*a = h
	if end == 0 {
		return first
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= end {
			break
		}
		if c+1 < end && h[c+1].before(&h[c]) {
			c++
		}
		if !h[c].before(&last) {
			break
		}
		h[i], i = h[c], c
	}
	h[i] = last
	return first
}
