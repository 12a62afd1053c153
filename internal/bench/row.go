package bench

// Row is one figure. Raw is the same work by the raw server, in Unit, and
// Ratio is ours to raw as the row's name says; both are absent where there is
// nothing to compare with.
type Row struct {
	Name  string   `json:"name"`
	Value float64  `json:"value"`
	Unit  string   `json:"unit"`
	Raw   *float64 `json:"raw,omitempty"`
	Ratio *float64 `json:"ratio,omitempty"`
}

// rate is a row of which more is better: ratio is ours over raw.
func rate(name string, value float64, unit string, raw float64) Row {
	ratio := value / raw
	return Row{Name: name, Value: value, Unit: unit, Raw: &raw, Ratio: &ratio}
}
