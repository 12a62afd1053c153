package providertest

import (
	"github.com/nats-io/nkeys"

	"berth/events"
	"berth/providers"
)

// Launch is the material of a launch of op's environment and plan, with a
// credential that was made for it and nothing else. source may be nil.
func Launch(op providers.Operation, source *events.BearerSource) (providers.Material, error) {
	kp, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	public, err := kp.PublicKey()
	if err != nil {
		return nil, err
	}
	seed, err := kp.Seed()
	if err != nil {
		return nil, err
	}
	return providers.Launch(op.Plan, events.LaunchRequest{
		Environment: op.Environment, UID: "abcdefghijklmnopqrstuvwxyz", Generation: 1,
		Credential:     events.CredentialDescriptor{ID: "trial", Holder: public},
		Authentication: events.LaunchAuthentication{BearerSource: source},
	}, seed)
}
