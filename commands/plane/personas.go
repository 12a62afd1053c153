package plane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"berth/aggregates"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
)

func (p *Plane) personaDefine(ctx context.Context, c *call, in commands.PersonaInput) (commands.PersonaWritten, error) {
	e := events.PersonaDefined{Name: events.Alias(in.Name), Text: in.Text, Model: in.Model}
	return p.writePersona(ctx, c, e.Name, in, func(s aggregates.Personas) ([]events.Event, error) { return s.Define(e) })
}

func (p *Plane) personaRemove(ctx context.Context, c *call, in commands.PersonaRef) (commands.PersonaWritten, error) {
	name := events.Alias(in.Name)
	return p.writePersona(ctx, c, name, in, func(s aggregates.Personas) ([]events.Event, error) { return s.Remove(name) })
}

// writePersona makes one decision on the catalog, once for its command id
// (decision 5).
func (p *Plane) writePersona(ctx context.Context, c *call, name events.Alias, in any, decide func(aggregates.Personas) ([]events.Event, error)) (commands.PersonaWritten, error) {
	fp, err := c.fingerprint(in)
	if err != nil {
		return commands.PersonaWritten{}, err
	}
	out, b := commands.PersonaWritten{Name: name}, events.PersonaBoundary(c.owner())
	var earlier uint64 // sequence at which the id was answered
	f := func(s aggregates.Personas) ([]events.Event, error) {
		entry, done, err := s.Commands.Seen(c.req.ID, fp)
		if earlier = entry.Sequence; done || err != nil {
			return nil, err
		}
		es, err := decide(s)
		if out.Changed = len(es) > 0; err == nil && !out.Changed {
			es = []events.Event{events.CommandAnswered{Command: c.req.ID, Fingerprint: fp}} // or a repeat might change what came since
		}
		return es, err
	}
	if c.req.DryRun {
		s, err := p.Shelf.Personas(ctx, c.owner())
		if err != nil {
			return out, err
		}
		es, err := f(s)
		if out.Sequence = s.Sequence; err != nil || len(es) == 0 {
			return out, err
		}
		return out, c.draft(b, s.Sequence, es)
	}
	_, r, err := p.Shelf.DecidePersonas(ctx, c.owner(), p.meta(c, c.req.ID, fp, ""), f)
	if err == nil && earlier != 0 {
		r, err = p.recordAt(ctx, b, earlier, func(events.Record) {})
		out.Changed = err == nil && !slices.ContainsFunc(r.Events, func(e events.Event) bool { return e.EventType() == events.TypeCommandAnswered })
	}
	out.Sequence = r.Sequence
	return out, err
}

func (p *Plane) personaList(ctx context.Context, c *call, _ commands.Empty) (commands.PersonasResult, error) {
	s, err := p.Shelf.Personas(ctx, c.owner())
	out := commands.PersonasResult{Items: []commands.PersonaRow{}, AsOf: s.Sequence}
	if err != nil {
		return out, err
	}
	if s.Quarantine != nil {
		return out, s.Quarantine
	}
	for _, name := range slices.Sorted(maps.Keys(s.Rows)) {
		out.Items = append(out.Items, personaRow(name, s.Rows[name]))
	}
	return out, nil
}

func (p *Plane) personaShow(ctx context.Context, c *call, in commands.PersonaRef) (commands.PersonaResult, error) {
	name := events.Alias(in.Name)
	s, err := p.Shelf.Personas(ctx, c.owner())
	if err != nil {
		return commands.PersonaResult{}, err
	}
	row, err := s.Find(name)
	return commands.PersonaResult{PersonaRow: personaRow(name, row), Text: row.Text, AsOf: s.Sequence}, err
}

func personaRow(name events.Alias, p aggregates.Persona) commands.PersonaRow {
	sum := sha256.Sum256([]byte(p.Text))
	return commands.PersonaRow{Name: name, Model: p.Model, Bytes: len(p.Text), SHA256: hex.EncodeToString(sum[:]), DefinedAt: rfc3339(p.At)}
}

// defined is the text of a persona, if one was asked for. One that is not in
// the catalog refuses the spawn before any effect (2.6, step 1).
func (p *Plane) defined(ctx context.Context, owner events.Owner, persona string) (string, error) {
	if persona == "" {
		return "", nil
	}
	s, err := p.Shelf.Personas(ctx, owner)
	if err != nil {
		return "", err
	}
	row, err := s.Find(events.Alias(persona))
	if err != nil {
		f := fault.From(err)
		return "", fault.New(fault.FailedPrecondition, "%s", f.Message).WithOutcome(fault.NotExecuted).WithHint("%s", f.Hint)
	}
	return row.Text, nil
}
