package projections

import (
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/apd/v3"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/aggregates/instance"
	"berth/aggregates/intent"
	"berth/events"
)

// dump is everything of Views but the live seats and the rows of the retired.
type dump struct {
	Newest      time.Time
	Counts      Counts
	Words       []string
	Sizes       []events.Quantity
	Caps        []events.Capabilities
	WrittenOff  map[events.EnvironmentID]*environment.State
	Open        map[events.Boundary]*goal.State
	Ended       map[events.Boundary]*goal.State
	Order       []events.Boundary
	Ends        map[events.GoalState]uint64
	Unsettled   []events.Boundary
	Recent      recent
	Intents     map[events.Boundary][]intent.State
	Hosts       []hostDump
	Meters      []meterDump
	Quarantined []Quarantine
	Losses      []Loss
}

type hostDump struct {
	State  instance.State
	Held   map[string]Held // by provider
	Signed uint64
}

type meterDump struct {
	Owner             events.Owner
	Provider          string
	CPU, Memory, Disk string
}

// liveDump is one entry; its boundary follows from the seat.
type liveDump struct {
	Seat     aggregates.Seat
	Released int64
	Prev     uint32
}

func (v *Views) dump() dump {
	d := dump{Newest: v.newest, Counts: v.counts, Words: v.retired.words.values, Sizes: v.retired.sizes.values, Caps: v.retired.caps.values, WrittenOff: v.writtenOff, Open: v.goals.open,
		Ended: v.goals.ended, Order: v.goals.order, Ends: v.goals.count, Unsettled: v.goals.unsettled, Quarantined: v.Quarantined(), Losses: v.losses, Recent: v.recent, Intents: v.intents}
	for _, h := range v.instances {
		d.Hosts = append(d.Hosts, hostDump{State: h.state, Held: h.held, Signed: h.signed})
	}
	slices.SortFunc(d.Hosts, func(a, b hostDump) int { return strings.Compare(string(a.State.ID), string(b.State.ID)) })
	for a, m := range v.meters {
		d.Meters = append(d.Meters, meterDump{Owner: a.owner, Provider: a.provider, CPU: plain(&m.cpu), Memory: plain(&m.memory), Disk: plain(&m.disk)})
	}
	slices.SortFunc(d.Meters, func(a, b meterDump) int {
		return strings.Compare(string(a.Owner)+" "+a.Provider, string(b.Owner)+" "+b.Provider)
	})
	return d
}

// restore fills fresh views with what dump gave.
func (v *Views) restore(d dump) error {
	v.newest, v.counts, v.losses, v.recent = d.Newest, d.Counts, d.Losses, d.Recent
	v.retired.words, v.retired.sizes, v.retired.caps = tableOf(d.Words), tableOf(d.Sizes), tableOf(d.Caps)
	for b, s := range d.Intents {
		v.intents[b] = s
	}
	for id, s := range d.WrittenOff {
		v.writtenOff[id] = s
	}
	for b, s := range d.Open {
		v.goals.open[b] = s
		v.goals.offer(b, *s)
	}
	for b, s := range d.Ended {
		v.goals.ended[b] = s
	}
	for s, n := range d.Ends {
		v.goals.count[s] = n
	}
	v.goals.order, v.goals.unsettled = d.Order, d.Unsettled
	for _, h := range d.Hosts {
		v.instances[h.State.ID] = &host{state: h.State, held: h.Held, signed: h.Signed}
		if h.Held == nil {
			v.instances[h.State.ID].held = map[string]Held{}
		}
	}
	for _, q := range d.Quarantined {
		v.quarantined[q.Boundary] = q
	}
	for _, m := range d.Meters {
		to := v.meter(account{m.Owner, m.Provider})
		for _, part := range []struct {
			to   *apd.Decimal
			text string
		}{{&to.cpu, m.CPU}, {&to.memory, m.Memory}, {&to.disk, m.Disk}} {
			if _, _, err := part.to.SetString(part.text); err != nil {
				return err
			}
		}
	}
	return nil
}

// names rebuilds which retired row is the newest of each name.
func (v *Views) names() {
	v.last = make(map[events.Boundary]uint32, len(v.retired.rows))
	for i := range v.retired.rows {
		v.last[v.retired.name(uint32(i))] = uint32(i)
	}
}

// name reads only whose row it is.
func (p *packed) name(i uint32) events.Boundary {
	at := p.rows[i]
	c := cursor{b: p.chunks[at>>32][at&0xffffffff:]}
	c.b = c.b[1:]
	c.uvarint()
	c.skipID()
	alias := c.text()
	for range 3 {
		n := c.uvarint()
		c.b = c.b[n:]
	}
	return events.SeatBoundary(events.Owner(p.words.values[c.uvarint()]), events.Alias(alias))
}

func (c *cursor) skipID() {
	isUUID := c.b[0] == 1
	c.b = c.b[1:]
	n := uint64(16)
	if !isUUID {
		n = c.uvarint()
	}
	c.b = c.b[n:]
}
