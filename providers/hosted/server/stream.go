package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted/wire"
)

// copyBuffer is all that one stream holds in memory, in bytes.
const copyBuffer = 256 << 10

// parameters reads the environment of the path and a bounded query.
func parameters(r *http.Request) (events.EnvironmentID, error) {
	for k, vs := range r.URL.Query() {
		for _, v := range vs {
			if len(v) > wire.MaxQuery {
				return "", fault.New(fault.BadRequest, "parameter %s is longer than %d bytes", events.Scrub(k), wire.MaxQuery)
			}
		}
	}
	return events.ParseEnvironmentID(r.PathValue("environment"))
}

// streaming takes one of the places for streams; nil if there is none.
func (s *Server) streaming(w http.ResponseWriter) (leave func()) {
	select {
	case s.streams <- struct{}{}:
		return func() { <-s.streams }
	default:
		fail(w, fault.New(fault.ResourceExhausted, "the provider has %d streams open, the most there may be", cap(s.streams)))
		return nil
	}
}

// steady writes with a deadline that moves on with the stream: a client that
// takes nothing is let go, one that is slow is not.
type steady struct {
	w     http.ResponseWriter
	c     *http.ResponseController
	flush bool
	n     int64
}

func steadyOf(w http.ResponseWriter, flush bool) *steady {
	return &steady{w: w, c: http.NewResponseController(w), flush: flush}
}

// Write implements io.Writer.
func (s *steady) Write(p []byte) (int, error) {
	_ = s.c.SetWriteDeadline(time.Now().Add(wire.StallAfter))
	n, err := s.w.Write(p)
	if s.n += int64(n); err == nil && s.flush {
		err = s.c.Flush()
	}
	return n, err
}

// logs streams output; the next offset and a failure follow as trailers.
func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	id, err := parameters(r)
	q := r.URL.Query()
	from, ferr := strconv.ParseInt(q.Get("from"), 10, 64)
	if err == nil && (ferr != nil || from < 0) {
		err = fault.New(fault.BadRequest, "from must be a byte offset")
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
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Trailer", wire.TrailerNext+", "+wire.TrailerFault)
	out := steadyOf(w, q.Get("follow") == "true")
	if out.flush { // the client learns at once that it was heard
		w.WriteHeader(http.StatusOK)
		_ = out.c.Flush()
	}
	next, err := s.driver.Logs(r.Context(), id, q.Get("ref"), from, out.flush, out)
	w.Header().Set(wire.TrailerNext, strconv.FormatInt(next, 10))
	if err != nil {
		if e, merr := json.Marshal(providers.ScrubFault(fault.From(err), nil)); merr == nil {
			w.Header().Set(wire.TrailerFault, string(e))
		}
	}
}

// file streams an exported file, from the start of the range on. It sends
// exactly the length that the export answered, or breaks off: a client never
// takes a shorter or a longer stream for the file.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	id, err := parameters(r)
	var f events.File
	if err == nil {
		f, err = s.exported(id, r.PathValue("file"))
	}
	var offset int64
	if err == nil {
		offset, err = rangeStart(r.Header.Get("Range"))
	}
	if err != nil {
		fail(w, err)
		return
	}
	if offset >= f.ByteLength && offset > 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", f.ByteLength))
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return
	}
	leave := s.streaming(w)
	if leave == nil {
		return
	}
	defer leave()
	in, err := s.driver.ReadFile(r.Context(), id, r.URL.Query().Get("ref"), f.ID, offset)
	if err != nil {
		fail(w, err)
		return
	}
	defer in.Close()
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(f.ByteLength-offset, 10))
	h.Set("Accept-Ranges", "bytes")
	if offset > 0 {
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", offset, f.ByteLength-1, f.ByteLength))
		w.WriteHeader(http.StatusPartialContent)
	}
	// A struct around each hides the shortcuts of io.Copy, which would choose
	// their own buffers.
	n, err := io.CopyBuffer(struct{ io.Writer }{steadyOf(w, false)}, struct{ io.Reader }{io.LimitReader(in, f.ByteLength-offset)}, make([]byte, copyBuffer))
	if err == nil && n < f.ByteLength-offset {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		var more [1]byte
		if k, _ := in.Read(more[:]); k > 0 {
			err = errors.New("the driver's stream is longer than the file")
		}
	}
	if err != nil {
		s.logger.Warn("a file was not sent whole", "environment", id, "error", err)
		panic(http.ErrAbortHandler) // the connection is cut: the client sees that it is not whole
	}
}

// exported finds what this environment exported, in its journal (R38, R87).
func (s *Server) exported(id events.EnvironmentID, file string) (events.File, error) {
	b, done, err := s.journal.book(id)
	if err != nil {
		return events.File{}, err
	}
	defer done()
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.files[file]
	if !ok { // another server on this log may have answered the export
		if err := s.journal.read(b); err != nil {
			return events.File{}, err
		}
		f, ok = b.files[file]
	}
	if ok {
		return f, nil
	}
	return events.File{}, fault.New(fault.NotFound, "environment %s has exported no such file", id)
}

// rangeStart reads "bytes=N-", the one form of range that is served.
func rangeStart(h string) (int64, error) {
	if h == "" {
		return 0, nil
	}
	s, ok := strings.CutPrefix(h, "bytes=")
	s, open := strings.CutSuffix(s, "-")
	n, err := strconv.ParseInt(s, 10, 64)
	if !ok || !open || err != nil || n < 0 {
		return 0, fault.New(fault.BadRequest, "the range must be bytes=N-")
	}
	return n, nil
}
