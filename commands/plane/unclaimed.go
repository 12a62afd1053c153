package plane

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"berth/aggregates"
	"berth/aggregates/goal"
	"berth/aggregates/transcript"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

// sweepEvery is how often transcripts are looked through.
const sweepEvery = time.Minute

// Transcripts expires claims that nobody used, and removes the transcripts
// that no life needs any more, until ctx ends.
func (p *Plane) Transcripts(ctx context.Context) error {
	for {
		if err := p.SweepTranscripts(ctx); err != nil && ctx.Err() == nil {
			p.Logger.Warn("the transcripts could not be looked through", "error", events.Scrub(err.Error()))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(sweepEvery):
		}
	}
}

// SweepTranscripts looks through the transcripts once.
func (p *Plane) SweepTranscripts(ctx context.Context) error {
	if p.Transfers == nil {
		return nil
	}
	files, err := os.ReadDir(p.TranscriptsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var all error
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") {
			continue // it is being written
		}
		needed, err := p.needed(ctx, f)
		if err == nil && !needed {
			err = os.Remove(filepath.Join(p.TranscriptsDir, f.Name()))
		}
		all = errors.Join(all, err)
	}
	return all
}

// needed says whether a staged transcript may still be read. What can't be
// decided now is needed.
func (p *Plane) needed(ctx context.Context, f fs.DirEntry) (bool, error) {
	s, _, seq, err := p.claimOn(ctx, f.Name())
	if err != nil {
		return true, err
	}
	now := p.Now()
	switch {
	case !s.Made():
		// It is being staged, or the claim of it was never made.
		info, err := f.Info()
		return err != nil || now.Sub(info.ModTime()) < transcript.ClaimFor, err
	case s.Goal != "":
		return p.lives(ctx, s)
	case s.Expired:
		return false, nil
	}
	es := s.Expire(now)
	if len(es) == 0 {
		return true, nil
	}
	_, err = p.Log.Commit(ctx, events.Commit{Boundary: events.TranscriptBoundary(s.Claim), Expect: seq, Meta: p.meta(&call{Address: commands.Address{Caller: s.Holder}}, "", "", ""), Events: es})
	if fault.CodeOf(err) == fault.Conflict {
		return true, nil // somebody used it in this moment
	}
	return err != nil, err
}

// lives says whether the life that a transcript was used for goes on, or may
// still begin.
func (p *Plane) lives(ctx context.Context, s transcript.State) (bool, error) {
	g, seq, err := p.Shelf.Goal(ctx, s.Goal)
	switch {
	case err != nil:
		return true, err
	case g.State == goal.None:
		return p.Now().Before(s.Expires.Add(transcript.ClaimFor)), nil // accepted later, or never
	case !g.State.Terminal():
		return true, nil
	}
	if err := p.Views.WaitFor(ctx, seq); err != nil {
		return true, err
	}
	held := false
	p.Views.Read(func(v *projections.Views) {
		v.EachSeat(func(seat aggregates.Seat) bool {
			r := seat.Environment.Plan.Resume
			held = held || seat.Quarantine != nil || seat.Slot.Held() && r != nil && r.Claim == s.Claim
			return !held
		})
	})
	return held, nil
}
