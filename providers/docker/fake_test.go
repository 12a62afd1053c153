package docker

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fault is what the scripted engine does with the next request that matches.
type trouble string

const (
	cutBefore  trouble = "cut before it is carried out"
	cutAfter   trouble = "cut after it was carried out"
	failAfter  trouble = "500 after it was carried out"
	failBefore trouble = "500 before it was carried out"
	garbage    trouble = "garbage after it was carried out"
	answer404  trouble = "404"
	answer409  trouble = "409"
	answer503  trouble = "503"
	redirect   trouble = "redirect"
	shortTar   trouble = "half an archive"
	hugeAnswer trouble = "an answer without end"
	shortID    trouble = "a create answered with a short id"
	failStart  trouble = "500 to a start that was tried and failed"
)

type fakeContainer struct {
	ID, Name string
	Req      createRequest
	Status   string
	Error    string
	Started  time.Time
	Finished time.Time
	Files    map[string][]byte
}

// fakeEngine is a Docker Engine on a unix socket, as far as the driver needs
// one, that misbehaves as told.
type fakeEngine struct {
	t      *testing.T
	socket string

	mu      sync.Mutex
	id      string
	byID    map[string]*fakeContainer
	clock   time.Time
	faults  map[string][]trouble // "METHOD suffix-of-path" to what happens, once each
	asked   []string
	creates int
}

const imageDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func newFake(t *testing.T) *fakeEngine {
	t.Helper()
	dir, err := os.MkdirTemp("", "bd") // short: a socket's path has a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f := &fakeEngine{t: t, socket: filepath.Join(dir, "s"), id: "ENGINE-1", byID: map[string]*fakeContainer{}, faults: map[string][]trouble{},
		clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(f)
	s.Listener.Close()
	s.Listener = l
	s.Config.ErrorLog = nil
	s.Start()
	t.Cleanup(s.Close)
	return f
}

// will makes the next request to METHOD path-suffix go wrong.
func (f *fakeEngine) will(request string, tr ...trouble) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[request] = append(f.faults[request], tr...)
}

func (f *fakeEngine) count(request string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.asked {
		if a == request {
			n++
		}
	}
	return n
}

