package server

import (
	"context"
	"errors"
	"io"
	"net/http"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/wire"
)

// terminalOf is the guarded terminal of a driver; nil if it has none.
func terminalOf(d providers.Driver) (providers.Terminal, error) {
	r, err := providers.NewRegistry(providers.BundleOf(d, nil))
	if err != nil {
		return nil, err
	}
	e, err := r.Get(d.Name())
	return e.Terminal, err
}

// screened is the terminal for an environment, or why there is none.
func (s *Server) screened(id events.EnvironmentID) (providers.Terminal, error) {
	if _, err := events.ParseEnvironmentID(string(id)); err != nil {
		return nil, err
	}
	if s.terminal == nil {
		return nil, fault.New(fault.Unimplemented, "provider %s does not own the terminal of its seats", s.driver.Name())
	}
	return s.terminal, nil
}

// input types into a seat. How much the terminal took is told with a failure
// too; what was typed is in neither.
func (s *Server) input(ctx context.Context, in wire.Typed) (wire.Delivered, error) {
	t, err := s.screened(in.Environment)
	if err != nil {
		return wire.Delivered{}, err
	}
	n, err := t.Input(ctx, in.Environment, in.Ref, in.Data)
	out := wire.Delivered{Delivered: n}
	if err != nil {
		out.Fault = providers.ScrubFault(fault.From(err), providers.Material{"input": in.Data})
	}
	return out, nil
}

func (s *Server) resize(ctx context.Context, in wire.Resized) (struct{}, error) {
	t, err := s.screened(in.Environment)
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, t.Resize(ctx, in.Environment, in.Ref, in.Size)
}

// screen streams a view, part by part, until the seat ends, the client goes
// away or takes nothing for too long, or the server stops.
func (s *Server) screen(w http.ResponseWriter, r *http.Request) {
	id, err := parameters(r)
	var t providers.Terminal
	if err == nil {
		t, err = s.screened(id)
	}
	if err != nil {
		fail(w, err)
		return
	}
	leave := s.streaming(w)
	if leave == nil {
		return
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.base, cancel)()
	v, err := t.View(ctx, id, r.URL.Query().Get("ref"))
	if err != nil {
		fail(w, err)
		return
	}
	defer v.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.WriteHeader(http.StatusOK)
	out := steadyOf(w, true)
	for {
		p, err := v.Next()
		if errors.Is(err, io.EOF) && ctx.Err() == nil {
			return
		}
		if err == nil {
			err = providers.WritePart(out, p)
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the connection is cut: the client sees that it is not the end of the seat
		}
	}
}
