package wire

import "sync"

// Streams are the streams of the door that are open at one side. What comes for
// one waits there for whoever hears it. The zero value has none.
type Streams struct {
	mu   sync.Mutex
	open map[uint64]chan []byte
}

// Begin opens a stream; false if there are MaxDoors. heard has what comes, and is
// closed at its end.
func (s *Streams) Begin(id uint64) (heard <-chan []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= MaxDoors {
		return nil, false
	}
	if s.open == nil {
		s.open = map[uint64]chan []byte{}
	}
	in := make(chan []byte, MaxDoorChunks)
	s.open[id] = in
	return in, true
}

// Take gives a frame to its stream, and waits for nobody: a stream whose hearer
// leaves more than MaxDoorChunks ends. False if the stream is not open.
func (s *Streams) Take(f Frame) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.open[f.Stream]
	if in == nil {
		return false
	}
	full := false
	if len(f.Data) > 0 {
		select {
		case in <- f.Data:
		default:
			full = true
		}
	}
	if full || !f.More {
		s.end(f.Stream)
	}
	return true
}

// End ends a stream, once.
func (s *Streams) End(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(id)
}

// EndAll ends every stream.
func (s *Streams) EndAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.open {
		s.end(id)
	}
}

// end needs mu.
func (s *Streams) end(id uint64) {
	if in := s.open[id]; in != nil {
		delete(s.open, id)
		close(in)
	}
}
