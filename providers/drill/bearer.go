package drill

import "berth/events"

// ExposeBearer: a simulated guest reaches whatever there is; a source that can't
// be reached is played by a rule on provision.
func (d *Driver) ExposeBearer(events.Plan, events.BearerSource) error { return nil }
