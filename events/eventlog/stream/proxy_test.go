package stream_test

import (
	"bytes"

	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"berth/internal/embedded"
)

// proxy stands between a client and a server that may be replaced, and loses
// answers when told to.
type proxy struct {
	t        *testing.T
	listener net.Listener

	mu     sync.Mutex
	target string
	conns  map[net.Conn]bool
	armed  int // publishes whose answer is still to be lost
	lost   int
}

func newProxy(t *testing.T, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: l, target: target, conns: map[net.Conn]bool{}}
	go p.accept()
	t.Cleanup(func() { l.Close(); p.cut() })
	return p
}

// connect is a client that comes back by itself.
func (p *proxy) connect() *nats.Conn {
	nc, err := nats.Connect("nats://"+p.listener.Addr().String(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.Timeout(30*time.Second))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(nc.Close)
	return nc
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(c)
	}
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	s, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer s.Close()
	p.mu.Lock()
	p.conns[c] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
	}()
	var swallow sync.Once
	done := make(chan struct{})
	deaf := make(chan struct{})
	go func() {
		defer close(done)
		defer s.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if bytes.Contains(buf[:n], []byte("HPUB berth.")) && p.lose() {
				swallow.Do(func() { close(deaf) })
			}
			if _, err := s.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := s.Read(buf)
		if err != nil {
			break
		}
		select {
		case <-deaf: // the answer was read, and goes nowhere
			c.Close()
		default:
			if _, err := c.Write(buf[:n]); err != nil {
				break
			}
			continue
		}
		break
	}
	c.Close()
	<-done
}

func (p *proxy) lose() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed == 0 {
		return false
	}
	p.armed--
	p.lost++
	return true
}

func (p *proxy) arm(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = n
}

// cut closes every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// turn sends new connections to another server.
func (p *proxy) turn(target string) {
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
	p.cut()
}

// listening starts a server on a free port.
func listening(t *testing.T, store string) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Options{StoreDir: store, Listen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}
