package aggregates

import (
	"bytes"
	"encoding/json"

	"berth/events"
	"berth/events/fault"
)

// SnapshotFormat is the version of the folded state's JSON. It is raised with
// any change of what the fold keeps: a snapshot is only a shortcut, and one of
// another format is thrown away and the boundary folded from its start.
const SnapshotFormat = 4

type snapshot struct {
	Format int  `json:"format"`
	Seat   Seat `json:"seat"`
}

// Snapshot is the seat as folded to its Sequence, so that a name with a long
// history loads as fast as a new one (blueprint 4). A quarantined seat has
// none: failed-precondition.
func Snapshot(s Seat) ([]byte, error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(snapshot{SnapshotFormat, s})
	if err != nil {
		return nil, fault.New(fault.Internal, "the state of %s can't be written as JSON: %s", s.Alias, events.Scrub(err.Error()))
	}
	return b, nil
}

// Restore reads what Snapshot wrote. Another format is refused with
// unsupported-version and what is not a snapshot with bad-request: fold from
// the start then.
func Restore(b []byte) (Seat, error) {
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return Seat{}, fault.New(fault.BadRequest, "the snapshot is not JSON: %s", events.Scrub(err.Error()))
	}
	if head.Format != SnapshotFormat {
		return Seat{}, fault.New(fault.UnsupportedVersion, "the snapshot has format %d; this program reads %d", head.Format, SnapshotFormat)
	}
	var s snapshot
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Seat{}, fault.New(fault.BadRequest, "the snapshot can't be read: %s", events.Scrub(err.Error()))
	}
	return s.Seat, nil
}
