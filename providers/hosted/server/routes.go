package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/wire"
)

// table is every route with what answers it; a test compares it with the
// document.
func (s *Server) table() map[wire.Route]http.HandlerFunc {
	return map[wire.Route]http.HandlerFunc{
		{Method: "GET", Path: wire.PathDocument}:   s.document,
		{Method: "POST", Path: wire.PathProvider}:  s.about,
		{Method: "POST", Path: wire.PathOperation}: s.operation,
		{Method: "POST", Path: wire.PathReconcile}: s.question(s.reconcile),
		{Method: "POST", Path: wire.PathExclude}:   s.question(s.exclude),
		{Method: "POST", Path: wire.PathChanges}:   s.changes,
		{Method: "GET", Path: wire.PathLogs}:       s.logs,
		{Method: "GET", Path: wire.PathFile}:       s.file,
		{Method: "GET", Path: wire.PathScreen}:     s.screen,
		{Method: "POST", Path: wire.PathInput}:     reads(s, s.input),
		{Method: "POST", Path: wire.PathResize}:    reads(s, s.resize),
		{Method: "POST", Path: wire.PathHost}: reads(s, func(ctx context.Context, _ struct{}) (events.HostFacts, error) {
			return s.driver.HostFacts(ctx)
		}),
		{Method: "POST", Path: wire.PathImage}: reads(s, func(ctx context.Context, in wire.Imaged) (events.ImageDescription, error) {
			return s.driver.DescribeImage(ctx, in.Image)
		}),
		{Method: "POST", Path: wire.PathPreflight}: reads(s, s.preflight),
		{Method: "POST", Path: wire.PathInspect}: reads(s, func(ctx context.Context, in wire.Seen) (events.Facts, error) {
			if _, err := events.ParseEnvironmentID(string(in.Environment)); err != nil {
				return events.Facts{}, err
			}
			return s.driver.Inspect(ctx, in.Environment, in.Ref)
		}),
		{Method: "POST", Path: wire.PathList}: reads(s, s.list),
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for r, h := range s.table() {
		mux.HandleFunc(r.Method+" "+r.Path, h)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, fault.New(fault.NotFound, "there is no such path; GET %s lists them", wire.PathDocument))
	})
	return mux
}

// ServeHTTP checks who asks, then answers. A body that nobody reads is read away
// before the answer is sent; its bound keeps who never sends it, a stranger too,
// from holding one of the connections. Without a body there is none: the end of
// a bound would end a stream.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	known := s.authentic(r)
	if r.Body != http.NoBody {
		within := wire.ReadLimit
		if !known {
			within = wire.ConnectLimit
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(within))
	}
	if !known {
		fail(w, fault.New(fault.Unauthenticated, "the provider does not know who asks"))
		return
	}
	s.mux.ServeHTTP(w, r)
}

func (s *Server) document(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(wire.Document)
}

func (s *Server) about(w http.ResponseWriter, r *http.Request) {
	_, watches := providers.Raw(s.driver).(providers.Watcher)
	delegates := providers.Entry{Name: s.driver.Name(), Driver: s.driver}.Delegable(r.Context()) == nil
	defaults, err := providers.DefaultsOf(r.Context(), s.driver)
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, wire.Provider{Name: s.driver.Name(), Protocol: wire.Protocol, Watches: watches, Delegates: delegates, Defaults: &defaults})
}

// operation answers a mutation. Whatever could be read gets a typed outcome.
func (s *Server) operation(w http.ResponseWriter, r *http.Request) {
	limit, err := timeLimit(r)
	if err != nil {
		fail(w, err)
		return
	}
	op, err := body[wire.Operation](w, r)
	if err == nil {
		err = op.Check()
	}
	if err != nil {
		fail(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	var out providers.Outcome
	switch v := events.Verb(r.PathValue("verb")); {
	case v != op.Verb || !slices.Contains(events.Verbs, v):
		out = providers.RefusedWith(fault.New(fault.Unimplemented, "verb %q is not one of the protocol", events.Scrub(string(v))))
	case op.Arguments.HostPath != "":
		// The path would be of this host, which is not the one of who asks (R34).
		out = providers.RefusedWith(fault.New(fault.Unimplemented, "a hosted provider exports no host paths; ask for a provider file"))
	default:
		out = s.do(ctx, op, limit, nil)
	}
	reply(w, wire.OutcomeOf(op.ID, out))
}

// question answers reconcile and exclude.
func (s *Server) question(find func(context.Context, wire.Operation) providers.Finding) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		limit, err := timeLimit(r)
		if err != nil {
			fail(w, err)
			return
		}
		op, err := body[wire.Operation](w, r)
		if err == nil {
			err = op.Check()
		}
		if err == nil && !slices.Contains(events.Verbs, op.Verb) {
			err = fault.New(fault.Unimplemented, "verb %q is not one of the protocol", events.Scrub(string(op.Verb)))
		}
		if err != nil {
			fail(w, err)
			return
		}
		if !s.begin() {
			fail(w, stopping())
			return
		}
		defer s.calls.Done()
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		reply(w, wire.FindingOf(op.ID, find(ctx, op)))
	}
}

