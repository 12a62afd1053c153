package plane

import (
	"context"

	"berth/commands"
	"berth/events/eventlog/verify"
	"berth/projections"
	"berth/projections/replay"
)

// replayLog rebuilds everything. To compare, what is served is cloned, so that
// readers and the follower go on meanwhile.
func (p *Plane) replayLog(ctx context.Context, _ *call, in commands.ReplayInput) (commands.ReplayResult, error) {
	until, err := in.Until()
	if err != nil {
		return commands.ReplayResult{}, err
	}
	if in.Verify {
		var served *projections.Views
		p.Views.Read(func(v *projections.Views) { served = v.Clone() })
		r, err := replay.Verify(ctx, p.Log, served)
		return commands.ReplayResult{Report: r, Verified: true}, err
	}
	v, err := replay.At(ctx, p.Log, p.Space, until)
	if err != nil {
		return commands.ReplayResult{}, err
	}
	return Rebuilt(v), nil
}

// Rebuilt is the result of a replay that compared nothing.
func Rebuilt(v *projections.Views) commands.ReplayResult {
	n := 0
	for range v.Records() {
		n++
	}
	c := v.Counts()
	return commands.ReplayResult{
		Report: replay.Report{Events: c.Events, Aggregates: c.Boundaries, Records: n, Mismatches: []replay.Mismatch{}, AsOf: v.Sequence(), Quarantined: v.Quarantined()},
		Items:  v.Fleet(projections.Query{Limit: commands.MaxPage}).Items,
	}
}

// verifyLog checks the chains and the signatures.
func (p *Plane) verifyLog(ctx context.Context, _ *call, in commands.VerifyInput) (verify.Report, error) {
	return verify.Log(ctx, p.Log, verify.Options{Limit: uint64(in.Limit)})
}
