package berth

import (
	"context"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
	"berth/sagas"
)

// hooked is a log whose appends pass the hook, whoever makes them: the point
// is named by the first event, such as commit:goal.accepted:before.
type hooked struct {
	eventlog.Log
	hook sagas.Hook
}

// commits is the log as those see it who append to it.
func (m *Manager) commits() eventlog.Log {
	if m.opts.Hook == nil {
		return m.log
	}
	return hooked{m.log, m.opts.Hook}
}

// CommitPoint names the append of events to the hook, without its :before or
// :after.
func CommitPoint(es []events.Event) string {
	if len(es) == 0 {
		return "commit"
	}
	return "commit:" + es[0].EventType()
}

// Commit implements eventlog.Log.
func (h hooked) Commit(ctx context.Context, c events.Commit) (events.Record, error) {
	point := CommitPoint(c.Events)
	if err := h.hook(point + ":before"); err != nil {
		return events.Record{}, died(point)
	}
	r, err := h.Log.Commit(ctx, c)
	if err == nil && h.hook(point+":after") != nil {
		return events.Record{}, died(point)
	}
	return r, err
}

// CommitAll implements eventlog.Log.
func (h hooked) CommitAll(ctx context.Context, cs []events.Commit) ([]events.Record, error) {
	point := "commit"
	if len(cs) > 0 {
		point = CommitPoint(cs[0].Events)
	}
	if err := h.hook(point + ":before"); err != nil {
		return nil, died(point)
	}
	rs, err := h.Log.CommitAll(ctx, cs)
	if err == nil && h.hook(point+":after") != nil {
		return nil, died(point)
	}
	return rs, err
}

func died(point string) error {
	return fault.New(fault.Unavailable, "the manager died at %s", point).WithOutcome(fault.Unknown)
}