func (f *fakeEngine) set(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

func (f *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/v1.41"); ok {
		path = rest
	}
	last := r.Method + " " + path[strings.LastIndex(path, "/")+1:]
	if r.Method == http.MethodDelete {
		last = "DELETE"
	}
	f.asked = append(f.asked, last)
	var tr trouble
	if q := f.faults[last]; len(q) > 0 {
		tr, f.faults[last] = q[0], q[1:]
	}
	w.Header().Set("Api-Version", "1.41")
	rec := httptest.NewRecorder()
	switch tr {
	case cutBefore:
		panic(http.ErrAbortHandler)
	case failBefore:
		problem(rec, 500, "something broke")
	case failStart:
		f.find(strings.Split(path, "/")[2]).Error = "exec: no such file"
		problem(rec, 500, "exec: no such file")
	case answer404:
		problem(rec, 404, "no such thing")
	case answer409:
		problem(rec, 409, "conflict")
	case answer503:
		problem(rec, 503, "not now")
	case redirect:
		rec.Header().Set("Location", "http://elsewhere.invalid/")
		rec.WriteHeader(http.StatusTemporaryRedirect)
	default:
		f.handle(rec, r, path)
	}
	switch tr {
	case cutAfter:
		panic(http.ErrAbortHandler)
	case failAfter:
		rec = httptest.NewRecorder()
		problem(rec, 500, "something broke afterwards, password: hunter2")
	case garbage:
		rec.Body.Reset()
		rec.Body.WriteString("<html>")
	case hugeAnswer:
		rec.Body.Reset()
		rec.Body.WriteString(`{"Id":"` + strings.Repeat("a", MaxAnswer) + `"}`)
	case shortID:
		rec.Body.Reset()
		rec.Body.WriteString(`{"Id":"abc"}`)
	case shortTar:
		rec.Body.Truncate(rec.Body.Len() / 2)
	}
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

func problem(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}

func (f *fakeEngine) handle(w http.ResponseWriter, r *http.Request, path string) {
	reply := func(code int, v any) { w.WriteHeader(code); _ = json.NewEncoder(w).Encode(v) }
	switch {
	case path == "/info":
		reply(200, map[string]any{"ID": f.id, "Name": "fake", "ServerVersion": "20.10", "OSType": "linux", "Architecture": "x86_64",
			"NCPU": 2, "MemTotal": 4 << 30, "MemoryLimit": true, "CpuCfsQuota": true, "PidsLimit": true})
	case strings.HasPrefix(path, "/images/"):
		if !strings.Contains(path, imageDigest) {
			problem(w, 404, "no such image")
			return
		}
		reply(200, map[string]any{"Id": imageDigest, "Architecture": "amd64", "Os": "linux"})
	case path == "/containers/create":
		f.create(w, r, reply)
	case path == "/containers/json":
		var out []map[string]any
		for _, c := range f.byID {
			out = append(out, map[string]any{"Id": c.ID, "State": c.Status, "Labels": c.Req.Labels})
		}
		reply(200, out)
	default:
		parts := strings.Split(strings.TrimPrefix(path, "/containers/"), "/")
		c := f.find(parts[0])
		if c == nil {
			problem(w, 404, "no such container")
			return
		}
		verb := ""
		if len(parts) > 1 {
			verb = parts[1]
		}
		f.act(w, r, c, verb, reply)
	}
}

func (f *fakeEngine) find(key string) *fakeContainer {
	key, _ = url.PathUnescape(key)
	if c := f.byID[key]; c != nil {
		return c
	}
	for _, c := range f.byID {
		if c.Name == key {
			return c
		}
	}
	return nil
}

func (f *fakeEngine) create(w http.ResponseWriter, r *http.Request, reply func(int, any)) {
	name := r.URL.Query().Get("name")
	if f.find(name) != nil {
		problem(w, 409, "the container name is already in use")
		return
	}
	c := &fakeContainer{Name: name, Status: "created", Files: map[string][]byte{}}
	if err := json.NewDecoder(r.Body).Decode(&c.Req); err != nil {
		problem(w, 400, "bad json")
		return
	}
	f.creates++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", name, f.creates))
	c.ID = hex.EncodeToString(sum[:])
	f.byID[c.ID] = c
	reply(201, map[string]string{"Id": c.ID})
}

func (f *fakeEngine) act(w http.ResponseWriter, r *http.Request, c *fakeContainer, verb string, reply func(int, any)) {
	f.clock = f.clock.Add(time.Second)
	move := func(from, to string) bool {
		if c.Status != from {
			problem(w, 409, "container is "+c.Status)
			return false
		}
		c.Status = to
		w.WriteHeader(204)
		return true
	}
	switch r.Method + " " + verb {
	case "GET json":
		var out container
		out.ID, out.Name, out.Config.Labels = c.ID, "/"+c.Name, c.Req.Labels
		out.State.Error = c.Error
		out.State.Status, out.State.StartedAt, out.State.FinishedAt, out.State.ExitCode = c.Status, c.Started, c.Finished, 137
		out.HostConfig.NetworkMode = c.Req.HostConfig.NetworkMode
		reply(200, out)
	case "POST start":
		if c.Status == "running" {
			w.WriteHeader(304)
			return
		}
		c.Status, c.Started, c.Error = "running", f.clock, ""
		w.WriteHeader(204)
	case "POST stop":
		c.Status, c.Finished = "exited", f.clock
		w.WriteHeader(204)
	case "POST pause":
		move("running", "paused")
	case "POST unpause":
		move("paused", "running")
	case "PUT archive":
		for tr := tar.NewReader(r.Body); ; {
			h, err := tr.Next()
			if err != nil {
				break
			}
			data, _ := io.ReadAll(tr)
			c.Files["/"+h.Name] = data
		}
		w.WriteHeader(200)
	case "GET archive":
		f.archive(w, c, r.URL.Query().Get("path"))
	case "GET logs":
		_, _ = io.WriteString(w, "hello from the seat\n")
	case "DELETE ":
		delete(f.byID, c.ID)
		w.WriteHeader(204)
	default:
		problem(w, 400, "no such verb "+verb)
	}
}

func (f *fakeEngine) archive(w http.ResponseWriter, c *fakeContainer, path string) {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	found := false
	for name, data := range c.Files {
		if name == path || strings.TrimSuffix(name, "/") == path {
			found = true
			_ = tw.WriteHeader(&tar.Header{Name: filepath.Base(name), Typeflag: tar.TypeReg, Size: int64(len(data)), Mode: 0o644})
			_, _ = tw.Write(data)
		}
	}
	if !found {
		problem(w, 404, "could not find the file")
		return
	}
	_ = tw.WriteHeader(&tar.Header{Name: "content", Typeflag: tar.TypeReg, Size: 4096, Mode: 0o644})
	_, _ = tw.Write(bytes.Repeat([]byte("x"), 4096))
	_ = tw.Close()
	_, _ = w.Write(buf.Bytes())
}
