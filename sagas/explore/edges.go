package explore

import (
	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/head"
	"berth/aggregates/intent"
	"berth/aggregates/slot"
	"berth/aggregates/turns"
	"berth/events"
)

// Edge is one transition of one table as it was seen.
type Edge struct{ Table, From, On, To string }

func (r *rules) edge(table, from, on, to string) { r.edges[Edge{table, from, on, to}] = true }

// seen notes which edges of which tables an event took.
func (r *rules) seen(before, after aggregates.Seat, e events.Event) {
	if _, on, ok := slot.Meaning(e); ok {
		r.edge("slot", string(before.Slot.Phase), string(on), string(after.Slot.Phase))
	}
	if m, ok := head.MeaningOf(e); ok {
		if m.Head != "" {
			r.edge("head", string(before.Head.Phase), string(m.Head), string(after.Head.Phase))
		}
		if m.Gate != "" {
			r.edge("gate", string(before.Head.Gate.Phase), string(m.Gate), string(after.Head.Gate.Phase))
		}
	}
	if id, on, ok := environment.Meaning(e); ok {
		was, _ := before.Environment.Find(id)
		is, _ := after.Environment.Find(id)
		r.edge("operation", string(was.Phase), string(on), string(is.Phase))
	}
	if id, on, ok := intent.Meaning(e); ok {
		was, _ := before.Intent(id)
		is, _ := after.Intent(id)
		r.edge("intent", string(was.Phase), string(on), string(is.Phase))
	}
	if id, on, ok := turns.Meaning(e); ok {
		was, _ := before.Turns.Find(id)
		is, _ := after.Turns.Find(id)
		r.edge("turn", string(was.Phase), string(on), string(is.Phase))
	}
	was, is := before.Environment.Record, after.Environment.Record
	if on := before.Environment.RecordMeaning(e); on != "" {
		if _, listed := environment.RecordTable.Next(was, on); listed || was != is {
			r.edge("record", string(was), string(on), string(is))
		}
	} else if was != is {
		r.edge("record", string(was), e.EventType(), string(is))
	}
}
