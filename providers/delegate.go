package providers

import (
	"context"

	"github.com/nats-io/nkeys"

	"berth/events"
	"berth/events/fault"
	"berth/internal/handoff"
)

// Delegator is implemented by drivers that can begin a delegated seat: they
// stage the material handoff.Purpose as one file of mode 0600 that the seat
// may remove, name it in handoff.EnvFile, and name the writer of the start in
// handoff.EnvInstance (H7). Other drivers can't hide a hand-off from anybody
// but the seat.
type Delegator interface {
	// TakesHandoff says why it can't here after all; nil if it can. A driver
	// whose provider is elsewhere asks there, within ctx: a failure that may be
	// retried says only that there was no answer.
	TakesHandoff(ctx context.Context) error
}

// Delegable refuses, with unimplemented and before any effect, a provider that
// does not begin delegated seats.
func (e Entry) Delegable(ctx context.Context) error {
	if d, ok := Raw(e.Driver).(Delegator); ok {
		return d.TakesHandoff(ctx)
	}
	return notDelegable(e.Name)
}

func notDelegable(name string) error {
	return handoff.Refused(fault.Unimplemented, "provider "+name+" does not begin delegated seats")
}

// checkHandoff refuses the material of a delegated seat before the driver sees
// it: anything but the one document at the start, one that no child would
// accept, a token that is no agent's own credential, and a driver that does not
// begin delegated seats (H3, H6). No error repeats any of it.
func checkHandoff(d Driver, op Operation) error {
	bad := func(why string) error {
		return fault.New(fault.BadRequest, "the delegated launch of environment %s is refused: %s", op.Environment, why)
	}
	raw, ok := op.Material[handoff.Purpose]
	if !ok || len(op.Material) != 1 || op.Verb != events.VerbStart {
		return bad("its material is not the one hand-off of its start")
	}
	doc, err := handoff.Parse(raw)
	if err != nil {
		return err
	}
	kp, err := nkeys.FromSeed([]byte(doc.Token.Reveal()))
	if err != nil {
		return bad("its token is not the agent's own credential")
	}
	defer kp.Wipe()
	if public, err := kp.PublicKey(); err != nil || !nkeys.IsValidPublicUserKey(public) {
		return bad("its token is not the agent's own credential")
	}
	if _, ok := Raw(d).(Delegator); !ok {
		return notDelegable(d.Name())
	}
	return nil // whether it can here was asked before the launch; a provider elsewhere refuses by itself
}
