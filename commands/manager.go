package commands

import (
	"slices"
	"strconv"

	"berth/events"
)

// DetailSeatsHeld is the kind of detail that says how many names an instance
// still holds, as held, and the first of them, as names.
const DetailSeatsHeld = "berth.seats-held"

// ShutdownInput ends an instance. Environments go on running and are taken up
// by its next start.
type ShutdownInput struct {
	// Empty asks for an end only when nothing is held any more.
	Empty bool `json:"empty,omitzero" doc:"only if the instance holds no name, but for those in except"`
	// Except are names that may be left: their end was asked for and is not
	// proved yet.
	Except []string `json:"except,omitzero" doc:"names that it may still hold" maxItems:"1000"`
}

// MaxExcept is how many names a shutdown leaves by name.
const MaxExcept = 1000

// Check implements Input.
func (in ShutdownInput) Check() error {
	switch {
	case len(in.Except) > MaxExcept:
		return bad("except", "it has %d names; at most %d are left by name", len(in.Except), MaxExcept)
	case len(in.Except) > 0 && !in.Empty:
		return bad("except", "it means something with empty only")
	}
	for i, n := range in.Except {
		if _, err := events.ParseAlias(n); err != nil {
			return named("except["+strconv.Itoa(i)+"]", err)
		}
	}
	return nil
}

// Leaves says that a name may still be held.
func (in ShutdownInput) Leaves(n events.Alias) bool { return slices.Contains(in.Except, string(n)) }

// ShutdownResult says that the instance ends: it answers no more commands.
type ShutdownResult struct {
	InstanceID events.InstanceID `json:"instanceId"`
	Epoch      uint64            `json:"epoch"`
	Held       int               `json:"held"` // names whose environments go on
}
