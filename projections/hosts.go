package projections

import (
	"maps"
	"slices"
	"strings"

	"berth/aggregates/instance"
	"berth/events"
)

// host is one instance with what its seats hold.
type host struct {
	state  instance.State
	held   map[string]Held // by provider; what holds nothing is not in it
	signed uint64          // through which sequence it signed the chain
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

// plus is the sum of two.
func (h Held) plus(o Held) Held {
	return Held{CPUs: h.CPUs.Add(o.CPUs), MemoryMiB: h.MemoryMiB + o.MemoryMiB, DiskGiB: h.DiskGiB + o.DiskGiB, Environments: h.Environments + o.Environments}
}

// Plus is what is held with one more environment of this size.
func (h Held) Plus(r events.Resources) Held {
	h.add(r)
	return h
}

func (h *host) hold(provider string, r events.Resources) {
	h.held[strings.Clone(provider)] = h.held[provider].Plus(r)
}

func (h *host) release(provider string, r events.Resources) {
	held := h.held[provider]
	if held.sub(r); held.Environments == 0 {
		delete(h.held, provider) // exact sums: what holds nothing is nothing
		return
	}
	h.held[provider] = held
}

// Host is one instance as `hosts` shows it (R76-R84). Reserved is the sum over
// its providers, and Headroom what its own host has left: what is reserved
// behind a provider of another host does not count there.
type Host struct {
	Instance  events.InstanceID   `json:"instance"`
	Phase     instance.Phase      `json:"phase"` // registered, stopped; empty: named by a seat, never registered
	Epoch     uint64              `json:"epoch"`
	Version   string              `json:"version,omitempty"`
	PublicKey string              `json:"publicKey,omitempty"`
	Facts     events.HostFacts    `json:"facts"`
	Labels    map[string]string   `json:"labels,omitempty"` // the operator's
	Providers []Offer             `json:"providers,omitempty"`
	Reserved  Held                `json:"reserved"`
	Headroom  events.HostCapacity `json:"headroom"`
	Signed    uint64              `json:"signed,omitempty"` // chain signed through this sequence
	// RegisteredAt is epoch ms, zero if it never registered.
	RegisteredAt int64 `json:"registeredAt"`
}

// Offer is what an instance published of one provider, with what is reserved
// and free there now.
type Offer struct {
	events.ProviderFacts
	Reserved Held                `json:"reserved"`
	Headroom events.HostCapacity `json:"headroom"`
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

// Against is what counts against one provider's capacity: its environment slots
// are its own, and CPUs, memory and disk are shared with the other providers of
// the same host, if it is one of those that share the manager's.
func Against(held map[string]Held, provider string, shared func(string) bool) Held {
	sum := held[provider]
	if !shared(provider) {
		return sum
	}
	for name, h := range held {
		if name != provider && shared(name) {
			h.Environments = 0
			sum = sum.plus(h)
		}
	}
	return sum
}

// HeldBy is what the seats of an instance hold, by provider; the caller may
// change it.
func (v *Views) HeldBy(id events.InstanceID) map[string]Held {
	if h := v.instances[id]; h != nil {
		return maps.Clone(h.held)
	}
	return map[string]Held{}
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
		Facts: s.Host, Labels: s.Labels, Signed: h.signed,
	}
	var here Held // on the instance's own host
	for name, held := range h.held {
		out.Reserved = out.Reserved.plus(held)
		if h.shared(name) {
			here = here.plus(held)
		}
	}
	out.Headroom = Headroom(s.Host.Allocatable, here)
	for _, p := range s.Providers {
		out.Providers = append(out.Providers, Offer{p, h.held[p.Provider], Headroom(p.Facts.Allocatable, Against(h.held, p.Provider, h.shared))})
	}
	if !s.RegisteredAt.IsZero() {
		out.RegisteredAt = s.RegisteredAt.UnixMilli()
	}
	return out
}

// shared says that a provider's environments are on the instance's own host.
// One that was never published is taken to be.
func (h *host) shared(provider string) bool {
	for _, p := range h.state.Providers {
		if p.Provider == provider {
			return p.Shared
		}
	}
	return true
}
