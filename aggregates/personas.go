package aggregates

import (
	"time"

	"berth/events"
	"berth/events/fault"
)

// MaxPersonas is how many personas one owner's catalog has.
const MaxPersonas = 256

// Personas is one owner's catalog, folded from its boundary. It is on one
// boundary so that its limit and a list of it hold at one sequence.
type Personas struct {
	Sequence   uint64
	Rows       map[events.Alias]Persona
	Commands   Commands
	Quarantine *fault.Error
}

// Persona is the content of one, and since when it is so.
type Persona struct {
	Text     string
	Model    string
	At       time.Time
	Sequence uint64
}

// Fold takes one record in, in place.
func (p *Personas) Fold(r *events.Record) {
	p.Sequence = r.Sequence
	switch {
	case p.Quarantine != nil, r.Torn:
		return
	case r.Broken != nil:
		p.Quarantine = fault.New(fault.FailedPrecondition, "the record at sequence %d of %s can't be read: %s", r.Sequence, r.Boundary, fault.From(r.Broken).Message).
			WithHint("a newer program may read it; `berth doctor` lists what is quarantined")
		return
	}
	p.Commands = p.Commands.add(r)
	rows := make(map[events.Alias]Persona, len(p.Rows)+1) // readers may hold the old one
	for n, row := range p.Rows {
		rows[n] = row
	}
	for _, e := range r.Events {
		switch e := e.(type) {
		case events.PersonaDefined:
			rows[e.Name] = Persona{Text: e.Text, Model: e.Model, At: r.Meta.Time, Sequence: r.Sequence}
		case events.PersonaRemoved:
			delete(rows, e.Name)
		}
	}
	p.Rows = rows
}

// Find is one persona; a name that is not defined is refused with not-found.
func (p Personas) Find(name events.Alias) (Persona, error) {
	if p.Quarantine != nil {
		return Persona{}, p.Quarantine
	}
	row, ok := p.Rows[name]
	if !ok {
		return Persona{}, fault.New(fault.NotFound, "there is no persona named %s", name).WithHint("`berth persona ls` lists what there is")
	}
	return row, nil
}

// Define gives a persona its content; nothing if it has that already. A full
// catalog refuses with resource-exhausted.
func (p Personas) Define(e events.PersonaDefined) ([]events.Event, error) {
	row, err := p.Find(e.Name)
	switch {
	case p.Quarantine != nil:
		return nil, p.Quarantine
	case err == nil && row.Text == e.Text && row.Model == e.Model:
		return nil, nil
	case err != nil && len(p.Rows) >= MaxPersonas:
		return nil, fault.New(fault.ResourceExhausted, "there are %d personas, which is the most", MaxPersonas).WithHint("`berth persona rm` makes room")
	}
	return []events.Event{e}, nil
}

// Remove takes a persona out; one that is not there is refused with not-found.
func (p Personas) Remove(name events.Alias) ([]events.Event, error) {
	if _, err := p.Find(name); err != nil {
		return nil, err
	}
	return []events.Event{events.PersonaRemoved{Name: name}}, nil
}
