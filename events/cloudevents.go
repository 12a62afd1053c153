package events

import (
	"encoding/json"
	"strconv"

	"berth/events/fault"
)

// cloudEvent is one event in the structured mode of CloudEvents 1.0. The names
// of extensions are lower case and their values are strings, as that
// specification wants them.
type cloudEvent struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"`
	Type        string `json:"type"`
	Source      string `json:"source"`
	Subject     string `json:"subject"`
	Time        string `json:"time,omitempty"`
	ContentType string `json:"datacontenttype"`

	Sequence    string `json:"sequence"` // of the commit, in the stream
	Index       string `json:"index"`    // of the event, in the commit
	Owner       string `json:"owner,omitempty"`
	Actor       string `json:"actor,omitempty"`
	UID         string `json:"lifecycleuid,omitempty"`
	Instance    string `json:"instance,omitempty"`
	Epoch       string `json:"epoch,omitempty"`
	Command     string `json:"command,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Operation   string `json:"operation,omitempty"`
	Trace       string `json:"traceparent,omitempty"`
	Batch       string `json:"batch,omitempty"`
	Hash        string `json:"hash"`

	Data json.RawMessage `json:"data,omitempty"`
}

// Types of the two things a reader sees in a log that are no event.
const (
	CloudTypeBroken = "berth.log.record-broken"
	CloudTypeTorn   = "berth.log.record-torn"
)

// CloudEvents renders a record, one object per event. A record that can't be
// read, or that is left of a torn atomic publish, is one object of its own
// type, so that nothing of the log is silently left out.
func CloudEvents(r Record, space Space) []json.RawMessage {
	base := cloudEvent{
		SpecVersion: "1.0", Source: "/berth/" + string(space), Subject: string(r.Boundary), ContentType: "application/json",
		Sequence: strconv.FormatUint(r.Sequence, 10), Hash: r.Hash.String(),
		Owner: string(r.Meta.Caller.Owner), Actor: string(r.Meta.Caller.Actor), UID: string(r.Meta.Caller.UID),
		Instance: string(r.Meta.Writer.Instance), Command: string(r.Meta.Command), Fingerprint: r.Meta.Fingerprint,
		Operation: string(r.Meta.Operation), Trace: r.Meta.Trace,
	}
	if !r.Meta.Time.IsZero() {
		base.Time = r.Meta.Time.UTC().Format(timeLayout)
	}
	if r.Meta.Writer.Epoch > 0 {
		base.Epoch = strconv.FormatUint(r.Meta.Writer.Epoch, 10)
	}
	if r.Batch != nil {
		base.Batch = r.Batch.ID
	}
	if r.Broken != nil || r.Torn {
		return []json.RawMessage{strange(r, base)}
	}
	out := make([]json.RawMessage, 0, len(r.Events))
	for i, e := range r.Events {
		c := base
		c.ID, c.Index = string(r.Meta.ID.At(i)), strconv.Itoa(i)
		typ, err := VersionedType(e)
		if err == nil {
			c.Type = "berth." + typ
			c.Data, err = json.Marshal(e)
		}
		if err != nil {
			r.Broken = fault.From(err)
			c = base
			out = append(out, strange(r, c))
			continue
		}
		out = append(out, render(c))
	}
	return out
}

func strange(r Record, c cloudEvent) json.RawMessage {
	c.ID, c.Index, c.Type = "record-"+c.Sequence, "0", CloudTypeTorn
	if r.Broken != nil {
		c.Type = CloudTypeBroken
		c.Data, _ = json.Marshal(fault.From(r.Broken)) // plain strings can always be written
	}
	return render(c)
}

// render can't fail: all of c is strings, and data was made by Marshal.
func render(c cloudEvent) json.RawMessage {
	b, err := json.Marshal(c)
	if err != nil {
		panic("events: rendering a CloudEvent: " + err.Error())
	}
	return b
}
