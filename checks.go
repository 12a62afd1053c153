package berth

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"berth/projections"
)

const (
	checkTimeout = 2 * time.Second
	// maxLag is how many records the views may be behind the log.
	maxLag = 10_000
)

// servingCheck is the check without which those after it can't be asked: there
// is no epoch and no engine yet.
const servingCheck = "serving"

// notice is a finding that a person should see and that does not make the
// manager unready: one quarantined boundary must not take down the rest.
type notice string

func (n notice) Error() string { return string(n) }

// checks are the lines of /readyz?verbose.
func (m *Manager) checks(w *workers) []check {
	return []check{
		{"parts", w.Err},
		{"log", m.checkLog},
		{servingCheck, func() error {
			if m.isReady() {
				return nil
			}
			return fmt.Errorf("still starting: %d records folded", m.runner.Sequence())
		}},
		{"epoch", func() error {
			ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
			defer cancel()
			return m.fence.Check(ctx)
		}},
		{"disk", m.guard.Check},
		{"engine", func() error {
			if s := m.engine.Stats(); s.Failing > 0 {
				return fmt.Errorf("%d boundaries can't be recorded", s.Failing)
			}
			return nil
		}},
		{"uncertain", func() error {
			if s := m.engine.Stats(); s.Uncertain+s.Stuck > 0 {
				return notice(fmt.Sprintf("%d environments have an uncertain operation, %d of them beyond their patience: berth ls shows which", s.Uncertain, s.Stuck))
			}
			return nil
		}},
		{"quarantine", m.checkQuarantine},
	}
}

func (m *Manager) checkLog() error {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	tip, err := m.log.Tip(ctx)
	if err != nil {
		return err
	}
	if at := m.runner.Sequence(); tip > at+maxLag {
		return fmt.Errorf("the views are %d records behind", tip-at)
	}
	return nil
}

func (m *Manager) checkQuarantine() (err error) {
	m.runner.Read(func(v *projections.Views) {
		if q := v.Quarantined(); len(q) > 0 {
			err = notice(fmt.Sprintf("%d boundaries can't be read, the first is %s at sequence %d", len(q), q[0].Boundary, q[0].Sequence))
		}
	})
	return err
}

// metrics are the numbers of /metrics. None is labelled by an id.
func (m *Manager) metrics() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge := func(name, help string, f func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	gauge("berth_log_sequence", "Last sequence of the log that the views have folded.", func() float64 { return float64(m.runner.Sequence()) })
	gauge("berth_epoch", "Epoch of this instance.", func() float64 {
		if !m.isReady() {
			return 0
		}
		return float64(m.writer.Epoch)
	})
	gauge("berth_quarantined_boundaries", "Boundaries with a record that can't be read.", func() (n float64) {
		m.runner.Read(func(v *projections.Views) { n = float64(len(v.Quarantined())) })
		return n
	})
	gauge("berth_environments", "Names that are held.", func() (n float64) {
		m.runner.Read(func(v *projections.Views) { n = float64(v.Held()) })
		return n
	})
	for _, state := range []string{"seats", "goals", "open", "uncertain", "stuck", "inFlight", "queued", "failing"} {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "berth_sagas", Help: "Boundaries that the engine drives, by state.", ConstLabels: prometheus.Labels{"state": state},
		}, func() float64 { return float64(m.engineCounts()[state]) }))
	}
	for _, what := range []string{"handled", "refused", "busy", "misdirected"} {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "berth_commands_total", Help: "Requests to the command plane, by what became of them.", ConstLabels: prometheus.Labels{"result": what},
		}, func() float64 {
			if s := m.serving.Load(); s != nil {
				return float64(s.Counts()[what])
			}
			return 0
		}))
	}
	return r
}
