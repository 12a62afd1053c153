//go:build linux

package process

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"berth/events"
	"berth/events/fault"
	"berth/internal/handoff"
	"berth/providers"
	"berth/providers/process/cgroup"
	"berth/providers/process/image"
	"berth/providers/process/seatdir"
	"berth/providers/process/stage"
	"berth/providers/seat"
)

// defaultPath is where a seat's commands are looked up.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// provision makes the root filesystem's parts and the private home. Done
// again after a crash, it begins from the start.
func (d *Driver) provision(ctx context.Context, c *seat.Call) error {
	p := c.Op.Plan
	ch, err := choices(p)
	if err != nil {
		return err
	}
	if ch.isolated && os.Geteuid() == 0 {
		c.J.IDBase = stage.IDBase
	}
	if p.Image.Kind == "oci" {
		img, err := image.Open(ctx, p.Image.Reference)
		if err != nil {
			return err
		}
		if _, err := img.Unpack(ctx, filepath.Join(d.Dir, imagesDir), c.J.IDBase, stage.IDCount, stage.MountPoints); err != nil {
			return err
		}
		c.J.Digest, c.J.Path = img.Digest, img.Path
	}
	for name, mode := range map[string]os.FileMode{seatdir.DirHome: 0o700, seatdir.DirMaterial: 0o700, seatdir.DirRoot: 0o755} {
		if err := c.MakeDir(name, mode); err != nil {
			return err
		}
	}
	if ch.from != nil {
		return d.beginFrom(ctx, c, *ch.from)
	}
	return nil
}

// startOf is what the custodian reads: the seat as planned and provisioned.
func (d *Driver) startOf(ctx context.Context, c *seat.Call) (any, error) {
	p := c.J.Plan
	ch, err := choices(p)
	if err != nil {
		return nil, err
	}
	if len(p.Command) == 0 {
		return nil, fault.New(fault.BadRequest, "environment %s has no command to start", c.Op.Environment)
	}
	entries, err := os.ReadDir(c.Dir.File(seatdir.DirMaterial))
	if err != nil {
		return nil, err
	}
	s := seatdir.Start{Operation: c.Op.ID, Fingerprint: seatdir.Fingerprint(c.Op), IDBase: c.J.IDBase}
	s.Seat = seatdir.Seat{
		Isolated: ch.isolated, Network: ch.network, Hostname: cmp.Or(string(c.J.Alias), "seat"), Command: p.Command, Material: len(entries) > 0,
		Hide: append([]string{d.Dir}, d.hide...), Ready: p.Sign(),
		Env: map[string]string{
			"PATH": defaultPath, "HOME": stage.Home, "TERM": "xterm-256color",
			events.EnvEnvironment: string(c.Op.Environment), events.EnvSeat: string(c.J.Alias),
		},
	}
	if c.J.Path != "" {
		s.Seat.Env["PATH"] = c.J.Path
	}
	if c.J.Digest != "" {
		s.Seat.Image = filepath.Join("..", imagesDir, treeName(c.J), "rootfs")
	}
	material := stage.MaterialDir
	if !ch.isolated {
		s.Seat.Env["HOME"], material = c.Dir.File(seatdir.DirHome), c.Dir.File(seatdir.DirMaterial)
	}
	if s.Seat.Material {
		s.Seat.Env[events.EnvMaterial] = material
	}
	if p.Resume != nil {
		s.Seat.Env[events.EnvTranscript] = filepath.Join(material, providers.MaterialTranscript)
	}
	if s.Seat.Socket, err = socketOf(c); err != nil {
		return nil, err
	}
	if st, err := os.Stat(DoorDir(d.Dir)); err == nil && st.IsDir() {
		s.Seat.Door, s.Seat.Env[events.EnvDoor] = filepath.Join("..", doorName), stage.DoorDir
		if !ch.isolated {
			s.Seat.Env[events.EnvDoor] = DoorDir(d.Dir)
		}
	}
	if _, ok := c.Op.Material[handoff.Purpose]; ok {
		s.Seat.Handoff = true
		s.Seat.Env[handoff.EnvFile], s.Seat.Env[handoff.EnvInstance] = filepath.Join(material, handoff.Purpose), string(c.Op.Writer.Instance)
	}
	if ch.limited {
		s.Group = cgroup.Group{Layout: d.probeHost(ctx).Groups, Name: c.Dir.GroupName()}
		s.Limits = limitsOf(p.Resources)
	}
	return s, nil
}

// TakesHandoff implements providers.Delegator: the material of a seat is a
// directory of its own, which nobody else sees.
func (d *Driver) TakesHandoff(context.Context) error { return nil }

// TakesTranscript implements providers.TranscriptTaker.
func (d *Driver) TakesTranscript() int64 { return providers.MaxTranscript }

// TakesConnector implements providers.Connector: a custodian sees every sign.
func (d *Driver) TakesConnector(events.Connector) error { return nil }
