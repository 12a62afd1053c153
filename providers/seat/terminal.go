//go:build linux

package seat

import (
	"context"
	"errors"
	"io"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/kept"
	"berth/providers/process/custodian"
	"berth/providers/process/identity"
	"berth/providers/process/seatdir"
)

// holder is the proved holder of a running seat. Everything that it refuses
// with was found before the first byte.
func (d *Base) holder(id events.EnvironmentID, ref string) (seatdir.Dir, events.Custody, error) {
	dir, j, err := d.known(id, ref)
	if err != nil {
		return dir, events.Custody{}, fault.From(err).WithOutcome(fault.NotExecuted)
	}
	idle := fault.New(fault.FailedPrecondition, "the seat of environment %s is not running", id).WithOutcome(fault.NotExecuted)
	if j.Phase != seatdir.PhaseStarted {
		return dir, events.Custody{}, idle
	}
	var f events.Facts
	if ended, err := exitFacts(dir, &f); ended && err == nil {
		return dir, events.Custody{}, idle
	}
	who, err := ReadIdent(dir)
	if err != nil {
		return dir, events.Custody{}, kept.Seen("terminal", id, err).WithOutcome(fault.NotExecuted)
	}
	h, err := identity.Open(who.Custodian)
	if errors.Is(err, identity.ErrGone) {
		return dir, events.Custody{}, idle
	}
	if err != nil {
		return dir, events.Custody{}, kept.Seen("terminal", id, err).WithOutcome(fault.NotExecuted)
	}
	h.Close()
	return dir, who.Custodian, nil
}

// Input implements providers.Terminal.
func (d *Base) Input(ctx context.Context, id events.EnvironmentID, ref string, data []byte) (int, error) {
	dir, who, err := d.holder(id, ref)
	if err != nil {
		return 0, err
	}
	resp, err := custodian.Ask(ctx, dir, who, custodian.Request{Ask: custodian.AskInput, Data: data})
	if err != nil {
		return resp.Delivered, kept.Seen("input", id, err)
	}
	return len(data), nil
}

// Resize implements providers.Terminal.
func (d *Base) Resize(ctx context.Context, id events.EnvironmentID, ref string, size providers.Size) error {
	dir, who, err := d.holder(id, ref)
	if err != nil {
		return err
	}
	if _, err := custodian.Ask(ctx, dir, who, custodian.Request{Ask: custodian.AskResize, Rows: size.Rows, Cols: size.Cols}); err != nil {
		return kept.Seen("resize", id, err)
	}
	return nil
}

// View implements providers.Terminal.
func (d *Base) View(ctx context.Context, id events.EnvironmentID, ref string) (providers.View, error) {
	dir, who, err := d.holder(id, ref)
	if err != nil {
		return nil, err
	}
	r, err := custodian.View(ctx, dir, who)
	if err != nil {
		return nil, kept.Seen("view", id, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = r.Close() })
	v := &view{PartStream: providers.PartStream{R: r, C: closer(func() error { stop(); return r.Close() })}}
	v.ended = func() error { return proved(id, dir, who) }
	return v, nil
}

// view is the stream of parts of a holder. Its end is the seat's only if that
// is proved: a holder that was killed ends it too.
type view struct {
	providers.PartStream
	ended func() error
}

// Next implements providers.View.
func (v *view) Next() (providers.Part, error) {
	p, err := v.PartStream.Next()
	if errors.Is(err, io.EOF) {
		err = v.ended()
	}
	return p, err
}

const (
	// proofFor bounds the wait for the proof of an exit, which the holder writes
	// when it has closed what it shows; proofEvery is how often it is looked for.
	proofFor   = 5 * time.Second
	proofEvery = 10 * time.Millisecond
)

// proved is io.EOF if the seat's exit is proved (R67), and otherwise unavailable:
// of a seat whose holder is gone nothing is known here (law 2).
func proved(id events.EnvironmentID, dir seatdir.Dir, who events.Custody) error {
	h, err := identity.Open(who)
	gone := err != nil
	if !gone {
		defer h.Close()
	}
	for until := time.Now().Add(proofFor); ; {
		var f events.Facts
		if ended, err := exitFacts(dir, &f); ended && err == nil {
			return io.EOF
		}
		if gone || time.Now().After(until) {
			return fault.New(fault.Unavailable, "the terminal of environment %s is gone, and nothing proves that its seat has ended", id)
		}
		gone = h.WaitExit(proofEvery)
	}
}

type closer func() error

// Close implements io.Closer.
func (c closer) Close() error { return c() }

var _ io.Closer = closer(nil)
