package projections

import (
	"strings"

	"berth/aggregates"
	"berth/events"
)

// MaxRecent is how many names that were freed keep what their last lifecycle
// was asked, so that a repeated command id gets its answer although the name
// was claimed again (decision 5). For names that were freed before those, an
// id of that time is answered with `expired`.
const MaxRecent = 1024

// recent is the command ids of the names that were freed last.
type recent struct {
	Commands map[events.Boundary]aggregates.Commands
	Order    []events.Boundary // oldest first; one name may stand twice
}

func (r *recent) put(b events.Boundary, c aggregates.Commands) {
	if r.Commands == nil {
		r.Commands = map[events.Boundary]aggregates.Commands{}
	}
	b = events.Boundary(strings.Clone(string(b)))
	r.Commands[b] = c
	r.Order = append(r.Order, b)
	if len(r.Order) > MaxRecent {
		delete(r.Commands, r.Order[0])
		r.Order = r.Order[1:]
	}
}
