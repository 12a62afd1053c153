package eventlog

import (
	"berth/events"
	"berth/events/fault"
)

// CheckChain marks as broken what does not follow from the record before it:
// rs are consecutive records of one boundary, oldest first. A record that is
// already broken is left as it is.
func CheckChain(rs []events.Record) {
	for i := 1; i < len(rs); i++ {
		p, r := rs[i-1], &rs[i]
		if r.Broken == nil && (r.Previous != p.Sequence || r.Prior != p.Hash) {
			r.Broken = fault.New(fault.Internal, "record %d of %s does not follow from record %d: something was changed, removed or put in between", r.Sequence, r.Boundary, p.Sequence).
				WithOutcome(fault.NotExecuted).WithDetail("berth.record-broken", "boundary", string(r.Boundary))
		}
	}
}

// SameBatch says that r is member index of the atomic publish b.
func SameBatch(r events.Record, b *events.Batch, index int) bool {
	return r.Batch != nil && r.Batch.ID == b.ID && r.Batch.Index == index && r.Batch.Count == b.Count
}

// LastMember is the sequence of the last member of r's atomic publish: members
// are stored next to each other. What is stored is a prefix, so an atomic
// publish is whole if its last member is there.
func LastMember(r events.Record) uint64 {
	return r.Sequence + uint64(r.Batch.Count-1-r.Batch.Index)
}

// Tear makes r a member of an incomplete atomic publish (decision 3).
func Tear(r events.Record) events.Record {
	r.Torn, r.Events = true, nil
	return r
}
