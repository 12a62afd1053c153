package providers

import (
	"regexp"
	"strings"

	"berth/events"
	"berth/events/fault"
)

// OptionFrom is the option of a plan that names the checkpoint which an
// environment begins from, as ENVIRONMENT/CHECKPOINT: of an environment of the
// same provider on the same host, which goes on beside it. A driver that can't
// refuses it, as every option that it does not know.
const OptionFrom = "from"

// Origin is the checkpoint that an environment begins from.
type Origin struct {
	Environment events.EnvironmentID
	Checkpoint  string
}

// CheckpointName is how checkpoints are named.
var CheckpointName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// OriginOf is the origin that a plan names; nil if it names none, bad-request if
// what it names can't be one.
func OriginOf(p events.Plan) (*Origin, error) {
	value, ok := p.Options[OptionFrom]
	if !ok {
		return nil, nil
	}
	env, id, ok := strings.Cut(value, "/")
	e, err := events.ParseEnvironmentID(env)
	if !ok || err != nil || !CheckpointName.MatchString(id) {
		return nil, fault.New(fault.BadRequest, "option from=%s: an environment id, a slash and a checkpoint id", events.Scrub(value))
	}
	return &Origin{e, id}, nil
}
