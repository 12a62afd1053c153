package projections

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cockroachdb/apd/v3"

	"berth/events"
	"berth/events/fault"
)

// What is metered: the resources that are reserved for an environment, from
// the claim until exit is proved or it is written off. That is what nobody
// else could use, whether its process ran, was paused or was uncertain.
//
// Meters count milliseconds exactly. Hours and costs are quotients, rounded
// half-even to 9 places once, when they are shown.

// Limits of a rate card.
const (
	MaxRates    = 64 // providers with rates of their own
	MaxCurrency = 16 // bytes
	usagePlaces = 9
)

// account is whose usage is added up, by provider because rates differ.
type account struct {
	owner    events.Owner
	provider string
}

// Meter is exact usage: CPU-milliseconds, MiB-milliseconds of memory,
// GiB-milliseconds of disk.
type Meter struct{ cpu, memory, disk apd.Decimal }

// rounding is for quotients; sums and products use apd.BaseContext, which
// never rounds.
var rounding = apd.Context{Precision: 120, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: apd.RoundHalfEven, Traps: apd.DefaultTraps}

func (m *Meter) add(r events.Resources, ms int64) {
	if ms <= 0 {
		return
	}
	accumulate(&m.cpu, decimal(r.CPUs), ms)
	accumulate(&m.memory, apd.New(r.MemoryMiB, 0), ms)
	accumulate(&m.disk, apd.New(r.DiskGiB, 0), ms)
}

func (m *Meter) merge(o *Meter) {
	accumulate(&m.cpu, &o.cpu, 1)
	accumulate(&m.memory, &o.memory, 1)
	accumulate(&m.disk, &o.disk, 1)
}

func accumulate(sum, rate *apd.Decimal, ms int64) {
	var part apd.Decimal
	must(apd.BaseContext.Mul(&part, rate, apd.New(ms, 0)))
	must(apd.BaseContext.Add(sum, sum, &part))
}

func decimal(q events.Quantity) *apd.Decimal {
	d, _, err := apd.NewFromString(q.String())
	must(0, err)
	return d
}

// must is for arithmetic on finite values that never traps.
func must(_ apd.Condition, err error) {
	if err != nil {
		panic("projections: decimal arithmetic: " + err.Error())
	}
}

const msPerHour = 3_600_000

// over is n/d rounded half-even to 9 places, without trailing zeros.
func over(n *apd.Decimal, d int64) string {
	var q apd.Decimal
	must(rounding.Quo(&q, n, apd.New(d, 0)))
	return rounded(&q)
}

func rounded(q *apd.Decimal) string {
	var out apd.Decimal
	must(rounding.Quantize(&out, q, -usagePlaces))
	out.Reduce(&out)
	return out.Text('f')
}

// Rates is what an hour costs. Absent rates are zero.
type Rates struct {
	CPUHour       events.Quantity `json:"cpuHour"`
	MemoryGiBHour events.Quantity `json:"memoryGiBHour"`
	DiskGiBHour   events.Quantity `json:"diskGiBHour"`
}

// RateCard prices usage. A provider that is not named takes the default.
type RateCard struct {
	Currency  string           `json:"currency"`
	Default   Rates            `json:"default"`
	Providers map[string]Rates `json:"providers,omitempty"`
}

// Validate refuses a card that can't be used, with bad-request.
func (c RateCard) Validate() error {
	if err := events.CheckText("rate card currency", c.Currency); err != nil {
		return err
	}
	if len(c.Currency) > MaxCurrency {
		return fault.New(fault.BadRequest, "rate card currency is longer than %d bytes", MaxCurrency)
	}
	if len(c.Providers) > MaxRates {
		return fault.New(fault.BadRequest, "rate card has rates for %d providers; at most %d are possible", len(c.Providers), MaxRates)
	}
	return nil
}

func (c RateCard) rates(provider string) Rates {
	if r, ok := c.Providers[provider]; ok {
		return r
	}
	return c.Default
}

// cost adds what m costs, times msPerHour, so that no quotient is summed.
func (r Rates) cost(sum *apd.Decimal, m *Meter) {
	add := func(amount *apd.Decimal, rate events.Quantity, per *apd.Decimal) {
		var part apd.Decimal
		must(apd.BaseContext.Mul(&part, amount, decimal(rate)))
		must(apd.BaseContext.Mul(&part, &part, per))
		must(apd.BaseContext.Add(sum, sum, &part))
	}
	add(&m.cpu, r.CPUHour, apd.New(1, 0))
	add(&m.memory, r.MemoryGiBHour, mebi)
	add(&m.disk, r.DiskGiBHour, apd.New(1, 0))
}

// mebi is 1/1024, which a decimal holds exactly.
var mebi = apd.New(9765625, -10)

// Amounts is usage as it is shown.
type Amounts struct {
	CPUHours       string `json:"cpuHours"`
	MemoryGiBHours string `json:"memoryGiBHours"`
	DiskGiBHours   string `json:"diskGiBHours"`
	// CPUMilliseconds is exact, for whoever adds up.
	CPUMilliseconds string `json:"cpuMilliseconds"`
	// MemoryMiBMilliseconds is exact too.
	MemoryMiBMilliseconds string `json:"memoryMiBMilliseconds"`
	Cost                  string `json:"cost,omitempty"` // with a rate card
}

