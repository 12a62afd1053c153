//go:build linux

package guest

import (
	"net"
	"os"
	"path/filepath"

	"berth/providers"
	"berth/providers/qemu/wire"
)

// door is the socket at which programs in the guest reach the manager of their
// seat. What they say and hear passes the port as it is.
type door struct {
	out     *wire.Writer
	streams wire.Streams
}

// openDoor serves programs that come, for as long as the guest runs.
func openDoor(dir string, out *wire.Writer) (*door, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, providers.DoorSocket)
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o666); err != nil { // who asks is proved by signature
		return nil, err
	}
	d := &door{out: out}
	go func() {
		for id := uint64(1); ; id++ {
			c, err := l.Accept()
			if err != nil {
				say("the door: %s", err)
				return
			}
			d.enter(id, c)
		}
	}()
	return d, nil
}

// enter begins a stream for a program, or turns it away when there are too many.
func (d *door) enter(id uint64, c net.Conn) {
	in, ok := d.streams.Begin(id)
	if !ok {
		_ = c.Close()
		return
	}
	go d.tell(id, c)
	go hear(c, in)
}

// tell passes on what a program says. It begins with nothing said, since the
// manager speaks first, and its end ends the stream.
func (d *door) tell(id uint64, c net.Conn) {
	buf := make([]byte, wire.DoorChunk)
	n, err := 0, error(nil)
	for err == nil {
		if err = d.out.Send(wire.Frame{Do: wire.Door, Stream: id, Data: buf[:n], More: true}); err == nil {
			n, err = c.Read(buf)
		}
	}
	d.streams.End(id)
	_ = d.out.Send(wire.Frame{Do: wire.Door, Stream: id}) // one that can't be sent is the end of the machine
}

// hear gives a program what the manager says, until the stream ends.
func hear(c net.Conn, in <-chan []byte) {
	defer c.Close()
	for b := range in {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// deliver takes what the manager says to one stream, or the end of it; the end
// of stream 0 is that of all. It does not wait for the program.
func (d *door) deliver(f wire.Frame) {
	if f.Stream == 0 {
		d.streams.EndAll()
		return
	}
	d.streams.Take(f)
}
