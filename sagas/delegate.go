package sagas

import (
	"os"
	"path/filepath"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/internal/handoff"
	"berth/providers"
)

// handOff is the material of a delegated seat: the document, whose token is
// the lifecycle's one credential, at its start and nowhere else (H3, H6).
func (e *Engine) handOff(v events.Verb, s aggregates.Seat) (providers.Material, error) {
	if v != events.VerbStart {
		return nil, nil
	}
	if e.o.Delegation == nil {
		return nil, handoff.Refused(fault.FailedPrecondition, "the manager has no delegation profile")
	}
	seed, err := e.staged(s)
	if err != nil {
		return nil, err
	}
	defer clear(seed)
	raw, err := e.o.Delegation.For(s.Owner, events.Actor(s.Alias), s.Head.UID, handoff.Secret(seed)).Encode()
	if err != nil {
		return nil, err
	}
	return providers.Material{handoff.Purpose: raw}, nil
}

// staged reads the credential that was staged last.
func (e *Engine) staged(s aggregates.Seat) ([]byte, error) {
	c := s.Head.Ledger[len(s.Head.Ledger)-1]
	b, err := os.ReadFile(filepath.Join(e.o.MaterialDir, string(s.Head.UID), string(c.ID)))
	if err != nil {
		return nil, fault.New(fault.FailedPrecondition, "the staged credential %s of %s can't be read", c.ID, s.Alias).
			WithHint("spawn it again; `berth doctor` checks the data directory")
	}
	return b, nil
}

// dropHandOff removes the staged token of a delegated seat whose start was
// called: whatever comes of it, it is never handed over again (H6). What a
// crash leaves here goes with the lifecycle.
func (e *Engine) dropHandOff(uid events.UID, op providers.Operation) {
	if !op.Plan.Delegated || op.Verb != events.VerbStart {
		return
	}
	if err := e.clean(uid); err != nil {
		e.o.Logger.Warn("a hand-off that was given is still staged; it goes with its lifecycle", "environment", op.Environment, "error", err)
	}
}
