package hosted

import "berth/events"

// TakesConnector: whether the provider there runs it, its preflight says
// before anything is reserved; its sign comes with the facts.
func (d *Driver) TakesConnector(events.Connector) error { return nil }
