//go:build linux

package qemu

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/custodian"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/machine"
	"berth/providers/seat"
)

// fileFrom is the manifest of the checkpoint that an environment begins from.
const fileFrom = "restore.json"

// checkpoint keeps the machine's memory (option checkpoint=memory) or its home
// (cold, the default). The supervisor makes it and writes the manifest.
func (d *Driver) checkpoint(ctx context.Context, c *seat.Call, id string) (events.Facts, error) {
	ch, err := choices(c.J.Plan)
	if err != nil {
		return events.Facts{}, err
	}
	b, err := json.Marshal(machine.Save{Operation: c.Op.ID, ID: id, Kind: ch.checkpoint})
	if err != nil {
		return events.Facts{}, err
	}
	if err := c.Ask(ctx, custodian.Request{Ask: machine.AskSave, Data: b}); err != nil {
		return events.Facts{}, err
	}
	var k machine.Kept
	if err := c.Dir.ReadJSON(seatdir.ManifestFile(id), &k); err != nil {
		return events.Facts{}, err
	}
	f, err := c.Facts(ctx)
	f.Checkpoint = k.Checkpoint
	return f, err
}

// loadKept reads the manifest of a checkpoint of an environment of this host.
func loadKept(dir seatdir.Dir, id string) (machine.Kept, error) {
	var k machine.Kept
	err := seat.LoadKept(dir, id, &k)
	if err == nil && k.Checkpoint == nil {
		err = fault.New(fault.NotFound, "environment %s has no checkpoint %q", dir.ID, events.Scrub(id))
	}
	return k, err
}

// takeCheckpoint gives the environment a checkpoint of another one to begin
// from, as its own: the other may be destroyed, and its original runs on. What
// does not fit this machine is refused before anything boots.
func (d *Driver) takeCheckpoint(ctx context.Context, c *seat.Call, from providers.Origin, ch choice) error {
	dir := d.Seat(from.Environment)
	k, err := loadKept(dir, from.Checkpoint)
	if err != nil {
		return err
	}
	name := machine.FileHome
	if k.Checkpoint.Kind == "memory" {
		name = machine.FileState
		f, err := d.packed(ctx)
		if err != nil {
			return err
		}
		if k.Hardware == nil || k.Hardware.Digest() != hardware(f, ch).Digest() {
			return otherMachine(k.Checkpoint.ID)
		}
	}
	to := c.Dir.File(name)
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Link(dir.File(machine.StateFile(from.Checkpoint)), to); err != nil {
		return err
	}
	return c.Dir.WriteJSON(fileFrom, k)
}

// restore has a supervisor take the machine's place that begins with a
// checkpoint of it: with the memory, or with a boot and that home. What it
// starts is what was started before.
func (d *Driver) restore(ctx context.Context, c *seat.Call, from events.Checkpoint, _ io.Reader) (any, error) {
	var s machine.Start
	if err := c.Dir.ReadJSON(seatdir.FileStart, &s); err != nil {
		return nil, err
	}
	if s.Handoff {
		return nil, fault.New(fault.FailedPrecondition, "environment %s began with a hand-off, which is taken once: it can't be started again", c.Op.Environment)
	}
	k, err := loadKept(c.Dir, from.ID)
	if err != nil {
		return nil, err
	}
	if from.Kind == "memory" && (k.Hardware == nil || k.Hardware.Digest() != s.Hardware.Digest()) {
		return nil, otherMachine(from.ID)
	}
	s.Operation, s.Fingerprint, s.Replace = c.Op.ID, seatdir.Fingerprint(c.Op), true
	d.limit(c, &s)
	s.Restore = &machine.Restore{Kind: from.Kind, SHA256: from.SHA256, ByteLength: from.ByteLength, File: machine.StateFile(from.ID)}
	if s.Beside, err = d.beside(ctx, c, s.Hardware); err != nil {
		return nil, err
	}
	return s, nil
}

func otherMachine(id string) error {
	return fault.New(fault.FailedPrecondition,
		"checkpoint %s is of another machine: memory, processors, kernel, agent and QEMU must all be those it was made with", id)
}
