package hosted_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"berth/events"
	"berth/events/eventlog/memory"
	"berth/events/fault"
	"berth/internal/devca"
	"berth/providers"
	"berth/providers/hosted"
	"berth/providers/hosted/server"
	"berth/providers/hosted/wire"
	"berth/providers/providertest"
)

// TestOnlyTLS13 (R85, blueprint section 7): neither side speaks anything older.
func TestOnlyTLS13(t *testing.T) {
	t.Parallel()
	e, _ := overDrill(t, faithful)
	ca, err := os.ReadFile(filepath.Join(certs, devca.CA))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, devca.Manager), filepath.Join(certs, devca.ManagerKey))
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.Dial("tcp", e.addr, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MaxVersion: tls.VersionTLS12})
	if err == nil {
		c.Close()
		t.Error("the server spoke TLS 1.2")
	}
	old := old12(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the client spoke TLS 1.2") }))
	d := client(t, config(old))
	defer d.Close()
	if _, err := d.List(within(t)); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("an old server: %v", err)
	}
}

// TestStrangersAreRefused: a server of another authority, a client of another
// authority, a client without a certificate, a wrong bearer.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	e, _ := overDrill(t, faithful)
	good := config(e.addr)
	bearer := filepath.Join(certs, devca.Bearer)
	withBearer := serve(t, server.Config{Driver: &stub{}, Log: memory.New(), BearerFile: bearer})
	defer withBearer.stop()
	for name, c := range map[string]struct {
		change func(*hosted.Config)
		code   fault.Code
		says   string
	}{
		"the server's authority": {func(c *hosted.Config) { c.CAFile = filepath.Join(stranger, devca.CA) }, fault.Unavailable, "certificate"},
		"another name":           {func(c *hosted.Config) { c.URL = strings.Replace(c.URL, "127.0.0.1", "localhost", 1) }, fault.Unavailable, "far"},
		"the client's authority": {func(c *hosted.Config) {
			c.CertFile, c.KeyFile = filepath.Join(stranger, devca.Manager), filepath.Join(stranger, devca.ManagerKey)
		}, fault.Unavailable, "far"},
		"no certificate": {func(c *hosted.Config) { c.CertFile, c.KeyFile, c.BearerFile = "", "", bearer }, fault.Unavailable, "far"},
		"another bearer": {func(c *hosted.Config) {
			c.URL, c.CertFile, c.KeyFile, c.BearerFile = "https://"+withBearer.addr, "", "", filepath.Join(stranger, devca.Bearer)
		}, fault.Unauthenticated, "who asks"},
		"no bearer": {func(c *hosted.Config) { c.URL = "https://" + withBearer.addr }, fault.Unauthenticated, "who asks"},
	} {
		cfg := good
		c.change(&cfg)
		d := client(t, cfg)
		_, err := d.List(within(t))
		if fault.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if f := fault.From(err); c.code == fault.Unavailable && (f.Hint == "" || (f.Outcome == fault.NotExecuted) == strings.Contains(f.Message, "lost")) {
			// What the other side says of a refusal may be lost with the connection.
			t.Errorf("%s: %v, outcome %s, hint %q", name, f, f.Outcome, f.Hint)
		}
		if out := d.Do(within(t), operation(newEnvironment(), events.VerbReserve, "")); out.Kind != providers.Unknown {
			t.Errorf("%s: a mutation is %s", name, out.Kind)
		}
		d.Close()
	}
}

// TestNoTrustNoService: a server that could not tell who asks does not start.
func TestNoTrustNoService(t *testing.T) {
	s, err := server.New(server.Config{Driver: &stub{}, Log: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Serve(t.Context(), nil, server.TLS{}); fault.CodeOf(err) != fault.BadRequest {
		t.Errorf("%v", err)
	}
}

// TestAnswersThatSayNothing (R49, R86, E8): whatever is not a typed answer of
// this very operation is unknown, and the request was sent once.
func TestAnswersThatSayNothing(t *testing.T) {
	t.Parallel()
	const right = "application/json"
	for name, c := range map[string]struct {
		status int
		kind   string
		body   string
	}{
		"a redirect":          {302, right, `{}`},
		"another operation":   {200, right, `{"operation":"operation-of-another","outcome":"refused","fault":{"code":"conflict","message":"x","outcome":"not-executed"}}`},
		"no outcome":          {200, right, `{"operation":"ID"}`},
		"done without facts":  {200, right, `{"operation":"ID","outcome":"done"}`},
		"refused, no fault":   {200, right, `{"operation":"ID","outcome":"refused"}`},
		"an unknown outcome":  {200, right, `{"operation":"ID","outcome":"fine","facts":{}}`},
		"a page":              {200, "text/html", `<html>`},
		"half of it":          {200, right, `{"operation":"ID","outco`},
		"nothing":             {204, right, ``},
		"created":             {201, right, `{"operation":"ID","outcome":"refused","fault":{"code":"conflict","message":"x","outcome":"not-executed"}}`},
		"too many":            {429, right, `{"error":{"code":"resource-exhausted","message":"later","outcome":"not-executed"}}`},
		"a refusal by status": {409, right, `{"error":{"code":"conflict","message":"no","outcome":"not-executed"}}`},
		"broken":              {503, "text/plain", `down`},
		"too long":            {200, right, strings.Repeat(" ", wire.MaxAnswer) + `{}`},
	} {
		var sent atomic.Int64
		op := operation(newEnvironment(), events.VerbReserve, "")
		addr := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent.Add(1)
			w.Header().Set("Content-Type", c.kind)
			if c.status == 302 {
				w.Header().Set("Location", "/v1/elsewhere")
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, strings.ReplaceAll(c.body, "ID", string(op.ID)))
		}))
		d := client(t, config(addr))
		if out := d.Do(within(t), op); out.Kind != providers.Unknown || out.Fault == nil {
			t.Errorf("%s: %s %v", name, out.Kind, out.Fault)
		}
		if f := d.Reconcile(within(t), op); f.Verdict != providers.Open {
			t.Errorf("%s: %+v", name, f)
		}
		if n := sent.Load(); n != 2 {
			t.Errorf("%s: %d requests for 2 calls", name, n)
		}
		d.Close()
	}
}

