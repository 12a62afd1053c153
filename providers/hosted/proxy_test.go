package hosted_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/drill"
	"berth/providers/hosted"
	"berth/providers/hosted/server"
)

// line is the way between client and server, which can be cut at any byte.
type line struct {
	net.Listener
	to       atomic.Pointer[string]
	up, down atomic.Int64 // bytes that pass on a connection; negative: all
	wg       sync.WaitGroup
}

func newLine(t *testing.T) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &line{Listener: l}
	p.whole()
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.pass(c) })
		}
	})
	t.Cleanup(func() { l.Close(); p.wg.Wait() })
	return p
}

func (p *line) whole() { p.up.Store(-1); p.down.Store(-1) }

func (p *line) pass(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", *p.to.Load())
	if err != nil {
		return
	}
	defer s.Close()
	half := func(to, from net.Conn, n int64) {
		if n < 0 {
			_, _ = io.Copy(to, from)
		} else {
			_, _ = io.CopyN(to, from, n)
		}
		c.Close()
		s.Close()
	}
	var wg sync.WaitGroup
	wg.Go(func() { half(s, c, p.up.Load()) })
	half(c, s, p.down.Load())
	wg.Wait()
}

// provisioned makes an environment that can be started.
func provisioned(t *testing.T, d providers.Driver) (events.EnvironmentID, string) {
	t.Helper()
	id := newEnvironment()
	out := d.Do(within(t), operation(id, events.VerbReserve, ""))
	if out.Kind != providers.Done {
		t.Fatalf("reserve: %+v", out)
	}
	ref := out.Facts.Ref
	if out = d.Do(within(t), operation(id, events.VerbProvision, ref)); out.Kind != providers.Done {
		t.Fatalf("provision: %+v", out)
	}
	return id, ref
}

// agree settles an operation and compares what is proved with what is true.
func agree(t *testing.T, what string, d providers.Driver, truth *drill.Driver, op providers.Operation, heard providers.Outcome) {
	t.Helper()
	f := settle(t, d, op)
	facts, err := truth.Inspect(within(t), op.Environment, op.Ref)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	running := facts.State == events.StateRunning
	if running != (f.Verdict == providers.Landed) || heard.Kind == providers.Done && !running || heard.Kind == providers.Refused && running {
		t.Errorf("%s: heard %s, proved %s, but running is %v", what, heard.Kind, f.Verdict, running)
	}
	again := d.Do(within(t), op)
	if (again.Kind == providers.Done) != running || again.Kind == providers.Unknown {
		t.Errorf("%s: the same id again is %s %v", what, again.Kind, again.Fault)
	}
}

// TestCutAnywhereConverges (issue of the line, R32, R86, scenario 1): whichever
// byte is the last, the same operation id ends in proof.
func TestCutAnywhereConverges(t *testing.T) {
	t.Parallel()
	truth := openDrill(t, faithful)
	defer truth.Close()
	e := serve(t, server.Config{Driver: truth, Log: memory.New()})
	defer e.stop()
	p := newLine(t)
	p.to.Store(&e.addr)
	for _, cut := range []int64{0, 1, 400, 1200, 1700, 2000, 2200, 2400, 2600, 2800, 3000, 3400, 4000} {
		for _, way := range []*atomic.Int64{&p.up, &p.down} {
			d := client(t, config(p.Addr().String()))
			id, ref := provisioned(t, d)
			d.Close() // the cut is for a connection of its own
			op := operation(id, events.VerbStart, ref)
			way.Store(cut)
			heard := d.Do(within(t), op)
			p.whole()
			d.Close()
			agree(t, "cut", d, truth, op, heard)
			d.Close()
		}
	}
}

// meddle is a handler between client and server that does to each request
// what the test says.
type meddle struct {
	inner http.Handler
	how   func(inner http.Handler, w http.ResponseWriter, r *http.Request)
	armed atomic.Bool
}

func (m *meddle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.armed.Load() {
		m.how(m.inner, w, r)
		return
	}
	m.inner.ServeHTTP(w, r)
}

// repeatable reads a request so that it can be handled more than once.
func repeatable(r *http.Request) func() *http.Request {
	b, _ := io.ReadAll(r.Body)
	return func() *http.Request {
		c := r.Clone(r.Context())
		c.Body = io.NopCloser(bytes.NewReader(b))
		return c
	}
}

