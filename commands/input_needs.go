package commands

import (
	"maps"
	"slices"

	"berth/events"
	"berth/events/fault"
)

// NeedsInput is what the instance of a spawn must have, by the facts that it
// published (R83). The provider and the size are asked for elsewhere.
type NeedsInput struct {
	Arch     string            `json:"arch,omitzero" doc:"architecture of the provider's host, such as amd64"`
	Engine   string            `json:"engine,omitzero" doc:"an engine of the provider, by name"`
	KVM      bool              `json:"kvm,omitzero" doc:"KVM that was shown to be usable there (R79)"`
	GPU      bool              `json:"gpu,omitzero" doc:"an instance whose operator gave it a label gpu"`
	Labels   map[string]string `json:"labels,omitzero" doc:"labels that the instance's operator gave it, each exactly so"`
	Headroom *FreeInput        `json:"headroom,omitzero" doc:"the least that must be free there before the spawn takes its part (R80)"`
}

// FreeInput is an amount that must be free.
type FreeInput struct {
	CPUs   string `json:"cpus,omitzero" doc:"exact decimal number of CPUs"`
	Memory string `json:"memory,omitzero" doc:"size, a whole number of MiB"`
	Disk   string `json:"disk,omitzero" doc:"size, a whole number of GiB"`
	Slots  int64  `json:"slots,omitzero" doc:"environment slots" max:"1000000"`
}

// Limits of what a spawn asks of an instance.
const (
	MaxNeedLabels = 32
	MaxFreeSlots  = 1_000_000
)

// Check implements Input.
func (n *NeedsInput) Check() error {
	if n == nil {
		return nil
	}
	if err := first(checkText("needs.arch", n.Arch, events.MaxName), checkText("needs.engine", n.Engine, events.MaxName)); err != nil {
		return err
	}
	if len(n.Labels) > MaxNeedLabels {
		return bad("needs.labels", "there are %d; at most %d are possible", len(n.Labels), MaxNeedLabels)
	}
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		if k == "" || n.Labels[k] == "" {
			return bad("needs.labels", "a name or a value is empty")
		}
		if err := checkText("needs.labels", k+"="+n.Labels[k], 2*events.MaxName+1); err != nil {
			return err
		}
	}
	_, err := n.Free()
	return err
}

// Free is the least that must be free, zero where nothing is asked for.
func (n *NeedsInput) Free() (c events.HostCapacity, err error) {
	if n == nil || n.Headroom == nil {
		return c, nil
	}
	h := n.Headroom
	if h.CPUs != "" {
		if c.CPUs, err = events.ParseQuantity(h.CPUs); err != nil {
			return c, bad("needs.headroom.cpus", "%s", fault.From(err).Message)
		}
	}
	if h.Memory != "" {
		if c.MemoryMiB, err = whole("needs.headroom.memory", h.Memory, 1<<20, MaxMemory); err != nil {
			return c, err
		}
	}
	if h.Disk != "" {
		if c.DiskGiB, err = whole("needs.headroom.disk", h.Disk, 1<<30, MaxDisk); err != nil {
			return c, err
		}
	}
	c.Slots = h.Slots
	return c, clipLimit("needs.headroom.slots", h.Slots, MaxFreeSlots)
}
