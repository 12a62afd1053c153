package plane

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"berth/aggregates/transcript"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
)

// maxStaged is how many transcripts an instance keeps at a time.
const maxStaged = 64

// detailDamaged is the kind of detail of bytes that were not the ones that were
// announced.
const detailDamaged = "berth.transcript-damaged"

// claimName is the claim of one request: the same request has the same claim,
// so that the append of it is the fence of a repeat. It is no secret, since
// only its caller can use it.
func claimName(caller events.Caller, id events.CommandID) string {
	sum := sha256.Sum256([]byte(caller.String() + "." + string(id)))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// claimOn is a claim as it stands, with its first record and the last sequence.
func (p *Plane) claimOn(ctx context.Context, claim string) (s transcript.State, made events.Record, last uint64, err error) {
	rs, err := p.Log.Load(ctx, events.TranscriptBoundary(claim), 0)
	if err != nil {
		return s, made, 0, fault.From(err).WithOutcome(fault.NotExecuted)
	}
	for i, r := range rs {
		if r.Broken != nil {
			return s, made, 0, fault.New(fault.FailedPrecondition, "a record of the claim can't be read: %s", fault.From(r.Broken).Message).WithOutcome(fault.NotExecuted)
		}
		if i == 0 {
			made = r
		}
		for _, e := range r.Events {
			s = s.Apply(e)
		}
		last = r.Sequence
	}
	return s, made, last, nil
}

// transcriptReceive answers where to put a transcript, or, when it is there,
// takes it over and gives a claim. What is not the bytes that were announced is
// removed, and nothing is claimed.
func (p *Plane) transcriptReceive(ctx context.Context, c *call, in commands.TranscriptInput) (commands.TranscriptResult, error) {
	out := commands.TranscriptResult{InstanceID: p.Self.Instance}
	if p.Transfers == nil {
		return out, fault.New(fault.Unimplemented, "this manager receives no transcripts").WithOutcome(fault.NotExecuted)
	}
	fp, err := c.fingerprint(in)
	if err != nil {
		return out, err
	}
	claim := claimName(c.Caller, c.req.ID)
	b := events.TranscriptBoundary(claim)
	unlock, err := p.goalLock.lock(ctx, b)
	if err != nil {
		return out, err
	}
	defer unlock()
	if again, done, err := p.claimedBefore(ctx, claim, fp); done || err != nil {
		return again, err
	}
	now := events.MillisUTC(p.Now())
	e := events.TranscriptStaged{
		Claim: claim, SHA256: in.SHA256, Size: in.Size, Source: in.Source, SourceHost: in.SourceHost, Title: in.Title,
		Holder: c.Caller, Instance: p.Self.Instance, Expires: now.Add(transcript.ClaimFor),
	}
	if c.req.DryRun {
		return out, c.draft(b, 0, []events.Event{e})
	}
	switch there, err := p.Transfers.Has(ctx, in.SHA256); {
	case err != nil:
		return out, err
	case !there:
		out.State, out.Bucket, out.Object = commands.TranscriptUpload, p.Transfers.Name(), in.SHA256
		return out, nil
	}
	if err := p.stage(ctx, claim, in); err != nil {
		return out, err
	}
	meta := p.meta(c, c.req.ID, fp, "")
	meta.Time = now
	if _, err := p.Log.Commit(ctx, events.Commit{Boundary: b, Meta: meta, Events: []events.Event{e}}); err != nil {
		if again, done, _ := p.claimedBefore(ctx, claim, fp); done {
			return again, nil
		}
		return out, err // the file goes with the next sweep, if the claim was not made
	}
	if err := p.Transfers.Remove(ctx, in.SHA256); err != nil {
		p.Logger.Warn("a transcript that was taken over is still in the bucket; its server removes it", "error", err)
	}
	out.State, out.Claim, out.Expires, out.Fetched = commands.TranscriptStaged, claim, rfc3339(e.Expires), true
	return out, nil
}

// claimedBefore is the answer of a request that was carried out before.
func (p *Plane) claimedBefore(ctx context.Context, claim, fp string) (out commands.TranscriptResult, done bool, err error) {
	s, made, _, err := p.claimOn(ctx, claim)
	switch {
	case err != nil || !s.Made():
		return out, false, err
	case made.Meta.Fingerprint != fp:
		return out, false, fault.New(fault.Conflict, "the id was used for another transcript").WithOutcome(fault.NotExecuted).WithHint("give each request an id of its own")
	}
	return commands.TranscriptResult{State: commands.TranscriptStaged, InstanceID: s.Instance, Claim: claim, Expires: rfc3339(s.Expires)}, true, nil
}

// stage takes a transcript out of the bucket into a file of the claim's name,
// and checks its length and digest on the way.
func (p *Plane) stage(ctx context.Context, claim string, in commands.TranscriptInput) error {
	if err := durable.MakeDir(p.TranscriptsDir); err != nil {
		return notStaged(err)
	}
	kept, err := os.ReadDir(p.TranscriptsDir)
	if err != nil {
		return notStaged(err)
	}
	if len(kept) >= maxStaged {
		return fault.New(fault.ResourceExhausted, "this instance keeps %d transcripts, which is the most", len(kept)).
			WithOutcome(fault.NotExecuted).WithHint("they go when their claims expire or their seats retire")
	}
	errDamaged := errors.New("the bytes are not the ones that were announced")
	h, n := sha256.New(), counter(0)
	err = durable.Replace(filepath.Join(p.TranscriptsDir, claim), 0o600, func(w io.Writer) error {
		if err := p.Transfers.Fetch(ctx, in.SHA256, in.Size, io.MultiWriter(w, h, &n)); err != nil {
			return err
		}
		if int64(n) != in.Size || hex.EncodeToString(h.Sum(nil)) != in.SHA256 {
			return errDamaged
		}
		return nil
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errDamaged):
		removed := "true"
		if err := p.Transfers.Remove(ctx, in.SHA256); err != nil {
			removed = "false"
		}
		return fault.New(fault.FailedPrecondition, "what was put into the bucket is not the transcript that was announced: another length or digest").
			WithOutcome(fault.NotExecuted).WithDetail(detailDamaged, "removed", removed).WithHint("send it again")
	}
	return notStaged(err)
}

func notStaged(err error) error {
	e := fault.From(err)
	if e.Code == fault.Internal || e.Code == "" {
		e = fault.New(fault.Unavailable, "the transcript can't be kept: %s", events.Scrub(err.Error()))
	}
	return e.WithOutcome(fault.NotExecuted)
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

// resumable is the transcript of a spawn's claim, if the spawn could use it up
// now; nil if it resumes none.
func (p *Plane) resumable(ctx context.Context, c *call, b events.Boundary, in commands.SpawnInput, now time.Time) (*events.Resume, error) {
	if in.Resume == "" {
		return nil, nil
	}
	s, _, _, err := p.claimOn(ctx, in.Resume)
	if err != nil {
		return nil, err
	}
	if _, err := s.Consume(p.useOf(c, b, in, now)); err != nil {
		return nil, err
	}
	entry, err := p.Providers.Get(in.ProviderName())
	if err != nil {
		return nil, err
	}
	return s.Plan(), entry.TakesTranscript(s.Size)
}

func (p *Plane) useOf(c *call, b events.Boundary, in commands.SpawnInput, now time.Time) transcript.Use {
	return transcript.Use{Goal: b, Caller: c.Caller, At: p.Self.Instance, Source: in.ResumeSource, Now: now}
}

// consume uses the claim of a spawn up, last of all before the goal is
// accepted: a crash between leaves it to the same goal id, and to no other.
func (p *Plane) consume(ctx context.Context, c *call, b events.Boundary, fp string, in commands.SpawnInput, now time.Time) error {
	if in.Resume == "" {
		return nil
	}
	last := error(fault.New(fault.Conflict, "the claim kept moving").WithOutcome(fault.NotExecuted))
	meta := p.meta(c, c.req.ID, fp, "")
	for range maxRounds {
		s, _, seq, err := p.claimOn(ctx, in.Resume)
		if err != nil {
			return keepUnknown(last, err)
		}
		es, err := s.Consume(p.useOf(c, b, in, now))
		if err != nil || len(es) == 0 {
			if err != nil {
				return keepUnknown(last, err)
			}
			return nil // this goal has it
		}
		at := events.TranscriptBoundary(in.Resume)
		if c.req.DryRun {
			return c.draft(at, seq, es)
		}
		if _, err = p.Log.Commit(ctx, events.Commit{Boundary: at, Expect: seq, Meta: meta, Events: es}); err == nil {
			return nil
		}
		if e := fault.From(err); e.Code != fault.Conflict && e.Outcome != fault.Unknown {
			return keepUnknown(last, err)
		}
		last = keepUnknown(last, err) // decided again: the claim tells whether it was stored
	}
	return last
}
