package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"time"

	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
)

// maxFailures is how often in a row a page may fail before a stream is given up.
const maxFailures = 8

// Pages of a fleet: Ls asks page after page and calls f with each until f
// returns an error, which is returned.
func (c *Client) Ls(ctx context.Context, in commands.LsInput, f func(commands.LsResult) error, opts ...Option) error {
	for {
		page, err := Call(ctx, c, commands.Ls, in, opts...)
		if err != nil {
			return err
		}
		if err := f(page); err != nil {
			return err
		}
		if page.Next == "" {
			return nil
		}
		in.After = page.Next
	}
}

// Logs gives a seat's output from a byte offset to f, page after page. Without
// follow it ends where the output ends now; with follow when the seat ended,
// ctx ended or f returned an error. It returns the next offset.
func (c *Client) Logs(ctx context.Context, in commands.LogsInput, follow bool, f func(commands.LogsResult) error) (int64, error) {
	in.Wait = ""
	if follow {
		in.Wait = waitStep.String()
	}
	for failed := 0; ; {
		asked := time.Now()
		page, err := Call(ctx, c, commands.Logs, in)
		if err != nil {
			if failed++; !follow || failed > maxFailures || !fault.From(err).Retryable || !pause(ctx, failed) {
				return in.From, ended(ctx, err)
			}
			continue
		}
		if len(page.Data) > 0 {
			failed = 0
			if err := f(page); err != nil {
				return page.Next, err
			}
			in.From = page.Next
			continue
		}
		if page.Ended || !follow {
			return in.From, nil
		}
		if time.Since(asked) < time.Second && !pause(ctx, 1) {
			return in.From, ended(ctx, ctx.Err())
		}
	}
}

// Events gives the log from a sequence to f, event by event; follow waits for
// more until ctx ends. It returns the sequence to go on from.
func (c *Client) Events(ctx context.Context, from uint64, follow bool, f func(commands.CloudEvent) error) (uint64, error) {
	in := commands.EventsInput{From: from}
	if follow {
		in.Wait = waitStep.String()
	}
	for failed := 0; ; {
		asked := time.Now()
		page, err := Call(ctx, c, commands.Events, in)
		if err != nil {
			if failed++; !follow || failed > maxFailures || !fault.From(err).Retryable || !pause(ctx, failed) {
				return in.From, ended(ctx, err)
			}
			continue
		}
		failed = 0
		for _, e := range page.Items {
			if err := f(e); err != nil {
				return page.Next, err
			}
		}
		moved := page.Next > in.From
		in.From = page.Next
		switch {
		case !follow && page.Next > page.Tip:
			return in.From, nil
		case !moved && !follow:
			return in.From, nil
		case !moved && time.Since(asked) < time.Second && !pause(ctx, 1):
			return in.From, ended(ctx, ctx.Err())
		}
	}
}

// ended is the error of a stream: none if it was the reader who ended it.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == context.Canceled {
		return nil
	}
	return fault.From(err)
}

// Download writes the file of an export goal that succeeded to path: to a
// temporary file beside it, verified by length and digest, synced, then
// renamed. Only its owner may read it: what a checkpoint holds, a seat's secrets
// among it, is in it. A cut is resumed where it was. Whatever fails, nothing is left at
// path that was not there before (R37).
func (c *Client) Download(ctx context.Context, goal events.GoalID, path string, progress func(done, total int64)) (events.File, error) {
	var file events.File
	var refused error
	err := durable.Replace(path, 0o600, func(w io.Writer) error {
		file, refused = c.copyTo(ctx, goal, w, progress)
		return refused
	})
	switch {
	case refused != nil:
		return events.File{}, refused
	case err != nil:
		return events.File{}, unwritable(path, err)
	}
	file.Path = path
	return file, nil
}

func unwritable(path string, err error) error {
	return fault.New(fault.FailedPrecondition, "%s can't be written: %s", path, err).WithHint("name a file in a directory that you may write to")
}

func (c *Client) copyTo(ctx context.Context, goal events.GoalID, w io.Writer, progress func(done, total int64)) (events.File, error) {
	in := commands.ExportReadInput{GoalRef: commands.GoalRef{Goal: string(goal)}, Limit: commands.MaxChunk}
	h := sha256.New()
	var want events.File
	for failed := 0; ; {
		chunk, err := Call(ctx, c, commands.ExportRead, in)
		if err != nil {
			if failed++; failed > maxFailures || !fault.From(err).Retryable || !pause(ctx, failed) {
				return want, fault.From(err)
			}
			continue
		}
		failed = 0
		if want.SHA256 == "" {
			want = events.File{ByteLength: chunk.ByteLength, SHA256: chunk.SHA256}
		}
		if chunk.Offset != in.Offset || chunk.ByteLength != want.ByteLength || chunk.SHA256 != want.SHA256 || chunk.Next != in.Offset+int64(len(chunk.Data)) || (len(chunk.Data) == 0 && !chunk.EOF) {
			return want, damaged("it changed while it was read")
		}
		if _, err := w.Write(chunk.Data); err != nil {
			return want, unwritable("the file", err)
		}
		h.Write(chunk.Data)
		in.Offset = chunk.Next
		if progress != nil {
			progress(in.Offset, want.ByteLength)
		}
		if chunk.EOF {
			break
		}
	}
	if in.Offset != want.ByteLength || hex.EncodeToString(h.Sum(nil)) != want.SHA256 {
		return want, damaged("its length or digest is not that of the export")
	}
	return want, nil
}

func damaged(why string) error {
	return fault.New(fault.Internal, "the exported file was refused: %s; nothing was kept", why).WithOutcome(fault.NotExecuted).WithHint("download it again")
}
