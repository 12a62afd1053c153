//go:build linux

package seat

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"berth/events"
	"berth/providers/process/identity"
)

// watches waits for the end of every holder at once, with one goroutine
// and one descriptor each, and reaps those that are children of this process.
type watches struct {
	epoll, wake int
	done        chan struct{}

	mu     sync.Mutex
	seats  map[int32]watched
	byID   map[events.EnvironmentID]int32
	subs   map[*subscriber]struct{}
	closed bool
}

type watched struct {
	id    events.EnvironmentID // empty: only to be reaped
	pid   int
	close func()
}

type subscriber struct {
	mu      sync.Mutex
	pending map[events.EnvironmentID]struct{}
	ready   chan struct{}
}

func newWatches() (*watches, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)})
	}
	if err != nil {
		_ = unix.Close(ep)
		return nil, err
	}
	w := &watches{
		epoll: ep, wake: wake, done: make(chan struct{}),
		seats: map[int32]watched{}, byID: map[events.EnvironmentID]int32{}, subs: map[*subscriber]struct{}{},
	}
	go w.loop()
	return w, nil
}

// add watches the holder of an environment; ErrGone: it has ended already.
func (w *watches) add(id events.EnvironmentID, c events.Custody) error {
	w.forget(id)
	h, err := identity.Open(c)
	if errors.Is(err, identity.ErrGone) {
		// It ended before it could be watched: nobody else will tell of it.
		w.mu.Lock()
		w.tell(id)
		w.mu.Unlock()
	}
	if err != nil {
		return err
	}
	return w.put(h.FD(), watched{id: id, pid: c.PID, close: h.Close})
}

// ensure is add for what may be watched already.
func (w *watches) ensure(id events.EnvironmentID, c events.Custody) error {
	w.mu.Lock()
	s, ok := w.seats[w.byID[id]]
	w.mu.Unlock()
	if ok && s.id == id && s.pid == c.PID {
		return nil
	}
	return w.add(id, c)
}

// child watches a process that this one has started, only to reap it.
func (w *watches) child(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	_ = w.put(fd, watched{pid: pid, close: func() { _ = unix.Close(fd) }})
}

func (w *watches) put(fd int, s watched) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		s.close()
		return nil
	}
	if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		s.close()
		return err
	}
	w.seats[int32(fd)] = s
	if s.id != "" {
		w.byID[s.id] = int32(fd)
	}
	return nil
}

// forget stops watching an environment.
func (w *watches) forget(id events.EnvironmentID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if fd, ok := w.byID[id]; ok {
		w.drop(fd)
	}
}

// drop needs w.mu. Closing the descriptor takes it out of the epoll set.
func (w *watches) drop(fd int32) {
	s := w.seats[fd]
	delete(w.seats, fd)
	if w.byID[s.id] == fd {
		delete(w.byID, s.id)
	}
	s.close()
}

func (w *watches) loop() {
	defer close(w.done)
	evs := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(w.epoll, evs, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		w.mu.Lock()
		if err != nil || w.closed {
			w.mu.Unlock()
			return
		}
		for _, e := range evs[:n] {
			s, ok := w.seats[e.Fd]
			if !ok {
				continue
			}
			w.drop(e.Fd)
			if s.id == "" {
				// Not a child, or taken already: nothing to do then.
				_, _ = unix.Wait4(s.pid, nil, unix.WNOHANG, nil)
				continue
			}
			w.tell(s.id)
		}
		w.mu.Unlock()
	}
}

func (w *watches) close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	for fd := range w.seats {
		w.drop(fd)
	}
	w.mu.Unlock()
	_, err := unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	if err != nil {
		return err
	}
	<-w.done
	return errors.Join(unix.Close(w.wake), unix.Close(w.epoll))
}

// tell passes an end on to every subscriber. The caller holds mu.
func (w *watches) tell(id events.EnvironmentID) {
	for sub := range w.subs {
		sub.tell(id)
	}
}

func (s *subscriber) tell(id events.EnvironmentID) {
	s.mu.Lock()
	s.pending[id] = struct{}{}
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Watchers is how many calls of Watch are listening.
func (d *Base) Watchers() int {
	d.watches.mu.Lock()
	defer d.watches.mu.Unlock()
	return len(d.watches.subs)
}

// Watch calls fn when a holder of a started or adopted environment has
// ended: its seat exited, expired or was lost. Inspect says which.
func (d *Base) Watch(ctx context.Context, fn func(events.EnvironmentID)) error {
	s := &subscriber{pending: map[events.EnvironmentID]struct{}{}, ready: make(chan struct{}, 1)}
	d.watches.mu.Lock()
	d.watches.subs[s] = struct{}{}
	d.watches.mu.Unlock()
	defer func() {
		d.watches.mu.Lock()
		delete(d.watches.subs, s)
		d.watches.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.watches.done:
			return nil
		case <-s.ready:
		}
		s.mu.Lock()
		ids := s.pending
		s.pending = map[events.EnvironmentID]struct{}{}
		s.mu.Unlock()
		for id := range ids {
			fn(id)
		}
	}
}
