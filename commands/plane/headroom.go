package plane

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

// probeFor bounds the probe of one host where all are probed, so that one that
// says nothing takes the answer from no other.
const probeFor = 3 * time.Second

// factsFor is how long the facts of a provider's host are used again; the
// command environment-host-facts always asks anew.
const factsFor = 30 * time.Second

// headroom admits spawns one at a time: what was admitted and is not folded
// yet counts as held (decision 2).
type headroom struct {
	mu      sync.Mutex
	facts   map[string]probed
	pending map[events.UID]pending
}

type probed struct {
	capacity events.HostCapacity
	at       time.Time
}

// pending is a reservation that the fold may not have yet; sequence is zero
// until its claim is committed.
type pending struct {
	provider  string
	resources events.Resources
	sequence  uint64
}

func (h *headroom) init() {
	h.facts, h.pending = map[string]probed{}, map[events.UID]pending{}
}

// admit holds resources for a lifecycle, or refuses with resource-exhausted
// and what is short (R80); least is what must be free before.
// The caller ends it with claimed or release.
func (p *Plane) admit(ctx context.Context, uid events.UID, plan events.Plan, least events.HostCapacity) error {
	capacity, err := p.capacity(ctx, plan.Provider)
	if err != nil {
		return err
	}
	h := &p.headroom
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.pending[uid]; ok {
		return nil
	}
	if short := p.short(capacity, plan, least); short != "" {
		return fault.New(fault.ResourceExhausted, "provider %s has no room for this: %s", plan.Provider, short).
			WithDetail("berth.headroom", "provider", plan.Provider, "short", short).WithHint("`berth hosts` shows what is free; `berth retire` frees some")
	}
	if err := p.full(); err != nil {
		return err
	}
	h.pending[uid] = pending{provider: plan.Provider, resources: plan.Resources}
	return nil
}

// full refuses one name more than the configuration allows. The lock is held.
func (p *Plane) full() error {
	held := p.seats()
	if p.MaxSeats == 0 || held < p.MaxSeats {
		return nil
	}
	return fault.New(fault.ResourceExhausted, "this instance holds %d names, and %d is the most that its configuration allows", held, p.MaxSeats).
		WithDetail("berth.capacity", "held", strconv.Itoa(held), "most", strconv.Itoa(p.MaxSeats)).WithHint("`berth retire` frees some; `berth up --max-seats` allows more")
}

// short says what is missing for a plan, empty if nothing. The lock is held.
func (p *Plane) short(capacity events.HostCapacity, plan events.Plan, least events.HostCapacity) string {
	return missing(projections.Headroom(capacity, p.against(plan.Provider)), plan.Resources, least)
}

// seats is how many names this instance holds or has admitted. The lock is held.
func (p *Plane) seats() int {
	n := 0
	p.Views.Read(func(v *projections.Views) {
		p.headroom.prune(v.Sequence())
		for _, h := range v.HeldBy(p.Self.Instance) {
			n += int(h.Environments)
		}
	})
	return n + len(p.headroom.pending)
}

// against is what this instance's environments hold of a provider's capacity,
// with what was admitted and is not folded yet. The lock is held.
func (p *Plane) against(provider string) projections.Held {
	var held map[string]projections.Held
	p.Views.Read(func(v *projections.Views) {
		p.headroom.prune(v.Sequence())
		held = v.HeldBy(p.Self.Instance)
	})
	for _, w := range p.headroom.pending {
		held[w.provider] = held[w.provider].Plus(w.resources)
	}
	return projections.Against(held, provider, p.Shared)
}

// missing says what is free too little for an environment, or for the headroom
// that its spawn asks for.
func missing(free events.HostCapacity, want events.Resources, least events.HostCapacity) string {
	switch {
	case free.Slots < 1:
		return "no environment slot is free"
	case free.CPUs.Cmp(want.CPUs) < 0:
		return free.CPUs.String() + " CPUs are free, " + want.CPUs.String() + " are asked for"
	case free.MemoryMiB < want.MemoryMiB:
		return strconv.FormatInt(free.MemoryMiB, 10) + " MiB" + " of memory are free, " + strconv.FormatInt(want.MemoryMiB, 10) + " MiB" + " are asked for"
	case free.DiskGiB < want.DiskGiB:
		return "there is less disk free than asked for"
	case free.Slots < least.Slots, free.CPUs.Cmp(least.CPUs) < 0, free.MemoryMiB < least.MemoryMiB, free.DiskGiB < least.DiskGiB:
		return "less is free than the headroom asked for"
	}
	return ""
}

// prune forgets what the fold has. The lock is held.
func (h *headroom) prune(folded uint64) {
	for uid, w := range h.pending {
		if w.sequence != 0 && w.sequence <= folded {
			delete(h.pending, uid)
		}
	}
}

// admitted says that resources are held for a lifecycle.
func (p *Plane) admitted(uid events.UID) bool {
	p.headroom.mu.Lock()
	defer p.headroom.mu.Unlock()
	_, ok := p.headroom.pending[uid]
	return ok
}

// claimed says at which sequence the fold will have what was admitted.
func (p *Plane) claimed(uid events.UID, sequence uint64) {
	p.headroom.mu.Lock()
	defer p.headroom.mu.Unlock()
	if w, ok := p.headroom.pending[uid]; ok {
		w.sequence = sequence
		p.headroom.pending[uid] = w
	}
}

// release gives back what was admitted and was not claimed.
func (p *Plane) release(uid events.UID) {
	p.headroom.mu.Lock()
	defer p.headroom.mu.Unlock()
	if p.headroom.pending[uid].sequence == 0 {
		delete(p.headroom.pending, uid)
	}
}

// capacity is what the host behind a provider may give, asked at most once in
// factsFor.
func (p *Plane) capacity(ctx context.Context, provider string) (events.HostCapacity, error) {
	h := &p.headroom
	h.mu.Lock()
	known, ok := h.facts[provider]
	h.mu.Unlock()
	if ok && p.Now().Sub(known.at) < factsFor && p.Now().Sub(known.at) >= 0 {
		return known.capacity, nil
	}
	facts, err := p.probe(ctx, provider)
	return facts.Allocatable, err
}

// probe asks a provider for its host's facts. A failed probe is an error,
// never zeros (R82).
func (p *Plane) probe(ctx context.Context, provider string) (events.HostFacts, error) {
	entry, err := p.Providers.Get(provider)
	if err != nil {
		return events.HostFacts{}, err
	}
	facts, err := entry.Driver.HostFacts(ctx)
	if err != nil {
		f := fault.From(err)
		return events.HostFacts{}, fault.New(fault.Unavailable, "the host behind provider %s can't be probed: %s", provider, events.Scrub(f.Message)).
			WithOutcome(fault.NotExecuted).WithHint("%s", cmp.Or(events.Scrub(f.Hint), "`berth doctor` asks every provider"))
	}
	p.headroom.mu.Lock()
	p.headroom.facts[provider] = probed{facts.Allocatable, p.Now()}
	p.headroom.mu.Unlock()
	return facts, nil
}

// answered is what one provider said of its host, or why it did not.
type answered struct {
	facts events.HostFacts
	err   error
}

// probeAll asks every provider at once, each for probeFor.
func (p *Plane) probeAll(ctx context.Context) map[string]answered {
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	names := p.Providers.Names()
	answers := make([]answered, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { answers[i].facts, answers[i].err = p.probe(ctx, name) })
	}
	all.Wait()
	out := make(map[string]answered, len(names))
	for i, name := range names {
		out[name] = answers[i]
	}
	return out
}