var meddling = map[string]struct {
	how  func(inner http.Handler, w http.ResponseWriter, r *http.Request)
	want providers.Kind
}{
	"answer dropped": {func(inner http.Handler, _ http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}, providers.Unknown},
	"answer cut": {func(inner http.Handler, w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		inner.ServeHTTP(rec, r)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
	}, providers.Unknown},
	"request dropped": {func(http.Handler, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, providers.Unknown},
	"duplicate": {func(inner http.Handler, w http.ResponseWriter, r *http.Request) {
		again := repeatable(r)
		inner.ServeHTTP(httptest.NewRecorder(), again())
		inner.ServeHTTP(w, again())
	}, providers.Done},
	"duplicates at once": {func(inner http.Handler, w http.ResponseWriter, r *http.Request) {
		again := repeatable(r)
		var wg sync.WaitGroup
		for range 3 {
			req := again()
			wg.Go(func() { inner.ServeHTTP(httptest.NewRecorder(), req) })
		}
		inner.ServeHTTP(w, again())
		wg.Wait()
	}, providers.Done},
	"429": {func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
	}, providers.Unknown},
	"502 after accept": {func(inner http.Handler, w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusBadGateway)
	}, providers.Unknown},
	"redirect": {func(_ http.Handler, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}, providers.Unknown},
}

