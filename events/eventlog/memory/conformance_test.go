package memory_test

import (
	"testing"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/eventlog/logtest"
	"berth/events/eventlog/memory"
)

func TestConformance(t *testing.T) {
	logtest.Run(t, func(*testing.T) logtest.Subject {
		l := memory.New()
		return logtest.Subject{
			Log:       l,
			AppendRaw: func(b events.Boundary, body []byte) error { l.AppendRaw(b, body); return nil },
			Refuse:    func() { l.SetFull(true) },
			Reopen:    func() eventlog.Log { return l },
		}
	})
}
