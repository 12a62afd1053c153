package berth

import (
	"context"
	"sync"

	"berth/aggregates/instance"
	"berth/events"
	"berth/events/eventlog"
	"berth/events/eventlog/checkpoint"
	"berth/events/eventlog/verify"
	"berth/events/fault"
)

// chain keeps what tells the log of a directory from a lost one: the synced
// checkpoint, and the signed chain of its records. A manager's and a served
// provider's are kept by the same.
type chain struct {
	dir  *DataDir
	log  checkpoint.Log
	self events.InstanceID // in whose name it is signed

	remembered checkpoint.Checkpoint
	known      bool                   // there is a checkpoint
	lost       *checkpoint.Checkpoint // what was remembered, where its loss is accepted

	mu      sync.Mutex
	tracker checkpoint.Tracker
	written uint64 // sequence of the checkpoint
	signed  uint64 // through which sequence, as far as it was followed
}

// recall reads what a directory remembers of its log. A checkpoint that can't
// be read is a loss like any other (decision 6): refused, unless an operator
// accepts it. One of a newer program is refused always.
func recall(d *DataDir, accepted bool) (*chain, error) {
	c := &chain{dir: d, self: d.Identity.Instance}
	var err error
	c.remembered, c.known, err = checkpoint.Read(d.Path)
	if err != nil && (!accepted || fault.ExitOf(err) != fault.ExitLogLost) {
		return nil, err
	}
	if err != nil {
		c.lost = &checkpoint.Checkpoint{} // nobody knows what it was
	}
	return c, nil
}

// fresh is whether nothing was remembered: the log may be made.
func (c *chain) fresh() bool { return !c.known && c.lost == nil }

// begin compares the log with what is remembered of it, and takes up the chain
// at that place: a log that is missing, shorter or another one is never read as
// an empty world (decision 6). The first checkpoint is written at once: from
// then on a missing log is a loss.
func (c *chain) begin(ctx context.Context, log checkpoint.Log, accepted bool) error {
	c.log = log
	switch {
	case c.lost != nil:
		return nil
	case !c.known:
		return checkpoint.Write(c.dir.Path, c.tracker.Of(log))
	}
	lost := checkpoint.Verify(ctx, c.remembered, log)
	switch {
	case lost == nil:
		r := c.remembered
		c.tracker = checkpoint.Tracker{Sequence: r.Sequence, Record: r.Record, Chain: r.Chain}
		c.written = r.Sequence
		return nil
	case !accepted || fault.ExitOf(lost) != fault.ExitLogLost:
		return lost
	}
	c.lost = &c.remembered
	return nil
}

// admitLoss records that an operator goes on with a log that is not the one
// that its directory remembers, and why: once, where it was accepted.
func (c *chain) admitLoss(ctx context.Context, space events.Space, meta events.Meta, reason string) error {
	if c.lost == nil {
		return nil
	}
	tip, err := c.log.Tip(ctx)
	if err != nil {
		return err
	}
	b := events.SpaceBoundary(space)
	last, err := lastOf(ctx, c.log, b)
	if err != nil {
		return err
	}
	_, err = c.log.Commit(ctx, events.Commit{Boundary: b, Expect: last, Meta: meta, Events: []events.Event{events.HistoryLossAccepted{
		By: meta.Caller, Reason: reason, Remembered: c.lost.Sequence, Found: tip,
	}}})
	return err
}

// lastOf is the sequence of a boundary's last record; 0 without one.
func lastOf(ctx context.Context, log eventlog.Log, b events.Boundary) (uint64, error) {
	rs, err := log.Load(ctx, b, 0)
	if err != nil || len(rs) == 0 {
		return 0, err
	}
	return rs[len(rs)-1].Sequence, nil
}

// at is the sequence up to which the chain is followed.
func (c *chain) at() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tracker.Sequence
}

// add takes the next record of the log.
func (c *chain) add(r events.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.tracker.Add(r); err != nil {
		return err
	}
	for _, e := range r.Events {
		if s, ok := e.(events.ChainSigned); ok && r.Boundary == events.InstanceBoundary(c.self) {
			c.signed = s.Through
		}
	}
	return nil
}

// catchUp follows the chain through the tip, where nothing else follows it: at
// the end, so that the last records are remembered, too.
func (c *chain) catchUp(ctx context.Context) error { return c.log.Scan(ctx, c.at(), c.add) }

// write writes the checkpoint if the chain moved. Only one goroutine writes.
func (c *chain) write() error {
	c.mu.Lock()
	at, moved := c.tracker.Of(c.log), c.tracker.Sequence > c.written
	c.mu.Unlock()
	if !moved {
		return nil
	}
	if err := checkpoint.Write(c.dir.Path, at); err != nil {
		return err
	}
	c.written = at.Sequence
	return nil
}

// sign is the signed chain of everything that was followed, if it moved. It may
// be asked again about the same, where its record lost a race.
func (c *chain) sign(instance.State) ([]events.Event, error) {
	c.mu.Lock()
	through, hash, signed := c.tracker.Sequence, c.tracker.Chain, c.signed
	c.mu.Unlock()
	if through <= signed+1 { // the last signature is itself a record
		return nil, nil
	}
	e, err := verify.Sign(c.dir.Key, c.self, through, hash)
	if err != nil {
		return nil, err
	}
	return []events.Event{e}, nil
}

// end is the signed chain and the end of an epoch.
func (c *chain) end(epoch uint64) func(instance.State) ([]events.Event, error) {
	return func(i instance.State) ([]events.Event, error) {
		signed, err := c.sign(i)
		if err != nil {
			return nil, err
		}
		end, err := i.Stop(epoch)
		return append(signed, end...), err
	}
}
