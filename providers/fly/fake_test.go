package fly

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// trouble is what the scripted API does with the next request that matches.
type trouble string

const (
	cutBefore   trouble = "cut before it is carried out"
	cutAfter    trouble = "cut after it was carried out"
	failAfter   trouble = "500 after it was carried out"
	failBefore  trouble = "502 before it was carried out"
	garbage     trouble = "garbage after it was carried out"
	answer404   trouble = "404"
	answer408   trouble = "408"
	answer409   trouble = "409"
	answer422   trouble = "422"
	answer429   trouble = "429"
	noCapacity  trouble = "insufficient_capacity"
	redirect    trouble = "redirect"
	emptyList   trouble = "a list that is wrongly empty"
	otherName   trouble = "a create answered with another machine"
	damaged     trouble = "a damaged piece"
	wrongSum    trouble = "another digest"
	staleLease  trouble = "a lease of another version"
	noNonce     trouble = "a lease without a nonce"
	unreachable trouble = "a host that is unreachable"
)

const testToken = "FlyV1-test-canary-token"

type fakeMachine struct {
	machine
	lease string
	files map[string][]byte
	gone  string // the operation that opened the gate
}

// fakeAPI is the Machines API as its public documentation describes it, as far
// as the adapter uses it.
type fakeAPI struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	machines map[string]*fakeMachine
	made     int
	leases   int
	clock    time.Time
	faults   map[string][]trouble
	asked    []string
	bodies   []string
	content  []byte
	appGone  bool
}

func newFake(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{t: t, machines: map[string]*fakeMachine{}, faults: map[string][]trouble{}, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		content: bytes.Repeat([]byte("berth"), chunkBytes/4)} // more than one piece
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.url = s.URL + "/v1"
	return f
}

func (f *fakeAPI) will(request string, tr ...trouble) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[request] = append(f.faults[request], tr...)
}

func (f *fakeAPI) set(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

func (f *fakeAPI) count(request string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.asked {
		if a == request {
			n++
		}
	}
	return n
}

var machinePath = regexp.MustCompile(`^/v1/apps/trial/machines/([0-9a-z]+)(?:/([a-z]+))?$`)

// requestOf names a request for scripts: GET app, POST machines, GET list, GET
// machine, POST start, DELETE machine and so on.
func requestOf(r *http.Request) (name, id, verb string) {
	switch r.URL.Path {
	case "/v1/apps/trial":
		return r.Method + " app", "", ""
	case "/v1/apps/trial/machines":
		if r.Method == http.MethodGet {
			return "GET list", "", ""
		}
		return "POST machines", "", ""
	}
	if m := machinePath.FindStringSubmatch(r.URL.Path); m != nil {
		if m[2] == "" {
			return r.Method + " machine", m[1], ""
		}
		return r.Method + " " + m[2], m[1], m[2]
	}
	return "?", "", ""
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	name, id, verb := requestOf(r)
	f.asked, f.bodies = append(f.asked, name), append(f.bodies, r.URL.String()+" "+string(body))
	rec := httptest.NewRecorder()
	if r.Header.Get("Authorization") != "Bearer "+testToken {
		problem(rec, 401, "", "who are you")
		flush(w, rec)
		return
	}
	var tr trouble
	if q := f.faults[name]; len(q) > 0 {
		tr, f.faults[name] = q[0], q[1:]
	}
	rec.Header().Set("Fly-Request-Id", "01TEST-fra")
	if !refuse(rec, tr) {
		if tr == cutBefore {
			panic(http.ErrAbortHandler)
		}
		f.handle(rec, r, name, id, verb, body, tr)
	}
	switch tr {
	case cutAfter:
		panic(http.ErrAbortHandler)
	case failAfter:
		rec = httptest.NewRecorder()
		problem(rec, 500, "unknown", "it broke: password: hunter2")
	case garbage:
		rec.Body.Reset()
		rec.Body.WriteString("<html>")
	}
	flush(w, rec)
}

func flush(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

func problem(w http.ResponseWriter, code int, status, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message, "status": status})
}

