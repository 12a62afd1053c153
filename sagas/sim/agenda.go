package sim

import (
	"container/heap"
	"time"
)

type item struct {
	at time.Time
	n  int
	do func()
}

// agenda is a heap of what is to happen, by time and then by order.
type agenda []*item

func (s *sim) after(d time.Duration, do func()) { s.at(s.now.Add(d), do) }

func (s *sim) at(t time.Time, do func()) {
	s.n++
	heap.Push(&s.agenda, &item{t, s.n, do})
}

func (a *agenda) pop() *item { return heap.Pop(a).(*item) }

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if a[i].at.Equal(a[j].at) {
		return a[i].n < a[j].n
	}
	return a[i].at.Before(a[j].at)
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(*item)) }
func (a *agenda) Pop() any {
	old := *a
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	return it
}
