// Package until reads until a context ends: a copy of what is long, which nobody
// waits for any more, ends with the next piece.
package until

import (
	"context"
	"io"
)

// Reader reads r until ctx ends, and then fails with the context's error.
func Reader(ctx context.Context, r io.Reader) io.Reader { return reader{ctx, r} }

type reader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