func refuse(w http.ResponseWriter, tr trouble) bool {
	switch tr {
	case failBefore:
		problem(w, 502, "", "bad gateway")
	case answer404:
		problem(w, 404, "", "machine not found")
	case answer408:
		problem(w, 408, "", "deadline_exceeded")
	case answer409:
		problem(w, 409, "", "failed to obtain lease")
	case answer422:
		problem(w, 422, "name_taken", "the name is taken")
	case noCapacity:
		problem(w, 422, "insufficient_capacity", "no room in fra")
	case answer429:
		w.Header().Set("Retry-After", "7")
		problem(w, 429, "", "rate limit exceeded")
	case redirect:
		w.Header().Set("Location", "http://elsewhere.invalid/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	default:
		return false
	}
	return true
}

func (f *fakeAPI) handle(w http.ResponseWriter, r *http.Request, name, id, verb string, body []byte, tr trouble) {
	reply := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	switch name {
	case "GET app":
		if f.appGone {
			problem(w, 404, "", "app not found")
			return
		}
		reply(map[string]string{"name": "trial", "status": "deployed"})
		return
	case "GET list":
		f.list(r, tr, reply)
		return
	case "POST machines":
		f.create(w, body, tr, reply)
		return
	}
	m := f.machines[id]
	if m == nil {
		problem(w, 404, "", "machine not found")
		return
	}
	if held := m.lease; held != "" && r.Method != http.MethodGet && verb != "exec" && r.Header.Get("fly-machine-lease-nonce") != held {
		problem(w, 409, "", "lease currently held")
		return
	}
	f.act(w, r, m, verb, body, tr, reply)
}

func (f *fakeAPI) list(r *http.Request, tr trouble, reply func(any)) {
	out := []machine{}
	for _, m := range f.machines {
		if want := r.URL.Query().Get("metadata." + metaOperation); want != "" && m.Config.Metadata[metaOperation] != want || tr == emptyList {
			continue
		}
		out = append(out, m.machine)
	}
	reply(out)
}

func (f *fakeAPI) create(w http.ResponseWriter, body []byte, tr trouble, reply func(any)) {
	var req createRequest
	if err := json.Unmarshal(body, &req); err != nil || !req.SkipLaunch {
		problem(w, 400, "", "bad request")
		return
	}
	for _, m := range f.machines {
		if m.Name == req.Name {
			problem(w, 422, "name_taken", "the name is taken")
			return
		}
	}
	f.made++
	m := &fakeMachine{machine: machine{ID: fmt.Sprintf("d8901%03d", f.made), Name: req.Name, State: "created", InstanceID: fmt.Sprintf("01V%d", f.made),
		HostStatus: "ok", UpdatedAt: f.clock, Config: req.Config}, files: map[string][]byte{}}
	f.machines[m.ID] = m
	answer := m.machine
	if tr == otherName {
		answer.Name = "somebody-elses"
	}
	reply(answer)
}

func (f *fakeAPI) act(w http.ResponseWriter, r *http.Request, m *fakeMachine, verb string, body []byte, tr trouble, reply func(any)) {
	f.clock = f.clock.Add(time.Second)
	switch r.Method + " " + verb {
	case "GET ":
		out := m.machine
		if tr == unreachable {
			out.HostStatus = "unreachable"
		}
		reply(out)
	case "POST lease":
		f.leases++
		m.lease = fmt.Sprintf("nonce%d", f.leases)
		data := map[string]any{"nonce": m.lease, "version": m.InstanceID}
		if tr == staleLease {
			data["version"] = "01OTHER"
		}
		if tr == noNonce {
			delete(data, "nonce")
		}
		reply(map[string]any{"status": "success", "data": data})
	case "DELETE lease":
		m.lease = ""
		reply(map[string]bool{"ok": true})
	case "POST start":
		m.State, m.gone, m.files = "started", "", map[string][]byte{}
		reply(map[string]string{"previous_state": "stopped"})
	case "POST stop":
		m.State, m.UpdatedAt = "stopped", f.clock
		reply(map[string]bool{"ok": true})
	case "GET wait":
		if r.URL.Query().Get("instance_id") != m.InstanceID {
			problem(w, 400, "", "another instance")
		} else if m.State != r.URL.Query().Get("state") {
			problem(w, 408, "", "deadline_exceeded")
		} else {
			reply(map[string]bool{"ok": true})
		}
	case "DELETE ":
		delete(f.machines, m.ID)
		reply(map[string]bool{"ok": true})
	case "POST exec":
		f.exec(w, m, body, tr, reply)
	default:
		problem(w, 404, "", "no such route")
	}
}

var (
	openedRE = regexp.MustCompile(`: > /run/berth/go-([A-Za-z0-9_-]+) `)
	askedRE  = regexp.MustCompile(`-e /run/berth/go-([A-Za-z0-9_-]+) `)
	pieceRE  = regexp.MustCompile(`skip=([0-9]+) `)
)

func (f *fakeAPI) exec(w http.ResponseWriter, m *fakeMachine, body []byte, tr trouble, reply func(any)) {
	var req struct{ Cmd, Stdin string }
	if err := json.Unmarshal(body, &req); err != nil || m.State != "started" {
		problem(w, 412, "", "machine not started")
		return
	}
	out := ""
	switch {
	case openedRE.MatchString(req.Cmd):
		raw, _ := base64.StdEncoding.DecodeString(req.Stdin)
		for tr := tar.NewReader(bytes.NewReader(raw)); ; {
			h, err := tr.Next()
			if err != nil {
				break
			}
			m.files[h.Name], _ = io.ReadAll(tr)
		}
		m.gone = openedRE.FindStringSubmatch(req.Cmd)[1]
	case askedRE.MatchString(req.Cmd):
		out = "shut\n"
		if m.gone == askedRE.FindStringSubmatch(req.Cmd)[1] {
			out = "open\n"
		}
	case strings.Contains(req.Cmd, "sha256sum"):
		sum := sha256.Sum256(f.content)
		if tr == wrongSum {
			sum[0]++
		}
		out = fmt.Sprintf("%d\n%x  -\n", len(f.content), sum)
	case pieceRE.MatchString(req.Cmd):
		i, _ := strconv.Atoi(pieceRE.FindStringSubmatch(req.Cmd)[1])
		piece := f.content[i*chunkBytes : min((i+1)*chunkBytes, len(f.content))]
		if tr == damaged {
			piece = piece[1:]
		}
		out = base64.StdEncoding.EncodeToString(piece) + "\n"
	}
	reply(map[string]any{"exit_code": 0, "stdout": out, "stderr": "canary-of-stderr"})
}
