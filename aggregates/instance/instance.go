// Package instance is a manager's registration: its epoch, which rises by one
// at each start, and the facts of its host (decision 1).
package instance

import (
	"maps"
	"slices"
	"time"

	"berth/aggregates/machine"
	"berth/events"
	"berth/events/fault"
)

// Phase is where an instance stands.
type Phase string

// The phases.
const (
	None       Phase = ""
	Registered Phase = "registered"
	Stopped    Phase = "stopped"
)

// On is what may happen to an instance.
type On string

// The events of the table.
const (
	OnRegister On = "register"
	OnStop     On = "stop"
	OnObserve  On = "observe"
)

// Table is an instance's life.
var Table = machine.Table[Phase, On]{Name: "instance", Rows: []machine.Row[Phase, On]{
	{From: []Phase{None, Registered, Stopped}, On: OnRegister, To: Registered, Guard: "epoch + 1"},
	{From: []Phase{Registered}, On: OnStop, To: Stopped, Guard: "the same epoch"},
	{From: []Phase{Registered}, On: OnObserve, To: Registered, Guard: "the same epoch; replaces the facts whole"},
}}

// State is the instance as folded.
type State struct {
	Phase        Phase
	ID           events.InstanceID
	Epoch        uint64
	Host         events.HostFacts
	PublicKey    string
	Version      string
	RegisteredAt time.Time
	Labels       map[string]string      // the operator's; never changed in place
	Providers    []events.ProviderFacts // by name; never changed in place
}

// Apply folds one event. An epoch that is not later than the one that stands
// changes nothing: epochs only rise (law 3).
func (s State) Apply(m events.Meta, e events.Event) State {
	switch e := e.(type) {
	case events.InstanceRegistered:
		if e.Epoch <= s.Epoch {
			return s
		}
		to, _ := Table.Next(s.Phase, OnRegister)
		return State{Phase: to, ID: e.Instance, Epoch: e.Epoch, Host: e.Host, PublicKey: e.PublicKey, Version: e.Version, RegisteredAt: m.Time}
	case events.InstanceStopped:
		if e.Epoch == s.Epoch {
			s.Phase, _ = Table.Next(s.Phase, OnStop)
		}
	case events.InstanceObserved:
		if to, ok := Table.Next(s.Phase, OnObserve); ok && e.Epoch == s.Epoch {
			s.Phase, s.Labels, s.Providers = to, e.Labels, e.Providers
		}
	}
	return s
}

// Register begins the next epoch.
func (s State) Register(id events.InstanceID, host events.HostFacts, key, version string) []events.Event {
	return []events.Event{events.InstanceRegistered{Instance: id, Epoch: s.Epoch + 1, Host: host, PublicKey: key, Version: version}}
}

// Observe publishes what the instance offers, if that is not what stands. When
// the probe ended does not count, and free disk only where it changed by more
// than an eighth: it moves all the time.
func (s State) Observe(e events.InstanceObserved) []events.Event {
	if _, ok := Table.Next(s.Phase, OnObserve); !ok || e.Epoch != s.Epoch || maps.Equal(e.Labels, s.Labels) && slices.EqualFunc(e.Providers, s.Providers, sameFacts) {
		return nil
	}
	return []events.Event{e}
}

func sameFacts(a, b events.ProviderFacts) bool {
	x, y := a.Facts, b.Facts
	return a.Provider == b.Provider && a.Shared == b.Shared && x.Host == y.Host && x.Architecture == y.Architecture && x.OS == y.OS && sameKVM(x.KVM, y.KVM) &&
		slices.Equal(x.Engines, y.Engines) && x.Allocatable.CPUs.Cmp(y.Allocatable.CPUs) == 0 &&
		x.Allocatable.MemoryMiB == y.Allocatable.MemoryMiB && 8*max(x.Allocatable.DiskGiB-y.Allocatable.DiskGiB, y.Allocatable.DiskGiB-x.Allocatable.DiskGiB) <= y.Allocatable.DiskGiB && x.Allocatable.Slots == y.Allocatable.Slots
}

func sameKVM(a, b events.KVM) bool {
	return a.Present == b.Present && a.Usable == b.Usable && a.TriedAt.Equal(b.TriedAt)
}

// Stop ends an epoch cleanly. An older epoch is refused with expired (law 3).
func (s State) Stop(epoch uint64) ([]events.Event, error) {
	switch {
	case s.Phase == Stopped && s.Epoch == epoch:
		return nil, nil
	case s.Phase != Registered:
		return nil, Table.Refuse(s.Phase, OnStop)
	case s.Epoch != epoch:
		return nil, fault.New(fault.Expired, "epoch %d of instance %s is over: the current one is %d", epoch, s.ID, s.Epoch)
	}
	return []events.Event{events.InstanceStopped{Instance: s.ID, Epoch: epoch}}, nil
}
