package drill

import (
	"container/heap"
	"time"

	"berth/events"
)

// TakesConnector implements providers.Connector: a simulated seat shows any
// sign, at once, or when its script says so (fault unready).
func (d *Driver) TakesConnector(events.Connector) error { return nil }

// begin has a seat that is being started show its sign: now, after a delay,
// or never, as the rule of its start said.
func (m *Machine) begin(t time.Time, e *env, c Call) {
	e.Sign, e.Ready, e.ReadyDue = "", nil, nil
	if c.Sign == nil {
		return
	}
	e.Sign = c.Sign.Kind
	switch {
	case c.unready == nil:
		e.show(t)
	case *c.unready > 0:
		at := events.MillisUTC(t.Add(*c.unready))
		e.ReadyDue = &at
		heap.Push(&m.due, due{at: at, env: e.ID, ready: true})
	}
}

func (e *env) show(at time.Time) {
	e.Ready = &events.Readiness{Since: events.MillisUTC(at), Evidence: "the simulated seat showed its sign: " + string(e.Sign)}
	e.ReadyDue = nil
}

// ripen shows the sign of a seat that still runs when its time has come.
func (m *Machine) ripen(e *env, at time.Time) {
	if e.ReadyDue == nil || !e.ReadyDue.Equal(at) || !e.held() || e.State != events.StateRunning && e.State != events.StatePaused {
		return
	}
	e.show(at)
	m.changed = append(m.changed, e.ID)
}
