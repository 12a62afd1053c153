package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/providers"
	"berth/providers/drill"
	"berth/providers/hosted/wire"
	"berth/providers/providertest"
)

// TestDocumentAndRoutesAgree: what is served is what the document says, and
// the other way round.
func TestDocumentAndRoutesAgree(t *testing.T) {
	var d struct {
		OpenAPI    string                                `json:"openapi"`
		Paths      map[string]map[string]json.RawMessage `json:"paths"`
		Components struct {
			Schemas struct {
				Verb struct {
					Enum []events.Verb `json:"enum"`
				} `json:"Verb"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(wire.Document, &d); err != nil {
		t.Fatal(err)
	}
	var said, served, listed []string
	for path, methods := range d.Paths {
		for m := range methods {
			said = append(said, strings.ToUpper(m)+" "+path)
		}
	}
	for r := range (&Server{}).table() {
		served = append(served, r.Method+" "+r.Path)
	}
	for _, r := range wire.Routes {
		listed = append(listed, r.Method+" "+r.Path)
	}
	for _, s := range [][]string{said, served, listed} {
		slices.Sort(s)
	}
	if !slices.Equal(said, served) || !slices.Equal(listed, served) || d.OpenAPI != "3.1.0" {
		t.Errorf("said %v\nserved %v\nlisted %v", said, served, listed)
	}
	if !slices.Equal(d.Components.Schemas.Verb.Enum, events.Verbs) {
		t.Errorf("verbs: %v", d.Components.Schemas.Verb.Enum)
	}
}

// schemas compiles the document's schemas.
func schemas(t *testing.T) func(name string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(wire.Document))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("berth:openapi", doc); err != nil {
		t.Fatal(err)
	}
	return func(name string) *jsonschema.Schema {
		s, err := c.Compile("berth:openapi#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func valid(t *testing.T, what string, s *jsonschema.Schema, raw []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %s\n%v", what, raw, err)
	}
}

// life calls the handler and holds every body to the document.
type life struct {
	*testing.T
	s      *Server
	schema func(string) *jsonschema.Schema
	id     events.EnvironmentID
	ref    string
	n      int
	file   events.File
}

func (l *life) call(path, in, out string, body any) []byte {
	l.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		l.Fatal(err)
	}
	valid(l.T, path+" request", l.schema(in), raw)
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(raw))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	l.s.ServeHTTP(w, r)
	valid(l.T, path, l.schema(out), w.Body.Bytes())
	if (out == "Failure") == (w.Code == http.StatusOK) {
		l.Errorf("%s: status %d", path, w.Code)
	}
	return w.Body.Bytes()
}

func (l *life) plan() events.Plan {
	return events.Plan{Provider: "far", Image: events.Image{Kind: "template", Reference: "any"}, Lifetime: time.Hour,
		Resources: events.Resources{CPUs: events.MustQuantity("0.25"), MemoryMiB: 128}, Command: []string{"true"}}
}

func (l *life) do(v events.Verb, a events.Arguments, expires time.Time) {
	l.Helper()
	l.n++
	op := wire.Operation{ID: events.OperationID(fmt.Sprintf("operation-%08d", l.n)), Environment: l.id, Alias: "demo", Verb: v, Arguments: a, Plan: l.plan(),
		Ref: l.ref, Writer: events.Writer{Instance: "abcdefghijklmnopqrstuvwxyz", Epoch: 1}, Expires: &expires}
	material, err := providertest.Launch(op.Operation(), nil)
	if err != nil {
		l.Fatal(err)
	}
	op.Material = wire.Material(material)
	var out wire.Outcome
	if err := json.Unmarshal(l.call(wire.OperationPath(v), "Operation", "Outcome", op), &out); err != nil || out.Outcome != providers.Done {
		l.Fatalf("%s: %+v %v", v, out, err)
	}
	if l.ref = out.Facts.Ref; out.Facts.File != nil {
		l.file = *out.Facts.File
	}
	l.call(wire.PathReconcile, "Operation", "Finding", op)
	l.call(wire.PathExclude, "Operation", "Finding", op)
	op.Arguments.CheckpointID = "another"
	l.call(wire.OperationPath(v), "Operation", "Outcome", op)
}

// TestEverythingIsAsTheDocumentSays: requests and answers of a whole life are
// what the schemas allow.
func TestEverythingIsAsTheDocumentSays(t *testing.T) {
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
	l := &life{T: t, s: s, schema: schemas(t), id: events.EnvironmentID(uuid.Must(uuid.NewV7()).String())}
	empty := struct{}{}
	l.call(wire.PathProvider, "Empty", "Provider", empty)
	l.call(wire.PathHost, "Empty", "HostFacts", empty)
	l.call(wire.PathImage, "ImageQuestion", "ImageDescription", wire.Imaged{Image: l.plan().Image})
	l.call(wire.PathPreflight, "PlanQuestion", "Preflight", wire.Planned{Plan: l.plan()})
	checkpoint := uuid.NewString()
	at := events.MillisUTC(time.Now().Add(2 * time.Hour))
	later := at.Add(time.Minute)
	for _, v := range []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart, events.VerbPause, events.VerbResume} {
		l.do(v, events.Arguments{}, at)
	}
	l.do(events.VerbExtend, events.Arguments{ExtendTo: &later, Wanted: &later}, at)
	l.do(events.VerbCheckpoint, events.Arguments{CheckpointID: checkpoint}, at)
	l.do(events.VerbRestore, events.Arguments{CheckpointID: checkpoint}, at)
	l.do(events.VerbExport, events.Arguments{CheckpointID: checkpoint, MaxBytes: 1 << 30}, at)
	l.call(wire.PathInspect, "EnvironmentQuestion", "Facts", wire.Seen{Environment: l.id, Ref: l.ref})
	l.call(wire.PathInspect, "EnvironmentQuestion", "Failure", wire.Seen{Environment: l.id, Ref: "another"})
	l.call(wire.PathInput, "Typed", "Delivered", wire.Typed{Environment: l.id, Ref: l.ref, Data: []byte("x")})
	l.call(wire.PathResize, "Resized", "Empty", wire.Resized{Environment: l.id, Ref: l.ref, Size: providers.Size{Rows: 30, Cols: 90}})
	l.call(wire.PathList, "Empty", "List", empty)
	l.call(wire.PathChanges, "ChangesQuestion", "Changes", wire.ChangesAfter{})
	l.ranges()
	l.do(events.VerbDeleteFile, events.Arguments{FileID: l.file.ID}, at)
	l.do(events.VerbStop, events.Arguments{Grace: "0s"}, at)
	l.do(events.VerbDestroy, events.Arguments{}, at)
}

// ranges reads the exported file in the ways that HTTP allows (R36).
func (l *life) ranges() {
	l.Helper()
	size := l.file.ByteLength
	for header, want := range map[string]struct {
		status int
		length int64
	}{
		"": {200, size}, "bytes=0-": {200, size}, "bytes=1-": {206, size - 1}, fmt.Sprintf("bytes=%d-", size-1): {206, 1},
		fmt.Sprintf("bytes=%d-", size): {416, 0}, fmt.Sprintf("bytes=%d-", size+1): {416, 0},
		"bytes=1-2": {400, -1}, "bytes=-1": {400, -1}, "lines=1-": {400, -1},
	} {
		path := strings.NewReplacer("{environment}", string(l.id), "{file}", l.file.ID).Replace(wire.PathFile)
		r := httptest.NewRequest(http.MethodGet, path+"?ref="+l.ref, nil)
		if header != "" {
			r.Header.Set("Range", header)
		}
		w := httptest.NewRecorder()
		l.s.ServeHTTP(w, r)
		if n := int64(w.Body.Len()); w.Code != want.status || want.length >= 0 && n != want.length {
			l.Errorf("range %q: status %d, %d bytes, want %+v", header, w.Code, n, want)
		}
	}
}