func (m *Meter) amounts(cost *apd.Decimal) Amounts {
	a := Amounts{
		CPUHours: over(&m.cpu, msPerHour), MemoryGiBHours: over(&m.memory, 1024*msPerHour), DiskGiBHours: over(&m.disk, msPerHour),
		CPUMilliseconds: plain(&m.cpu), MemoryMiBMilliseconds: plain(&m.memory),
	}
	if cost != nil {
		a.Cost = over(cost, msPerHour)
	}
	return a
}

func plain(d *apd.Decimal) string {
	var out apd.Decimal
	out.Reduce(d)
	return out.Text('f')
}

// OwnerUsage is what one owner used.
type OwnerUsage struct {
	Owner        events.Owner `json:"owner"`
	Environments int          `json:"environments"` // held now
	Amounts
}

// EnvironmentUsage is what one environment used. From and To are epoch ms.
type EnvironmentUsage struct {
	Owner       events.Owner         `json:"owner"`
	Alias       events.Alias         `json:"alias"`
	Environment events.EnvironmentID `json:"environment"`
	Provider    string               `json:"provider"`
	From        int64                `json:"from"`
	To          int64                `json:"to"`   // now, while Open
	Open        bool                 `json:"open"` // still held
	WrittenOff  bool                 `json:"writtenOff,omitempty"`
	Resources   events.Resources     `json:"resources"`
	Amounts
}

// Usage adds up what every owner used up to now (epoch ms), by owner. card
// may be nil. A later now never gives less.
func (v *Views) Usage(now int64, card *RateCard) []OwnerUsage {
	meters := map[account]*Meter{}
	held := map[events.Owner]int{}
	at := func(a account) *Meter {
		if meters[a] == nil {
			meters[a] = &Meter{}
		}
		return meters[a]
	}
	for a, m := range v.meters {
		at(a).merge(m)
	}
	for _, e := range v.live {
		if r := reserved(&e.seat); r.held {
			held[e.seat.Owner]++
			at(account{e.seat.Owner, e.seat.Environment.Plan.Provider}).add(r.resources, now-stamp(e.seat.Environment.CreatedAt))
		}
	}
	totals, costs := map[events.Owner]*Meter{}, map[events.Owner]*apd.Decimal{}
	for a, m := range meters {
		if totals[a.owner] == nil {
			totals[a.owner] = &Meter{}
			costs[a.owner] = card.zero()
		}
		totals[a.owner].merge(m)
		if card != nil {
			card.rates(a.provider).cost(costs[a.owner], m)
		}
	}
	out := []OwnerUsage{}
	for o, m := range totals {
		out = append(out, OwnerUsage{Owner: o, Environments: held[o], Amounts: m.amounts(costs[o])})
	}
	slices.SortFunc(out, func(a, b OwnerUsage) int { return strings.Compare(string(a.Owner), string(b.Owner)) })
	return out
}

// zero is where a sum of costs begins: nil without a card.
func (c *RateCard) zero() *apd.Decimal {
	if c == nil {
		return nil
	}
	return &apd.Decimal{}
}

// UsageOf lists usage by environment up to now (epoch ms), of one owner or
// (empty) of all: held ones by name, then ended ones from the newest, at most
// MaxFleet in all.
func (v *Views) UsageOf(o events.Owner, now int64, card *RateCard) []EnvironmentUsage {
	out := []EnvironmentUsage{}
	for _, e := range v.live {
		if e.seat.Environment.ID != "" && (o == "" || e.seat.Owner == o) {
			out = append(out, openUsage(e, now))
		}
	}
	slices.SortFunc(out, func(a, b EnvironmentUsage) int {
		return cmp.Or(strings.Compare(string(a.Owner), string(b.Owner)), strings.Compare(string(a.Alias), string(b.Alias)))
	})
	for i := len(v.retired.rows) - 1; i >= 0 && len(out) < MaxFleet; i-- {
		r := v.retired.row(uint32(i))
		if o == "" || r.Owner == o {
			out = append(out, EnvironmentUsage{Owner: r.Owner, Alias: r.Alias, Environment: r.Record.ID, Provider: r.Record.Provider,
				From: r.ClaimedAt, To: r.ReleasedAt, WrittenOff: r.WrittenOff, Resources: r.Resources})
		}
	}
	out = out[:min(len(out), MaxFleet)]
	for i := range out {
		u := &out[i]
		var m Meter
		m.add(u.Resources, u.To-u.From)
		cost := card.zero()
		if card != nil {
			card.rates(u.Provider).cost(cost, &m)
		}
		u.Amounts = m.amounts(cost)
	}
	return out
}

func openUsage(e *entry, now int64) EnvironmentUsage {
	s := &e.seat
	u := EnvironmentUsage{Owner: s.Owner, Alias: s.Alias, Environment: s.Environment.ID, Provider: s.Environment.Plan.Provider,
		From: stamp(s.Environment.CreatedAt), Resources: s.Environment.Plan.Resources}
	u.To, u.Open = max(now, u.From), true
	if !reserved(s).held {
		u.To, u.Open = max(e.released, u.From), false
	}
	return u
}

func (v *Views) meter(a account) *Meter {
	m := v.meters[a]
	if m == nil {
		a.owner, a.provider = events.Owner(strings.Clone(string(a.owner))), strings.Clone(a.provider)
		m = &Meter{}
		v.meters[a] = m
	}
	return m
}
