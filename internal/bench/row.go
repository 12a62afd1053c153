package bench

import (
	"fmt"
	"math"
)

// Row is one figure. Raw is the same work by the raw server, in Unit, and
// Ratio is ours over raw; both are absent where there is nothing to compare
// with. Bar is what must be reached, such as "ratio <= 1.3", and OK whether it
// was; both are absent in rows that only inform.
type Row struct {
	Name  string   `json:"name"`
	Value float64  `json:"value"`
	Unit  string   `json:"unit"`
	Raw   *float64 `json:"raw,omitempty"`
	Ratio *float64 `json:"ratio,omitempty"`
	Bar   string   `json:"bar,omitempty"`
	OK    *bool    `json:"ok,omitempty"`
	Note  string   `json:"note,omitempty"` // the profile and the size that were measured
}

// Report is the outcome of one run.
type Report struct {
	Rows []Row `json:"rows"`
}

// beside is a row with its raw side.
func beside(name string, value float64, unit string, raw float64) Row {
	r := Row{Name: name, Value: round(value), Unit: unit, Raw: new(round(raw))}
	if raw != 0 {
		r.Ratio = new(round(value / raw))
	}
	return r
}

// alone is a row without one.
func alone(name string, value float64, unit string) Row {
	return Row{Name: name, Value: round(value), Unit: unit}
}

// atMost and atLeast set the bar on the ratio where there is one, else on the
// value.
func (r Row) atMost(bar float64) Row {
	v, what := r.judged()
	r.Bar, r.OK = fmt.Sprintf("%s <= %g", what, bar), new(v <= bar)
	return r
}

func (r Row) atLeast(bar float64) Row {
	v, what := r.judged()
	r.Bar, r.OK = fmt.Sprintf("%s >= %g", what, bar), new(v >= bar)
	return r
}

func (r Row) judged() (v float64, what string) {
	if r.Ratio != nil {
		return *r.Ratio, "ratio"
	}
	return r.Value, "value"
}

func (r Row) noted(format string, args ...any) Row {
	r.Note = fmt.Sprintf(format, args...)
	return r
}

// round keeps four significant digits: a figure of a machine has no more.
func round(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
