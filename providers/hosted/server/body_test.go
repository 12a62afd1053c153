package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"berth/events/eventlog/memory"
	"berth/providers/drill"
	"berth/providers/hosted/wire"
)

// bounded is a connection that notes until when a body may arrive.
type bounded struct {
	*httptest.ResponseRecorder
	until time.Time
}

// SetReadDeadline is what net/http's controller asks of a connection.
func (b *bounded) SetReadDeadline(t time.Time) error { b.until = t; return nil }

// TestABodyThatNeverComesIsBounded: net/http reads what a handler left of a body
// before it sends the answer, for as long as the connection lets it. Whoever
// announced a body and sends none would hold the connection for ever.
func TestABodyThatNeverComesIsBounded(t *testing.T) {
	driver, err := drill.Open(drill.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	s, err := New(Config{Driver: driver, Log: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	known := s.bearer
	ask := func(method, path, kind, body string) *bounded {
		r := httptest.NewRequest(method, path, http.NoBody)
		if body != "" {
			r = httptest.NewRequest(method, path, strings.NewReader(body))
		}
		r.Header.Set("Content-Type", kind)
		w := &bounded{ResponseRecorder: httptest.NewRecorder()}
		s.ServeHTTP(w, r)
		return w
	}
	for what, c := range map[string]struct {
		method, path, kind string
		stranger           bool
		most               time.Duration
	}{
		"a stranger":         {"POST", wire.PathList, "application/json", true, wire.ConnectLimit},
		"another kind":       {"POST", wire.PathList, "text/plain", false, wire.ReadLimit},
		"another path":       {"POST", "/nowhere", "application/json", false, wire.ReadLimit},
		"a read that has it": {"GET", wire.PathDocument, "application/json", false, wire.ReadLimit},
	} {
		s.bearer = known
		if c.stranger {
			s.bearer = new([32]byte)
		}
		if w := ask(c.method, c.path, c.kind, "{}"); w.until.IsZero() || w.until.After(time.Now().Add(c.most)) {
			t.Errorf("%s: the body may arrive until %v", what, w.until)
		}
		if w := ask(c.method, c.path, c.kind, ""); !w.until.IsZero() {
			t.Errorf("%s: what has no body ends at %v", what, w.until)
		}
	}
	s.bearer = known
	// A body that has come bounds nothing any more: the call may take longer.
	if w := ask("POST", wire.PathList, "application/json", "{}"); w.Code != http.StatusOK || !w.until.IsZero() {
		t.Errorf("%d, until %v", w.Code, w.until)
	}
}
