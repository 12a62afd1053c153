package sagas

import (
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/providers"
)

// Purpose is the name under which a driver gets the seat's credential (R53).
const Purpose = providers.MaterialCredential

// mint makes a credential and stages its bytes (R52, R54): the file, and the
// names that lead to it, are synced before the ledger row that names it is
// appended. One whose row never came is removed with its lifecycle. The bearer
// source is chosen here, after preflight and reservation and before anything is
// staged for the provider (R45).
func (e *Engine) mint(uid events.UID, provider string) (Minted, error) {
	kp, err := nkeys.CreateUser()
	if err != nil {
		return Minted{}, fault.New(fault.Internal, "a credential could not be made: %s", err)
	}
	defer kp.Wipe()
	public, err := kp.PublicKey()
	if err != nil {
		return Minted{}, fault.New(fault.Internal, "a credential could not be made: %s", err)
	}
	seed, err := kp.Seed()
	if err != nil {
		return Minted{}, fault.New(fault.Internal, "a credential could not be made: %s", err)
	}
	defer clear(seed)
	id := events.CredentialID(e.o.IDs.Token())
	if err := durable.Create(filepath.Join(e.o.MaterialDir, string(uid)), string(id), seed); err != nil {
		return Minted{}, stagingFault(err)
	}
	m := Minted{ID: id, Holder: public}
	if s, ok := e.o.Bearers[provider]; ok {
		m.Source = &s
	}
	return m, nil
}

func stagingFault(err error) error {
	return fault.New(fault.Unavailable, "the credential can't be staged: %s", err).WithOutcome(fault.NotExecuted)
}

// material is what a verb hands to the guest (R56): the credential, and the
// request that binds it to the environment and to the source that its ledger
// row has, whatever the manager is told since (R46, R47). A ledger row whose
// bytes are gone is refused: the guest could never prove who it is.
func (e *Engine) material(v events.Verb, s aggregates.Seat) (providers.Material, error) {
	if v != events.VerbProvision && v != events.VerbStart || len(s.Head.Ledger) == 0 {
		return nil, nil
	}
	if s.Environment.Plan.Delegated {
		return e.handOff(v, s)
	}
	c := s.Head.Ledger[len(s.Head.Ledger)-1]
	b, err := e.staged(s)
	if err != nil {
		return nil, err
	}
	m, err := providers.Launch(s.Environment.Plan, events.LaunchRequest{
		Environment: s.Environment.ID, UID: s.Head.UID, Generation: c.Generation,
		Credential:     events.CredentialDescriptor{ID: c.ID, Holder: c.Holder},
		Authentication: events.LaunchAuthentication{BearerSource: c.Source},
	}, b)
	if r := s.Environment.Plan.Resume; r != nil && err == nil {
		m[providers.MaterialTranscript], err = e.transcript(r)
	}
	return m, err
}

// transcript reads what a claim was used up for. It was verified when it was
// staged; whether it is still the same is checked with the launch.
func (e *Engine) transcript(r *events.Resume) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(e.o.TranscriptsDir, r.Claim))
	if err != nil {
		return nil, fault.New(fault.FailedPrecondition, "the staged transcript of claim %s can't be read", r.Claim).
			WithHint("send it again, and spawn anew; `berth doctor` checks the data directory")
	}
	return b, nil
}

// clean removes what this host keeps for a lifecycle.
func (e *Engine) clean(uid events.UID) error {
	if err := os.RemoveAll(filepath.Join(e.o.MaterialDir, string(uid))); err != nil {
		return fault.New(fault.Unavailable, "the material of lifecycle %s can't be removed: %s", uid, err).WithOutcome(fault.NotExecuted)
	}
	return nil
}
