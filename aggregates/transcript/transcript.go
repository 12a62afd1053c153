// Package transcript is the one-use claim on a transcript that a seat may
// resume (rules.md 3, transcript-receive). Only the append that uses it up is
// the fence: of two spawns that try, one loses.
package transcript

import (
	"time"

	"berth/events"
	"berth/events/fault"
)

// DetailClaim is the kind of detail of a refused claim; its fact state says how
// the claim stands.
const DetailClaim = "berth.transcript-claim"

// ClaimFor is how long a claim can be used.
const ClaimFor = 10 * time.Minute

// State is a claim as folded. The zero value is one that was never made.
type State struct {
	events.TranscriptStaged
	Goal    events.Boundary // which used it up; empty: none
	Expired bool
}

// Made says that there is such a claim.
func (s State) Made() bool { return s.Claim != "" }

// Apply folds one event. What comes after the end of a claim changes nothing.
func (s State) Apply(e events.Event) State {
	switch e := e.(type) {
	case events.TranscriptStaged:
		if !s.Made() {
			s.TranscriptStaged = e
		}
	case events.TranscriptConsumed:
		if s.Made() && !s.Expired && s.Goal == "" {
			s.Goal = e.Goal
		}
	case events.TranscriptExpired:
		if s.Made() && s.Goal == "" {
			s.Expired = true
		}
	}
	return s
}

// Use is who wants to use a claim, where, and for what.
type Use struct {
	Goal   events.Boundary
	Caller events.Caller
	At     events.InstanceID
	Source string // the session that is meant; empty: that of the claim
	Now    time.Time
}

// Consume uses the claim up for a goal. No events say that this goal has it
// already. Every refusal is not-executed.
func (s State) Consume(u Use) ([]events.Event, error) {
	refuse := func(code fault.Code, state, format string, args ...any) ([]events.Event, error) {
		return nil, fault.New(code, format, args...).WithOutcome(fault.NotExecuted).WithDetail(DetailClaim, "state", state).
			WithHint("`berth transcript send FILE` gives a new claim")
	}
	switch {
	case !s.Made():
		return refuse(fault.NotFound, "none", "there is no such claim on a transcript")
	case s.Holder != u.Caller:
		return refuse(fault.PermissionDenied, "other", "the claim was given to another caller")
	case s.Goal == u.Goal:
		return nil, nil
	case s.Goal != "":
		return refuse(fault.FailedPrecondition, "consumed", "the claim was used up before, by another spawn")
	case s.Expired || !u.Now.Before(s.Expires):
		return refuse(fault.FailedPrecondition, "expired", "the claim could be used until %s", s.Expires.UTC().Format(time.RFC3339))
	case u.Source != "" && u.Source != s.Source:
		return refuse(fault.FailedPrecondition, "source", "the claim is on a transcript of another session than %s", u.Source)
	case s.Instance != u.At:
		return refuse(fault.FailedPrecondition, "elsewhere", "the transcript is at instance %s: spawn it there, with --on", s.Instance)
	}
	return []events.Event{events.TranscriptConsumed{Goal: u.Goal}}, nil
}

// Expire ends a claim that nobody used in time; no events if it is not due.
func (s State) Expire(now time.Time) []events.Event {
	if !s.Made() || s.Goal != "" || s.Expired || now.Before(s.Expires) {
		return nil
	}
	return []events.Event{events.TranscriptExpired{Claim: s.Claim}}
}

// Plan is what a plan keeps of it.
func (s State) Plan() *events.Resume {
	return &events.Resume{Claim: s.Claim, Source: s.Source, SHA256: s.SHA256, Size: s.Size}
}
