package projections

import (
	"slices"
	"strings"

	"berth/aggregates/instance"
	"berth/events"
)

// host is one instance with what its seats hold.
type host struct {
	state  instance.State
	held   Held
	signed uint64 // through which sequence it signed the chain
}

// Held is the sum of reservations of one instance.
type Held struct {
	CPUs         events.Quantity `json:"cpus"`
	MemoryMiB    int64           `json:"memoryMiB"`
	DiskGiB      int64           `json:"diskGiB"`
	Environments int64           `json:"environments"`
}

func (h *Held) add(r events.Resources) {
	h.CPUs = h.CPUs.Add(r.CPUs)
	h.MemoryMiB += r.MemoryMiB
	h.DiskGiB += r.DiskGiB
	h.Environments++
}

func (h *Held) sub(r events.Resources) {
	h.CPUs, _ = h.CPUs.Sub(r.CPUs)
	h.MemoryMiB -= r.MemoryMiB
	h.DiskGiB -= r.DiskGiB
	h.Environments--
}

// Host is one instance as `hosts` shows it (R76-R84).
type Host struct {
	Instance  events.InstanceID   `json:"instance"`
	Phase     instance.Phase      `json:"phase"` // registered, stopped; empty: named by a seat, never registered
	Epoch     uint64              `json:"epoch"`
	Version   string              `json:"version,omitempty"`
	PublicKey string              `json:"publicKey,omitempty"`
	Facts     events.HostFacts    `json:"facts"`
	Reserved  Held                `json:"reserved"`
	Headroom  events.HostCapacity `json:"headroom"`
	Signed    uint64              `json:"signed,omitempty"` // chain signed through this sequence
	// RegisteredAt is epoch ms, zero if it never registered.
	RegisteredAt int64 `json:"registeredAt"`
}

// Headroom is what is allocatable less what is held, never below zero (R80).
func Headroom(c events.HostCapacity, h Held) events.HostCapacity {
	cpus, _ := c.CPUs.Sub(h.CPUs)
	return events.HostCapacity{
		CPUs:      cpus,
		MemoryMiB: max(c.MemoryMiB-h.MemoryMiB, 0),
		DiskGiB:   max(c.DiskGiB-h.DiskGiB, 0),
		Slots:     max(c.Slots-h.Environments, 0),
	}
}

// Host is one instance; false if neither a registration nor a seat named it.
func (v *Views) Host(id events.InstanceID) (Host, bool) {
	h := v.instances[id]
	if h == nil {
		return Host{}, false
	}
	return h.view(), true
}

// Hosts lists every instance by id.
func (v *Views) Hosts() []Host {
	out := make([]Host, 0, len(v.instances))
	for _, h := range v.instances {
		out = append(out, h.view())
	}
	slices.SortFunc(out, func(a, b Host) int { return strings.Compare(string(a.Instance), string(b.Instance)) })
	return out
}

func (h *host) view() Host {
	s := h.state
	out := Host{
		Instance: s.ID, Phase: s.Phase, Epoch: s.Epoch, Version: s.Version, PublicKey: s.PublicKey,
		Facts: s.Host, Reserved: h.held, Headroom: Headroom(s.Host.Allocatable, h.held), Signed: h.signed,
	}
	if !s.RegisteredAt.IsZero() {
		out.RegisteredAt = s.RegisteredAt.UnixMilli()
	}
	return out
}
