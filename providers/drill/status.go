package drill

import (
	"slices"
	"strings"
	"time"

	"berth/events"
)

// Status is what the provider really holds and every call that it received
// (the last MaxCalls): the truth beside which a person can lay the manager's
// belief. Its JSON shape is fixed.
type Status struct {
	Environments []EnvironmentStatus `json:"environments"`
	Calls        []CallRecord        `json:"calls"`
	// Tombstones are ids that are held no more: destroyed, vanished, or only
	// fenced.
	Tombstones []EnvironmentStatus `json:"tombstones"`
}

// EnvironmentStatus is one environment. State is that of the contract, or
// vanished or fenced for a tombstone.
type EnvironmentStatus struct {
	ID          events.EnvironmentID `json:"id"`
	Alias       events.Alias         `json:"alias"`
	State       string               `json:"state"`
	Incarnation int                  `json:"incarnation"`
	ExpiresAt   *time.Time           `json:"expiresAt,omitempty"`
	Operations  []OperationStatus    `json:"operations"`
}

// OperationStatus is one operation id as the provider knows it: pending,
// landed, refused or excluded.
type OperationStatus struct {
	ID    events.OperationID `json:"id"`
	Verb  Verb               `json:"verb"`
	State string             `json:"state"`
}

// CallRecord is one call. Answered says whether the provider has sent an
// answer, not whether anybody heard it.
type CallRecord struct {
	At          time.Time            `json:"at"`
	Verb        Verb                 `json:"verb"`
	Operation   events.OperationID   `json:"operationId"`
	Environment events.EnvironmentID `json:"environment"`
	Alias       events.Alias         `json:"alias"`
	Fault       Fault                `json:"fault"`
	Answered    bool                 `json:"answered"`
	AnswerAt    *time.Time           `json:"answerAt,omitempty"` // of an answer that takes its time
}

// record remembers the call, and forgets old ones a thousand at a time.
func (m *Machine) record(now time.Time, c Call, alias events.Alias, a Answer) {
	r := CallRecord{At: events.MillisUTC(now), Verb: c.Verb, Operation: c.Operation, Environment: c.Environment, Alias: alias,
		Fault: a.Fault, Answered: a.Delivery == Answered && a.After == 0}
	if a.After > 0 {
		at := events.MillisUTC(now.Add(a.After))
		r.AnswerAt = &at
	}
	m.s.Calls = append(m.s.Calls, r)
	if len(m.s.Calls) >= MaxCalls+1000 {
		m.s.Calls = slices.Clone(m.s.Calls[len(m.s.Calls)-MaxCalls:])
	}
}

// Status is the truth at now.
func (m *Machine) Status(now time.Time) Status {
	m.Advance(now)
	s := Status{Environments: []EnvironmentStatus{}, Calls: []CallRecord{}, Tombstones: []EnvironmentStatus{}}
	for _, e := range m.s.Envs {
		if e.held() {
			s.Environments = append(s.Environments, e.status())
		} else {
			s.Tombstones = append(s.Tombstones, e.status())
		}
	}
	byID := func(a, b EnvironmentStatus) int { return strings.Compare(string(a.ID), string(b.ID)) }
	slices.SortFunc(s.Environments, byID)
	slices.SortFunc(s.Tombstones, byID)
	for _, c := range m.s.Calls[max(0, len(m.s.Calls)-MaxCalls):] {
		if c.AnswerAt != nil && !now.Before(*c.AnswerAt) {
			c.Answered = true
		}
		s.Calls = append(s.Calls, c)
	}
	return s
}

func (e *env) status() EnvironmentStatus {
	s := EnvironmentStatus{ID: e.ID, Alias: e.Alias, State: string(e.State), Incarnation: e.Incarnation,
		ExpiresAt: copyOf(e.Expires), Operations: []OperationStatus{}}
	switch {
	case e.Vanished:
		s.State = "vanished"
	case e.State == events.StateAbsent:
		s.State = "destroyed"
	case e.State == "":
		s.State = "fenced"
	}
	for _, o := range e.Ops {
		s.Operations = append(s.Operations, OperationStatus{ID: o.ID, Verb: o.Verb, State: string(o.Phase)})
	}
	return s
}

// Holds says whether the provider holds an environment, as far as it has
// advanced: the truth for whoever checks a manager's belief while it runs.
func (m *Machine) Holds(id events.EnvironmentID) bool {
	e := m.s.Envs[id]
	return e != nil && e.held()
}
