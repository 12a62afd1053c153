package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/providers"
	"berth/providers/drill"
	"berth/providers/hosted/wire"
	"berth/providers/providertest"
)

// started counts the starts that a driver hears of.
type started struct {
	*drill.Driver
	n int
}

func (d *started) Do(ctx context.Context, op providers.Operation) providers.Outcome {
	if op.Verb == events.VerbStart {
		d.n++
	}
	return d.Driver.Do(ctx, op)
}

type object = map[string]any

// The prepared launch is closed (R46, R58): a start executes the plan's command
// with the material that binds it, and a body that says anything more, or
// anything else, is refused before the driver hears of it.
func TestThePreparedLaunchIsClosed(t *testing.T) {
	inner, err := drill.Open(drill.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	driver := &started{Driver: inner}
	s, err := New(Config{Driver: driver, Log: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := &life{T: t, s: s, schema: schemas(t), id: events.EnvironmentID(uuid.Must(uuid.NewV7()).String())}
	op := providers.Operation{ID: "operation-closed-1", Environment: l.id, Alias: "demo", Verb: events.VerbStart, Plan: l.plan(),
		Writer: events.Writer{Instance: "abcdefghijklmnopqrstuvwxyz", Epoch: 1}}
	material, err := providertest.Launch(op, nil)
	if err != nil {
		t.Fatal(err)
	}
	op.Material = material
	for name, c := range map[string]struct {
		change func(object)
		schema bool // the document alone refuses it
	}{
		"another field of the operation":         {func(o object) { o["exec"] = []string{"sh"} }, true},
		"another field of the plan":              {func(o object) { o["plan"].(object)["shell"] = true }, true},
		"another field of the resources":         {func(o object) { o["plan"].(object)["resources"].(object)["gpu"] = 1 }, true},
		"another field of the arguments":         {func(o object) { o["arguments"].(object)["command"] = []string{"sh"} }, true},
		"another piece of material":              {func(o object) { o["material"].(object)["api-key"] = "c2VjcmV0" }, true},
		"another command than was bound":         {func(o object) { o["plan"].(object)["command"] = []string{"sh"} }, false},
		"another field of the launch request":    {func(o object) { reword(t, o, `{"shell":true,`) }, false},
		"a launch request of other capitals":     {func(o object) { reword(t, o, `{"VERSION":1,`) }, false},
		"the credential without a request":       {func(o object) { delete(o["material"].(object), providers.MaterialLaunch) }, false},
		"the request without its credential":     {func(o object) { delete(o["material"].(object), providers.MaterialCredential) }, false},
		"a launch of another environment":        {func(o object) { o["environment"] = uuid.Must(uuid.NewV7()).String() }, false},
		"a hand-off beside the credential":       {func(o object) { o["material"].(object)["handoff"] = "c2VjcmV0" }, false},
		"a plan that begins with a hand-off":     {func(o object) { o["plan"].(object)["delegated"] = true }, false},
		"a plan with other options than bound":   {func(o object) { o["plan"].(object)["options"] = object{"isolation": "none"} }, false},
		"a plan with another image than bound":   {func(o object) { o["plan"].(object)["image"].(object)["reference"] = "other" }, false},
		"a plan with another network than bound": {func(o object) { o["plan"].(object)["network"] = "host" }, false},
	} {
		body := bodyOf(t, op)
		body["id"] = "operation-" + uuid.NewString() // each is judged by itself
		c.change(body)
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.schema("Operation").Validate(v); (err != nil) != c.schema {
			t.Errorf("%s: the document says %v", name, err)
		}
		w := posted(s, raw)
		var out wire.Outcome
		if w.Code == http.StatusOK && (json.Unmarshal(w.Body.Bytes(), &out) != nil || out.Outcome != providers.Refused) || w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if driver.n > 0 {
			t.Fatalf("%s: the driver was asked to start it", name)
		}
	}
	raw, err := json.Marshal(bodyOf(t, op))
	if err != nil {
		t.Fatal(err)
	}
	if w := posted(s, raw); w.Code != http.StatusOK || driver.n != 1 {
		t.Errorf("the launch as it was prepared: %d %s, heard %d times", w.Code, w.Body, driver.n)
	}
}

func posted(s *Server, raw []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, wire.OperationPath(events.VerbStart), bytes.NewReader(raw))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func bodyOf(t *testing.T, op providers.Operation) (o object) {
	t.Helper()
	raw, err := json.Marshal(wire.Operation{ID: op.ID, Environment: op.Environment, Alias: op.Alias, Verb: op.Verb, Plan: op.Plan, Writer: op.Writer, Material: wire.Material(op.Material)})
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// reword puts a field in front of the others of the launch request.
func reword(t *testing.T, o object, begin string) {
	t.Helper()
	m := o["material"].(object)
	b, err := base64.StdEncoding.DecodeString(m[providers.MaterialLaunch].(string))
	if err != nil {
		t.Fatal(err)
	}
	m[providers.MaterialLaunch] = base64.StdEncoding.EncodeToString([]byte(strings.Replace(string(b), "{", begin, 1)))
}