// behind serves a handler with the certificate of the provider.
func behind(t *testing.T, h http.Handler) string {
	t.Helper()
	c, err := server.TLS{CertFile: certs + "/provider.pem", KeyFile: certs + "/provider-key.pem"}.Config()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.TLS = c
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// TestMeddlingConverges (R86, E8, scenarios 1 3 5): lost, doubled and false
// answers never become a success by guessing.
func TestMeddlingConverges(t *testing.T) {
	t.Parallel()
	for name, c := range meddling {
		t.Run(name, func(t *testing.T) {
			truth := openDrill(t, faithful)
			defer truth.Close()
			s, err := server.New(server.Config{Driver: truth, Log: memory.New()})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			m := &meddle{inner: s, how: c.how}
			d := client(t, config(behind(t, m)))
			defer d.Close()
			id, ref := provisioned(t, d)
			op := operation(id, events.VerbStart, ref)
			m.armed.Store(true)
			heard := d.Do(within(t), op)
			m.armed.Store(false)
			if heard.Kind != c.want {
				t.Errorf("heard %s %v, want %s", heard.Kind, heard.Fault, c.want)
			}
			agree(t, name, d, truth, op, heard)
			starts := 0
			for _, call := range truth.Status().Calls {
				if call.Verb == drill.Verb(events.VerbStart) {
					starts++
				}
			}
			if starts > 1 {
				t.Errorf("the driver was called %d times", starts)
			}
		})
	}
}

// TestLateRequestMeetsTheFence (H14, scenario 6): a request that arrives after
// its id was excluded is refused, and the driver never hears of it.
func TestLateRequestMeetsTheFence(t *testing.T) {
	t.Parallel()
	truth := openDrill(t, faithful)
	defer truth.Close()
	s, err := server.New(server.Config{Driver: truth, Log: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	held, free, delivered := make(chan struct{}), make(chan struct{}), make(chan struct{})
	m := &meddle{inner: s, how: func(inner http.Handler, _ http.ResponseWriter, r *http.Request) {
		again := repeatable(r)
		close(held)
		<-free
		inner.ServeHTTP(httptest.NewRecorder(), again())
		close(delivered)
	}}
	d := client(t, config(behind(t, m)))
	defer d.Close()
	id, ref := provisioned(t, d)
	op := operation(id, events.VerbStart, ref)
	heard := make(chan providers.Outcome, 1)
	m.armed.Store(true)
	go func() { heard <- d.Do(within(t), op) }()
	<-held
	m.armed.Store(false)
	if f := d.Exclude(within(t), op); f.Verdict != providers.Excluded {
		t.Fatalf("exclude: %+v", f)
	}
	close(free)
	<-delivered
	out := <-heard
	agree(t, "late", d, truth, op, out)
	if f, err := truth.Inspect(within(t), id, ref); err != nil || f.State == events.StateRunning {
		t.Errorf("an excluded start runs: %+v %v", f, err)
	}
}

// TestDownloadResumes (R36, R37, scenario 63): a file whose stream is cut again
// and again is read whole, by ranges, and matches length and digest.
func TestDownloadResumes(t *testing.T) {
	t.Parallel()
	truth := openDrill(t, faithful)
	defer truth.Close()
	s, err := server.New(server.Config{Driver: truth, Log: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const piece = 7000
	m := &meddle{inner: s, how: func(inner http.Handler, w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(&short{ResponseWriter: w, left: piece}, r)
	}}
	d := client(t, config(behind(t, m)))
	defer d.Close()
	id, ref := provisioned(t, d)
	file := exported(t, d, id, ref)
	m.armed.Store(true)
	var got []byte
	cuts := 0
	for int64(len(got)) < file.ByteLength {
		r, err := d.ReadFile(within(t), id, ref, file.ID, int64(len(got)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			cuts++
		}
		if got = append(got, b...); len(b) == 0 {
			t.Fatalf("no progress at %d of %d: %v", len(got), file.ByteLength, err)
		}
	}
	sum := sha256.Sum256(got)
	if int64(len(got)) != file.ByteLength || hex.EncodeToString(sum[:]) != file.SHA256 {
		t.Errorf("%d of %d bytes, %x, want %s", len(got), file.ByteLength, sum, file.SHA256)
	}
	if file.ByteLength > piece && cuts == 0 {
		t.Error("nothing was cut")
	}
	// Another environment's file confers nothing (R38, R87).
	other, otherRef := provisioned(t, d)
	if r, err := d.ReadFile(within(t), other, otherRef, file.ID, 0); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("the file of another environment: %v %v", r, err)
	}
}

func exported(t *testing.T, d *hosted.Driver, id events.EnvironmentID, ref string) events.File {
	t.Helper()
	if out := d.Do(within(t), operation(id, events.VerbStart, ref)); out.Kind != providers.Done {
		t.Fatalf("start: %+v", out)
	}
	op := operation(id, events.VerbCheckpoint, ref)
	op.Arguments.CheckpointID = string(newEnvironment())
	if out := d.Do(within(t), op); out.Kind != providers.Done {
		t.Fatalf("checkpoint: %+v", out)
	}
	export := operation(id, events.VerbExport, ref)
	export.Arguments = events.Arguments{CheckpointID: op.Arguments.CheckpointID, MaxBytes: 1 << 30}
	out := d.Do(within(t), export)
	if out.Kind != providers.Done {
		t.Fatalf("export: %+v", out)
	}
	return *out.Facts.File
}

// short cuts a body after some bytes, as a broken line does.
type short struct {
	http.ResponseWriter
	left int
}

func (s *short) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *short) Write(p []byte) (int, error) {
	if len(p) > s.left {
		_, _ = s.ResponseWriter.Write(p[:s.left])
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	s.left -= len(p)
	return s.ResponseWriter.Write(p)
}

// TestSlowAnswerIsUnknown (R85, scenario 81): a call ends at its deadline, and
// what it did is proved afterwards.
func TestSlowAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	e, d := overDrill(t, `{"rules":[{"verb":"start","fault":"never-answer"}]}`)
	id, ref := provisioned(t, d)
	op := operation(id, events.VerbStart, ref)
	ctx, cancel := contextFor(300 * time.Millisecond)
	defer cancel()
	if out := d.Do(ctx, op); out.Kind != providers.Unknown || out.Fault.Code != fault.DeadlineExceeded {
		t.Errorf("heard %s %v", out.Kind, out.Fault)
	}
	agree(t, "slow", d, e.cfg.Driver.(*drill.Driver), op, providers.UnknownWith(fault.New(fault.DeadlineExceeded, "x")))
}

// old12 serves with TLS 1.2 at most.
func old12(t *testing.T, h http.Handler) string {
	t.Helper()
	c, err := server.TLS{CertFile: certs + "/provider.pem", KeyFile: certs + "/provider-key.pem"}.Config()
	if err != nil {
		t.Fatal(err)
	}
	c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	s := httptest.NewUnstartedServer(h)
	s.TLS = c
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}
