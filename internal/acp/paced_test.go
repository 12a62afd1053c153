package acp

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
)

// What the library holds is bounded, however fast it reads, and an update counts
// wherever a read cuts it.
func TestUpdatesAreReadAsTheyAreTaken(t *testing.T) {
	said := bytes.Repeat([]byte(`{"method":"session/update"}`+"\n"), 2*maxAhead)
	for name, from := range map[string]io.Reader{
		"whole":  bytes.NewReader(said),
		"halves": iotest.HalfReader(bytes.NewReader(said)),
		"bytes":  iotest.OneByteReader(bytes.NewReader(said)),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPaced(from)
			close(p.ready)
			ahead, most, all := 0, 0, 0
			b := make([]byte, 4<<10)
			for {
				if p.given-p.taken.Load() > maxAhead {
					for ; ahead > 0; ahead-- {
						p.take()
					}
				}
				n, err := p.Read(b)
				all += n
				ahead = int(p.given - p.taken.Load())
				most = max(most, ahead)
				if err == io.EOF {
					break
				}
			}
			if all != len(said) || int(p.given) != 2*maxAhead {
				t.Errorf("%d of %d bytes, %d of %d updates", all, len(said), p.given, 2*maxAhead)
			}
			if most <= maxAhead || most > maxAhead+len(b)/len(update) {
				t.Errorf("%d updates were held at most, want a little more than %d", most, maxAhead)
			}
		})
	}
}

// An update that never comes through does not hold an agent up for ever.
func TestAnUpdateThatIsLostHoldsNothingUp(t *testing.T) {
	p := newPaced(bytes.NewReader(bytes.Repeat(update, maxAhead+1)))
	close(p.ready)
	all, err := io.ReadAll(p)
	if err != nil || len(all) != (maxAhead+1)*len(update) {
		t.Fatalf("%d bytes, %v", len(all), err)
	}
	if p.given != 0 {
		t.Errorf("%d updates are waited for", p.given)
	}
}
