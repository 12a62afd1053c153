package hosted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers/hosted/wire"
)

func environmentPath(pattern string, id events.EnvironmentID, file string, q url.Values) string {
	p := strings.NewReplacer("{environment}", url.PathEscape(string(id)), "{file}", url.PathEscape(file)).Replace(pattern)
	return p + "?" + q.Encode()
}

// open begins a stream; ctx bounds all of it.
func (l *link) open(ctx context.Context, path, from string) (*http.Response, *fault.Error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base+path, nil)
	if err != nil {
		return nil, fault.New(fault.BadRequest, "provider %s: the request can't be made", l.name)
	}
	if from != "" {
		req.Header.Set("Range", from)
	}
	return l.send(ctx, l.streams, req)
}

// ReadFile streams an exported file from offset. A stream that breaks off ends
// with an error; the caller takes it up again at its offset (R36, R37).
func (d *Driver) ReadFile(ctx context.Context, id events.EnvironmentID, ref, file string, offset int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, fault.New(fault.BadRequest, "offset %d is negative", offset)
	}
	from := ""
	if offset > 0 {
		from = fmt.Sprintf("bytes=%d-", offset)
	}
	ctx, cancel := context.WithCancel(ctx)
	res, e := d.link.open(ctx, environmentPath(wire.PathFile, id, file, url.Values{"ref": {ref}}), from)
	if e != nil {
		cancel()
		return nil, e
	}
	if err := d.link.ranged(ctx, res, offset); err != nil {
		res.Body.Close()
		cancel()
		if errors.Is(err, io.EOF) {
			return io.NopCloser(strings.NewReader("")), nil
		}
		return nil, err
	}
	return d.link.body(ctx, cancel, res), nil
}

// ranged checks that the stream is the one that was asked for; io.EOF says
// that the offset is the end of the file.
func (l *link) ranged(ctx context.Context, res *http.Response, offset int64) error {
	got := res.Header.Get("Content-Range")
	switch {
	case offset == 0 && res.StatusCode == http.StatusOK:
		return nil
	case offset > 0 && res.StatusCode == http.StatusPartialContent:
		if !strings.HasPrefix(got, fmt.Sprintf("bytes %d-", offset)) {
			return l.broken("is another part of the file than the one that was asked for")
		}
		return nil
	case offset > 0 && res.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		if got == fmt.Sprintf("bytes */%d", offset) {
			return io.EOF
		}
		return fault.New(fault.BadRequest, "offset %d is outside the file", offset)
	case res.StatusCode < 300:
		return l.broken("is not the part of the file that was asked for")
	}
	return l.failed(ctx, res)
}

// body is a stream that ends with an error when nothing moves for too long.
func (l *link) body(ctx context.Context, cancel context.CancelFunc, res *http.Response) *body {
	return &body{l: l, ctx: ctx, cancel: cancel, res: res, stall: time.AfterFunc(wire.StallAfter, cancel)}
}

type body struct {
	l      *link
	ctx    context.Context
	cancel context.CancelFunc
	res    *http.Response
	stall  *time.Timer
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.res.Body.Read(p)
	if n > 0 {
		b.stall.Reset(wire.StallAfter)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.l.lost(b.ctx, err)
	}
	return n, err
}

// Close ends the stream, wherever it is.
func (b *body) Close() error {
	b.stall.Stop()
	b.cancel()
	return b.res.Body.Close()
}

// Logs writes output from an offset; the provider says the next one at the
// end. If the stream breaks off before, it is what was written that counts.
func (d *Driver) Logs(ctx context.Context, id events.EnvironmentID, ref string, from int64, follow bool, w io.Writer) (int64, error) {
	q := url.Values{"ref": {ref}, "from": {strconv.FormatInt(from, 10)}, "follow": {strconv.FormatBool(follow)}}
	if from < 0 {
		return from, fault.New(fault.BadRequest, "offset %d is negative", from)
	}
	if !follow {
		var cancel context.CancelFunc
		ctx, cancel = within(ctx)
		defer cancel()
	}
	res, e := d.link.open(ctx, environmentPath(wire.PathLogs, id, "", q), "")
	if e != nil {
		return from, e
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return from, d.link.failed(ctx, res)
	}
	n, err := io.Copy(w, res.Body)
	switch {
	case err != nil && follow && ctx.Err() != nil:
		return from + n, nil // the caller has seen enough
	case err != nil:
		return from + n, d.link.lost(ctx, err)
	}
	next, err := strconv.ParseInt(res.Trailer.Get(wire.TrailerNext), 10, 64)
	if err != nil || next < from+n {
		return from + n, d.link.broken("does not say where the output goes on")
	}
	if said := res.Trailer.Get(wire.TrailerFault); said != "" {
		var f fault.Error
		if json.Unmarshal([]byte(said), &f) != nil {
			return next, d.link.broken("ended with a failure that can't be read")
		}
		return next, d.link.clean(&f)
	}
	return next, nil
}
