package connector

import (
	"os/exec"
	"slices"
	"strings"

	"berth/events"
	"berth/events/fault"
)

// State says whether a connector can be used at an instance.
type State string

// The states.
const (
	StateAvailable   State = "available"
	StateUnavailable State = "unavailable"
)

// Report is what an instance says of one connector (rules.md part 3, status).
type Report struct {
	Agent    string   `json:"agent"` // name of the connector
	State    State    `json:"state"`
	Binaries []string `json:"binaries"`         // that it needs on the host
	Reason   string   `json:"reason,omitempty"` // why it is unavailable
}

// Available is which connectors an instance offers. The zero value offers all of the table.
type Available struct {
	// Offered are the names that the operator allows; nil: all.
	Offered []string
	// Look finds a binary of the host; nil is the system's PATH.
	Look func(name string) error
}

// Check refuses names that are in no table, with bad-request.
func (a Available) Check() error {
	for _, name := range a.Offered {
		if _, err := Find(name); err != nil {
			return err
		}
	}
	return nil
}

// Reports says of every connector whether it can be used here now.
func (a Available) Reports() []Report {
	var out []Report
	for _, row := range Table {
		r := Report{Agent: row.Name, State: StateAvailable, Binaries: append([]string{}, row.Binaries...)}
		if why := a.why(row); why != "" {
			r.State, r.Reason = StateUnavailable, why
		}
		out = append(out, r)
	}
	return out
}

// Any says that at least one connector can be used: an instance without any
// leaves the class of those that spawn.
func (a Available) Any() bool {
	return slices.ContainsFunc(Table, func(r Row) bool { return a.why(r) == "" })
}

// Use is the row of a connector that can be used here; failed-precondition,
// not executed, says why it can't.
func (a Available) Use(name string) (Row, error) {
	row, err := Find(name)
	if err != nil {
		return row, err
	}
	if why := a.why(row); why != "" {
		return row, fault.New(fault.FailedPrecondition, "connector %s is not available at this instance: %s", name, why).WithOutcome(fault.NotExecuted).
			WithHint("`berth status` lists the connectors of an instance")
	}
	return row, nil
}

// why is the reason against a connector, empty if there is none.
func (a Available) why(row Row) string {
	if a.Offered != nil && !slices.Contains(a.Offered, row.Name) {
		return "its operator does not offer it"
	}
	look := a.Look
	if look == nil {
		look = func(name string) error {
			_, err := exec.LookPath(name)
			return err
		}
	}
	var gone []string
	for _, b := range row.Binaries {
		if look(b) != nil {
			gone = append(gone, b)
		}
	}
	if len(gone) > 0 {
		return events.Scrub("not found on its host: " + strings.Join(gone, ", "))
	}
	return ""
}
