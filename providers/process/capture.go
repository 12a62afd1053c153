//go:build linux

package process

import (
	"context"
	"io"

	"berth/events"
	"berth/internal/tree"
	"berth/providers/kept"
	"berth/providers/process/custodian"
	"berth/providers/process/seatdir"
	"berth/providers/seat"
)

// checkpoint captures the home of the seat, frozen for that time: a cold
// capture (decision 17). Memory is not in it.
func (d *Driver) checkpoint(ctx context.Context, c *seat.Call, id string) (events.Facts, error) {
	f, err := c.Facts(ctx)
	if err != nil {
		return f, err
	}
	release := func() {}
	if f.State == events.StateRunning {
		who, err := seat.ReadIdent(c.Dir)
		if err != nil {
			return f, err
		}
		if release, err = custodian.Hold(ctx, c.Dir, who.Custodian); err != nil {
			return f, err
		}
	}
	defer release()
	at := d.Now()
	n, sum, err := kept.Write(c.Captured(id), kept.MaxCapture, func(w io.Writer) error {
		return tree.Pack(ctx, w, c.Dir.File(seatdir.DirHome), c.J.IDBase)
	})
	if err != nil {
		return f, err
	}
	f.Checkpoint = &events.Checkpoint{ID: id, Kind: "cold", ByteLength: n, SHA256: sum, CapturedAt: at}
	return f, c.Dir.WriteJSON(seatdir.ManifestFile(id), seatdir.Kept{Operation: c.Op.ID, Checkpoint: f.Checkpoint})
}