// TestTransportNeverRepeats: a kept connection that dies under a call makes it
// unknown; the request is not sent again.
func TestTransportNeverRepeats(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	addr := behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"environments":[]}`)
	}))
	d := client(t, config(addr))
	defer d.Close()
	if _, err := d.List(within(t)); err != nil {
		t.Fatal(err)
	}
	if out := d.Do(within(t), operation(newEnvironment(), events.VerbReserve, "")); out.Kind != providers.Unknown {
		t.Errorf("%s", out.Kind)
	}
	if n := sent.Load(); n != 2 {
		t.Errorf("%d requests for 2 calls", n)
	}
}

// TestRequestsAreBounded: bodies and headers that are too long, fields that
// nobody knows, paths that are none.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	s, err := server.New(server.Config{Driver: &stub{}, Log: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	addr := behind(t, s)
	ca, err := os.ReadFile(filepath.Join(certs, devca.CA))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	raw := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer raw.CloseIdleConnections()
	for name, c := range map[string]struct {
		path, body, header string
		status             int
	}{
		"too long":       {wire.PathList, "{" + strings.Repeat(" ", wire.MaxCall) + "}", "", 400},
		"unknown field":  {wire.PathInspect, `{"environment":"x","colour":"red"}`, "", 400},
		"bad id":         {wire.PathInspect, `{"environment":"../../etc"}`, "", 400},
		"two values":     {wire.PathList, `{}{}`, "", 400},
		"no JSON":        {wire.PathReconcile, `secret-bytes`, "", 400},
		"no path":        {"/v1/nothing", `{}`, "", 404},
		"bad deadline":   {wire.PathList, `{}`, "soon", 400},
		"deadline below": {wire.PathList, `{}`, "0", 400},
	} {
		req, err := http.NewRequestWithContext(within(t), "POST", "https://"+addr+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if c.header != "" {
			req.Header.Set(wire.HeaderTimeout, c.header)
		}
		res, err := raw.Do(req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		var f wire.Failure
		if res.StatusCode != c.status || json.Unmarshal(b, &f) != nil || f.Error == nil || bytes.Contains(b, []byte("secret-bytes")) {
			t.Errorf("%s: %d %s", name, res.StatusCode, b)
		}
	}
	d := client(t, config(addr))
	defer d.Close()
	big := operation(newEnvironment(), events.VerbStart, "")
	big.Material = providers.Material{"agent-credential": make([]byte, wire.MaxCall)}
	if out := d.Do(within(t), big); out.Kind != providers.Refused || out.Fault.Code != fault.BadRequest {
		t.Errorf("a call that is too long: %s %v", out.Kind, out.Fault)
	}
}

// R51: a guest on another machine reaches no socket of this one; what it can
// reach of https, the provider there decides, and the launch is refused by it.
func TestSourcesOfAnotherMachine(t *testing.T) {
	t.Parallel()
	driver := &stub{}
	e := serve(t, server.Config{Driver: driver, Log: memory.New(), BearerFile: filepath.Join(certs, devca.Bearer)})
	defer e.stop()
	d := client(t, hosted.Config{Name: "far", URL: "https://" + e.addr, CAFile: filepath.Join(certs, devca.CA), BearerFile: filepath.Join(certs, devca.Bearer)})
	defer d.Close()
	for _, source := range []events.BearerSource{{Kind: events.BearerSocket, Path: "/run/x"}, {Kind: events.BearerHTTPS, URL: "https://authority.example"}} {
		op := operation(newEnvironment(), events.VerbStart, "ref")
		var err error
		if op.Material, err = providertest.Launch(op, &source); err != nil {
			t.Fatal(err)
		}
		err = providers.ExposeBearer(d, op.Plan, source)
		if (err == nil) != (source.Kind == events.BearerHTTPS) {
			t.Errorf("%s: %v", source.Kind, err)
		}
		// Not even a client that does not ask gets it past the server.
		out := d.Do(within(t), op)
		if out.Kind != providers.Refused || !strings.Contains(out.Fault.Message, "R51") || driver.did.Load() != 0 {
			t.Errorf("%s: %s %v, the driver was called %d times", source.Kind, out.Kind, out.Fault, driver.did.Load())
		}
	}
}

// TestSecretsStayInside (R55, scenario 65): material and bearer are in no
// failure, no finding and no file, even if the provider repeats them.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	bearer := filepath.Join(certs, devca.Bearer)
	token, err := os.ReadFile(bearer)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(token))
	journal := memory.New()
	hidden := []string{secret}
	driver := &stub{}
	e := serve(t, server.Config{Driver: driver, Log: journal, BearerFile: bearer})
	defer e.stop()
	var seen []any
	see := func(d *hosted.Driver) {
		for _, lose := range []bool{false, true} {
			driver.lose.Store(lose)
			op := operation(newEnvironment(), events.VerbStart, "ref")
			var err error
			if op.Material, err = providertest.Launch(op, nil); err != nil {
				t.Fatal(err)
			}
			driver.say = string(op.Material[providers.MaterialCredential])
			hidden = append(hidden, driver.say)
			seen = append(seen, providers.Guard(d).Do(within(t), op))
			seen = append(seen, fmt.Sprintf("%v %+v %#v", wire.Of(op), wire.Of(op), wire.Of(op)))
			_, err = d.List(within(t))
			seen = append(seen, fmt.Sprint(err))
		}
	}
	cfg := hosted.Config{Name: "far", URL: "https://" + e.addr, CAFile: filepath.Join(certs, devca.CA), BearerFile: bearer}
	d := client(t, cfg)
	defer d.Close()
	see(d)
	// A provider that repeats what it was shown.
	cfg.URL = "https://" + behind(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		said := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		_ = json.NewEncoder(w).Encode(wire.Failure{Error: fault.New(fault.Unauthenticated, "who is %s?", said)})
	}))
	echo := client(t, cfg)
	defer echo.Close()
	see(echo)
	all, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range hidden {
		if strings.Contains(string(all)+fmt.Sprintf("%+v", seen), s) {
			t.Errorf("%q was seen in %s", s, all)
		}
	}
	last, err := journal.Tip(within(t))
	if err != nil || last == 0 {
		t.Fatalf("%d records: %v", last, err)
	}
	for n := uint64(1); n <= last; n++ {
		for _, s := range hidden {
			if b := journal.Body(n); bytes.Contains(b, []byte(s)) {
				t.Errorf("record %d holds a secret: %s", n, b)
			}
		}
	}
}

// TestSpec: what the command line says of a hosted provider (R44).
func TestSpec(t *testing.T) {
	c, err := hosted.ParseSpec("far=https://host:1,ca=a.pem,cert=c.pem,key=k.pem")
	want := hosted.Config{Name: "far", URL: "https://host:1", CAFile: "a.pem", CertFile: "c.pem", KeyFile: "k.pem"}
	if err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("%+v %v", c, err)
	}
	for name, spec := range map[string]string{
		"no name": "https://host", "no scheme": "far=host:1,bearer=b", "http": "far=http://host,bearer=b", "a user": "far=https://u:hunter2@host,bearer=b",
		"a query": "far=https://host?x=hunter2,bearer=b", "a fragment": "far=https://host#hunter2,bearer=b", "no host": "far=https://:1,bearer=b",
		"a path": "far=https://host/x,bearer=b", "a bad name": "a b=https://host,bearer=b", "no trust": "far=https://host,ca=a",
		"half a pair": "far=https://host,cert=c", "an unknown setting": "far=https://host,colour=red", "twice": "far=https://host,bearer=b,bearer=c",
		"empty": "far=https://host,bearer=", "too long": "far=https://" + strings.Repeat("h", 2050) + ",bearer=b",
	} {
		if _, err := hosted.ParseSpec(spec); fault.CodeOf(err) != fault.BadRequest || strings.Contains(fmt.Sprint(err), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSecretFilesAreTheirOwners (R55): a key that others may read is refused.
func TestSecretFilesAreTheirOwners(t *testing.T) {
	cfg := config("127.0.0.1:1")
	cfg.BearerFile = filepath.Join(t.TempDir(), "bearer")
	for name, c := range map[string]struct {
		content string
		mode    os.FileMode
		ok      bool
	}{
		"right": {strings.Repeat("x", wire.MinBearer), 0o600, true}, "open": {strings.Repeat("x", wire.MinBearer), 0o644, false},
		"short": {strings.Repeat("x", wire.MinBearer-1), 0o600, false}, "the longest": {strings.Repeat("x", wire.MaxBearer), 0o600, true},
		"long": {strings.Repeat("x", wire.MaxBearer+1), 0o600, false}, "two lines": {strings.Repeat("x", 40) + "\ny", 0o600, false},
	} {
		os.Remove(cfg.BearerFile)
		if err := os.WriteFile(cfg.BearerFile, []byte(c.content), c.mode); err != nil {
			t.Fatal(err)
		}
		d, err := hosted.New(cfg)
		if (err == nil) != c.ok || err != nil && fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
		if d != nil {
			d.Close()
		}
	}
}
