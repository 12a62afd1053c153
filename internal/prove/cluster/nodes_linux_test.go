package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"berth/internal/embedded"
)

const (
	size = 3
	// within bounds the wait for anything that must come.
	within = 90 * time.Second
	// envNode makes this test's program one server of the cluster.
	envNode = "BERTH_CLUSTER_NODE"
)

// node says what one server is.
type node struct {
	Name, Store   string
	Client, Route int
	Monitor       int // port that answers /healthz
	Routes        []int
}

func TestMain(m *testing.M) {
	if raw := os.Getenv(envNode); raw != "" {
		if err := serve(raw); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func serve(raw string) error {
	var n node
	if err := json.Unmarshal([]byte(raw), &n); err != nil {
		return err
	}
	urls := ""
	for _, p := range n.Routes {
		urls += ",nats://127.0.0.1:" + strconv.Itoa(p)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log, err := os.OpenFile(n.Store+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	s, err := embedded.Start(ctx, embedded.Options{
		Logger:   logger{log},
		StoreDir: n.Store, Name: n.Name, SyncAlways: true, Listen: true, Port: n.Client,
		Configure: func(o *server.Options) {
			o.Cluster = server.ClusterOpts{Name: "berth", Host: "127.0.0.1", Port: n.Route}
			o.Routes = server.RoutesFromStr(urls[1:])
			o.HTTPHost, o.HTTPPort = "127.0.0.1", n.Monitor
		},
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	<-ctx.Done()
	s.Stop()
	return nil
}

// logger keeps what a server says, to be told if the test fails.
type logger struct{ to *os.File }

func (l logger) say(level, f string, v ...any) {
	fmt.Fprintf(l.to, time.Now().Format("15:04:05.000 ")+level+f+"\n", v...)
}

func (l logger) Noticef(f string, v ...any) { l.say("", f, v...) }
func (l logger) Warnf(f string, v ...any)   { l.say("warning: ", f, v...) }
func (l logger) Errorf(f string, v ...any)  { l.say("error: ", f, v...) }
func (l logger) Fatalf(f string, v ...any)  { l.say("fatal: ", f, v...) }
func (l logger) Debugf(string, ...any)      {}
func (l logger) Tracef(string, ...any)      {}

// tell prints the end of what each server said.
func (s *servers) tell() {
	if !s.Failed() {
		return
	}
	for i, n := range s.nodes {
		raw, _ := os.ReadFile(n.Store + ".log")
		lines := strings.Split(string(raw), "\n")
		s.Logf("server %d said at last:\n%s", i, strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
}

// servers is the cluster.
type servers struct {
	*testing.T
	nodes [size]node
	procs [size]*exec.Cmd
}

func newServers(t *testing.T) *servers {
	t.Helper()
	s := &servers{T: t}
	dir, ports := t.TempDir(), freePorts(t, 3*size)
	for i := range s.nodes {
		s.nodes[i] = node{Name: fmt.Sprintf("n%d", i), Store: filepath.Join(dir, strconv.Itoa(i)), Client: ports[i], Route: ports[size+i], Monitor: ports[2*size+i], Routes: ports[size : 2*size]}
	}
	for i := range s.nodes {
		s.start(i)
	}
	t.Cleanup(func() {
		s.ask()
		for i := range s.procs {
			s.end(i, unix.SIGKILL)
		}
		s.tell()
	})
	return s
}

// ask prints what each server says of its own health, if the test failed.
func (s *servers) ask() {
	if !s.Failed() {
		return
	}
	for i := range s.nodes {
		if s.procs[i] != nil {
			s.Logf("server %d is healthy: %v", i, s.healthy(i))
		}
	}
}

// healthy is what a server says of its own health, nil if all is well: it knows
// of a replica that can't be read, which the leader only takes for slow.
func (s *servers) healthy(i int) error {
	c := http.Client{Timeout: 10 * time.Second}
	r, err := c.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", s.nodes[i].Monitor))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err == nil && r.StatusCode != http.StatusOK {
		err = errors.New(string(b))
	}
	return err
}

// freePorts are free now: a server of a cluster must be found again where it
// was, so each keeps its own.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// start runs a server and waits until it serves.
func (s *servers) start(i int) {
	s.Helper()
	raw, err := json.Marshal(s.nodes[i])
	if err != nil {
		s.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), envNode+"="+string(raw))
	c.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	out, err := c.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := c.Start(); err != nil {
		s.Fatal(err)
	}
	s.procs[i] = c
	said := make(chan string, 1)
	go func() {
		sc := bufio.NewScanner(out)
		sc.Scan()
		said <- sc.Text()
	}()
	select {
	case line := <-said:
		if line != "ready" {
			s.Fatalf("server %d says %q", i, line)
		}
	case <-time.After(within):
		s.Fatalf("server %d did not start", i)
	}
}

// end sends a signal that ends a server, and waits for the end.
func (s *servers) end(i int, sig unix.Signal) {
	c := s.procs[i]
	if c == nil {
		return
	}
	s.procs[i] = nil
	_ = c.Process.Signal(sig)
	kill := time.AfterFunc(within, func() { _ = c.Process.Kill() })
	_ = c.Wait()
	kill.Stop()
}

func (s *servers) signal(i int, sig unix.Signal) {
	if err := s.procs[i].Process.Signal(sig); err != nil {
		s.Fatal(err)
	}
}

// connect is a client that finds any server, as a manager does.
func (s *servers) connect(first int) *nats.Conn {
	s.Helper()
	urls := ""
	for i := range s.nodes {
		urls += ",nats://127.0.0.1:" + strconv.Itoa(s.nodes[(first+i)%size].Client)
	}
	nc, err := nats.Connect(urls[1:], s.options()...)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(nc.Close)
	return nc
}

// locked runs f on one thread: the death signal of what it starts belongs to
// that thread.
func locked(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f()
}
