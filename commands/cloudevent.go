package commands

import (
	"encoding/json"
	"strconv"
	"time"

	"berth/events"
	"berth/events/fault"
)

// CloudEvent is one event as `events -o json` and archives show it: structured
// CloudEvents 1.0, one event a line. Names of extensions are lower case as the
// specification wants.
type CloudEvent struct {
	SpecVersion     string             `json:"specversion"`
	ID              events.EventID     `json:"id"`
	Type            string             `json:"type"`    // berth.<aggregate>.<fact>.v<N>
	Source          string             `json:"source"`  // /berth/<space>/<instance>
	Subject         events.Boundary    `json:"subject"` // the boundary
	Time            string             `json:"time"`
	DataContentType string             `json:"datacontenttype"`
	Data            json.RawMessage    `json:"data"`
	Sequence        string             `json:"sequence"` // decimal, as that extension wants
	Index           int                `json:"index"`    // in its commit
	Epoch           uint64             `json:"epoch"`    // of the writer
	Caller          string             `json:"caller"`   // owner.actor.uid
	Command         events.CommandID   `json:"command,omitempty"`
	Operation       events.OperationID `json:"operation,omitempty"`
	TraceParent     string             `json:"traceparent,omitempty"`
	Hash            string             `json:"hash,omitempty"`
	Broken          *fault.Error       `json:"broken,omitempty"` // the record can't be read
}

// TypeBroken is the type of a record that can't be read.
const TypeBroken = "berth.record-broken"

// CloudEventsOf renders a record: one for each event, or one that says why the
// record can't be read.
func CloudEventsOf(space events.Space, r events.Record) []CloudEvent {
	base := CloudEvent{
		SpecVersion: "1.0", Source: "/berth/" + string(space) + "/" + string(r.Meta.Writer.Instance), Subject: r.Boundary,
		Time: r.Meta.Time.UTC().Format(time.RFC3339Nano), DataContentType: "application/json", Sequence: strconv.FormatUint(r.Sequence, 10),
		Epoch: r.Meta.Writer.Epoch, Caller: r.Meta.Caller.String(), Command: r.Meta.Command, Operation: r.Meta.Operation,
		TraceParent: r.Meta.Trace, Hash: r.Hash.String(), Data: json.RawMessage("{}"),
	}
	if r.Broken != nil {
		base.ID, base.Type, base.Broken = r.Meta.ID, TypeBroken, fault.From(r.Broken)
		return []CloudEvent{base}
	}
	var out []CloudEvent
	for i, e := range r.Events {
		c := base
		c.ID, c.Index = r.Meta.ID.At(i), i
		typ, err := events.VersionedType(e)
		data, jerr := json.Marshal(e)
		if err != nil || jerr != nil {
			continue // it came from the registry and from JSON
		}
		c.Type, c.Data = "berth."+typ, data
		out = append(out, c)
	}
	return out
}