// reads answers a reading call.
func reads[In, Out any](s *Server, f func(context.Context, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		limit, err := timeLimit(r)
		if err != nil {
			fail(w, err)
			return
		}
		in, err := body[In](w, r)
		if err != nil {
			fail(w, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		if !s.turn(ctx) {
			fail(w, busy(s))
			return
		}
		defer s.leave()
		out, err := f(ctx, in)
		if err != nil {
			fail(w, err)
			return
		}
		reply(w, out)
	}
}

func (s *Server) preflight(ctx context.Context, in wire.Planned) (wire.Preflight, error) {
	in.Plan.Provider = s.driver.Name()
	p, err := s.driver.Preflight(ctx, in.Plan)
	if err != nil {
		return wire.Preflight{}, err
	}
	caps, err := json.Marshal(p.Capabilities)
	return wire.Preflight{Checks: p.Checks, Capabilities: caps, Network: p.Network, ProbedAt: p.ProbedAt.UnixMilli()}, err
}

func (s *Server) list(ctx context.Context, _ struct{}) (wire.List, error) {
	ls, err := s.driver.List(ctx)
	out := wire.List{Environments: []wire.Listed{}}
	for _, l := range ls {
		out.Environments = append(out.Environments, wire.Listed(l))
	}
	return out, err
}

// changes is the long poll of Watch.
func (s *Server) changes(w http.ResponseWriter, r *http.Request) {
	in, err := body[wire.ChangesAfter](w, r)
	if err != nil {
		fail(w, err)
		return
	}
	if _, ok := providers.Raw(s.driver).(providers.Watcher); !ok {
		fail(w, fault.New(fault.Unimplemented, "provider %s does not tell of changes; inspect", s.driver.Name()))
		return
	}
	wait := min(max(time.Duration(in.WaitMs)*time.Millisecond, 0), wire.MaxPoll)
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	stop := context.AfterFunc(s.base, cancel)
	defer stop()
	reply(w, s.hub.after(ctx, in.After))
}

// body reads a JSON request whole, in the time that ServeHTTP gave it and in
// bounded size; what then runs has no bound but its own. A field that
// nobody knows is refused: it might have mattered.
func body[T any](w http.ResponseWriter, r *http.Request) (v T, err error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return v, fault.New(fault.BadRequest, "the body must be application/json")
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, wire.MaxCall))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		if e := new(http.MaxBytesError); errors.As(err, &e) {
			return v, fault.New(fault.BadRequest, "the body has more than %d bytes", wire.MaxCall)
		}
		var e *fault.Error
		if errors.As(err, &e) {
			return v, fault.New(fault.BadRequest, "the body can't be read: %s", e.Message)
		}
		// The text of the decoder may repeat what it read, which may be secret.
		return v, fault.New(fault.BadRequest, "the body is not the JSON of this call; GET %s describes it", wire.PathDocument)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return v, fault.New(fault.BadRequest, "the body has more than one JSON value")
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return v, nil
}

// timeLimit is what the client says is left of the deadline, bounded.
func timeLimit(r *http.Request) (time.Duration, error) {
	h := r.Header.Get(wire.HeaderTimeout)
	if h == "" {
		return wire.DefaultDeadline, nil
	}
	ms, err := strconv.ParseInt(h, 10, 64)
	if err != nil || ms <= 0 {
		return 0, fault.New(fault.BadRequest, "%s must be a number of milliseconds above zero", wire.HeaderTimeout)
	}
	return time.Duration(min(ms, wire.MaxDeadline.Milliseconds())) * time.Millisecond, nil
}

// reply sends a typed answer; one that is too long is a failure instead.
func reply(w http.ResponseWriter, v any) {
	raw, err := json.Marshal(v)
	if err == nil && len(raw) > wire.MaxAnswer {
		err = fault.New(fault.ResourceExhausted, "the answer has %d bytes, more than the %d that may be sent", len(raw), wire.MaxAnswer)
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw)
}

// fail sends a failure with the status of its code.
func fail(w http.ResponseWriter, err error) {
	e := providers.ScrubFault(fault.From(err), nil)
	raw, err := json.Marshal(wire.Failure{Error: e})
	if err != nil {
		raw = []byte(`{"error":{"code":"internal","message":"the failure can't be shown","outcome":"unknown","retryable":false}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(fault.RowOf(e.Code).HTTP)
	_, _ = w.Write(raw)
}
