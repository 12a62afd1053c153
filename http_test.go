package berth

import (
	"errors"
	"net"
	"testing"
)

// What connects to the HTTP port can't take all file descriptors: at the limit
// the next one waits until another is closed, and a stop waits for nobody.
func TestHTTPConnectionsAreBounded(t *testing.T) {
	bound, err := listenHTTP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer bound.Close()
	l := bound.(*boundedListener)
	if cap(l.slots) != maxHTTPConnections {
		t.Errorf("%d connections are open at most, want %d", cap(l.slots), maxHTTPConnections)
	}
	accept := func() net.Conn {
		t.Helper()
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	first := accept()
	for range maxHTTPConnections - 1 {
		accept()
	}
	if len(l.slots) != maxHTTPConnections {
		t.Fatalf("%d slots are taken, want %d", len(l.slots), maxHTTPConnections)
	}
	first.Close()
	first.Close() // gives back one slot, not two
	if len(l.slots) != maxHTTPConnections-1 {
		t.Fatalf("%d slots are taken after one was closed", len(l.slots))
	}
	accept()
	stopped := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		stopped <- err
	}()
	l.Close()
	if err := <-stopped; !errors.Is(err, net.ErrClosed) {
		t.Errorf("an Accept that waited ended with %v", err)
	}
}
