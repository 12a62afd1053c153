package plane

import (
	"context"
	"maps"
	"slices"
	"strings"

	"berth/aggregates"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

func pageSize(limit int) int {
	if limit == 0 {
		return commands.DefaultPage
	}
	return min(limit, commands.MaxPage)
}

func (p *Plane) ls(_ context.Context, c *call, in commands.LsInput) (page commands.LsResult, err error) {
	q := projections.Query{Owner: c.owner(), Provider: in.Provider, Status: aggregates.Status(in.Status), Retired: in.All, After: in.After, Limit: pageSize(in.Limit)}
	p.Views.Read(func(v *projections.Views) { page = v.Fleet(q) })
	return page, nil
}

func (p *Plane) inspect(_ context.Context, c *call, in commands.Named) (out commands.InspectResult, err error) {
	found := false
	p.Views.Read(func(v *projections.Views) { out, found = v.Inspect(c.owner(), events.Alias(in.Name)) })
	switch {
	case !found:
		return out, noName(in.Name)
	case in.UID != "" && out.Slot.UID != events.UID(in.UID):
		return out, fault.New(fault.Expired, "lifecycle %s is no longer the current one of %s", in.UID, in.Name)
	}
	return out, nil
}

func noName(name string) error {
	return fault.New(fault.NotFound, "there is no environment named %s", name).WithHint("`berth ls` lists what there is")
}

// readOrder is what the contract's older readers expect beside a row; here
// both come from one boundary at one sequence.
var readOrder = []string{"slot", "head"}

func (p *Plane) slots(_ context.Context, c *call, in commands.SlotsInput) (out commands.SlotsResult, err error) {
	limit := pageSize(in.Limit)
	out.Items = []commands.SlotRow{}
	p.Views.Read(func(v *projections.Views) {
		out.AsOf = v.Sequence()
		for _, name := range slotNames(v, c.owner(), in) {
			if string(name) <= in.After && in.After != "" {
				continue
			}
			one, ok := v.Inspect(c.owner(), name)
			if !ok || (one.Slot.Phase == "retired" && one.Status != aggregates.StatusHeld && !in.IncludeRetired) {
				continue
			}
			if len(out.Items) == limit {
				out.Next = string(out.Items[limit-1].Alias)
				return
			}
			row := commands.SlotRow{Slot: one.Slot, Head: one.Head, Live: one.Live, OwnerInstanceID: one.Slot.Holder, Consistency: one.Consistency, ReadOrder: readOrder}
			if one.Status == aggregates.StatusHeld {
				row.Fault = one.Fault
			}
			out.Items = append(out.Items, row)
		}
	})
	return out, nil
}

// slotNames lists the names that were asked about, sorted.
func slotNames(v *projections.Views, owner events.Owner, in commands.SlotsInput) []events.Alias {
	names := map[events.Alias]bool{}
	for _, n := range in.Names {
		names[events.Alias(n)] = true
	}
	if len(in.Names) == 0 {
		for _, s := range v.Slots(owner) {
			names[s.Alias] = true
		}
		if in.IncludeRetired {
			v.EachRetired(func(r projections.Retired) bool {
				if r.Owner == owner {
					names[r.Alias] = true
				}
				return true
			})
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (p *Plane) goals(_ context.Context, c *call, in commands.GoalsInput) (out commands.GoalsResult, err error) {
	limit := pageSize(in.Limit)
	out.Items = []commands.GoalResult{}
	p.Views.Read(func(v *projections.Views) {
		out.AsOf = v.Sequence()
		past := in.After == ""
		for _, g := range v.Goals(in.Ended) {
			caller, id, ok := g.Boundary.Goal()
			if !ok || caller != c.Caller {
				continue
			}
			if !past {
				past = string(id) == in.After
				continue
			}
			if len(out.Items) == limit {
				out.Next = string(out.Items[limit-1].GoalID)
				return
			}
			out.Items = append(out.Items, goalView(id, g.State, out.AsOf))
		}
	})
	return out, nil
}

func (p *Plane) usage(_ context.Context, c *call, in commands.UsageInput) (out commands.UsageResult, err error) {
	limit := pageSize(in.Limit)
	p.Views.Read(func(v *projections.Views) {
		out.Now, out.AsOf = p.Now().UnixMilli(), v.Sequence()
		if in.Rates != nil {
			out.Currency = in.Rates.Currency
		}
		if !in.ByEnvironment {
			out.Owners = slices.DeleteFunc(v.Usage(out.Now, in.Rates), func(u projections.OwnerUsage) bool { return u.Owner != c.owner() })
			return
		}
		rows := v.UsageOf(c.owner(), out.Now, in.Rates)
		from := min(in.Offset, len(rows))
		to := min(from+limit, len(rows))
		out.Environments = rows[from:to]
		if to < len(rows) {
			out.Next = to
		}
	})
	return out, nil
}

func (p *Plane) history(ctx context.Context, c *call, in commands.HistoryInput) (commands.HistoryResult, error) {
	b := events.SeatBoundary(c.owner(), events.Alias(in.Name))
	if in.Goal != "" {
		b = events.GoalBoundary(c.Caller, events.GoalID(in.Goal))
	}
	rs, err := p.Log.Load(ctx, b, in.After)
	if err != nil {
		return commands.HistoryResult{}, err
	}
	if len(rs) == 0 && in.After == 0 {
		if in.Goal != "" {
			return commands.HistoryResult{}, noGoal(events.GoalID(in.Goal))
		}
		return commands.HistoryResult{}, noName(in.Name)
	}
	out := commands.HistoryResult{Items: []projections.Line{}}
	for _, r := range rs {
		// A commit is never split between pages: After is a sequence.
		if len(out.Items) > 0 && len(out.Items) >= pageSize(in.Limit) {
			out.Next = out.Items[len(out.Items)-1].Sequence
			break
		}
		out.Items = append(out.Items, projections.Lines(r)...)
	}
	return out, nil
}

// maxConcerns is how many rows of each kind `health` lists.
const maxConcerns = 200

func (p *Plane) health(_ context.Context, _ *call, _ commands.Empty) (out commands.HealthResult, err error) {
	out = commands.HealthResult{Quarantined: []projections.Quarantine{}, Uncertain: []commands.Concern{}, Stuck: []commands.Concern{}, Failed: []commands.Concern{}, WrittenOff: []events.EnvironmentID{}}
	note := func(list *[]commands.Concern, s aggregates.Seat) {
		if len(*list) >= maxConcerns {
			out.Truncated = true
			return
		}
		*list = append(*list, concern(s))
	}
	p.Views.Read(func(v *projections.Views) {
		out.AsOf, out.Losses = v.Sequence(), v.Losses()
		out.Quarantined = append(out.Quarantined, v.Quarantined()...)
		for _, e := range v.WrittenOff() {
			out.WrittenOff = append(out.WrittenOff, e.ID)
		}
		v.EachSeat(func(s aggregates.Seat) bool {
			if s.Stuck() {
				note(&out.Stuck, s)
			}
			switch s.Status() {
			case aggregates.StatusUncertain:
				note(&out.Uncertain, s)
			case aggregates.StatusFailed:
				note(&out.Failed, s)
			}
			return true
		})
	})
	if len(out.Quarantined) > maxConcerns || len(out.WrittenOff) > maxConcerns {
		out.Quarantined, out.WrittenOff, out.Truncated = out.Quarantined[:min(maxConcerns, len(out.Quarantined))], out.WrittenOff[:min(maxConcerns, len(out.WrittenOff))], true
	}
	for _, l := range [][]commands.Concern{out.Uncertain, out.Stuck, out.Failed} {
		slices.SortFunc(l, func(a, b commands.Concern) int { return strings.Compare(string(a.Name), string(b.Name)) })
	}
	return out, nil
}

func concern(s aggregates.Seat) commands.Concern {
	out := commands.Concern{Name: s.Alias, Owner: s.Owner, Environment: s.Environment.ID, Status: s.Status(), Fault: s.Environment.Refusal}
	if op, ok := s.Environment.Last(); ok {
		out.Operation, out.Verb, out.Phase, out.Since = op.ID, op.Verb, op.Phase, rfc3339(op.Begun)
		if op.Fault != nil {
			out.Fault = op.Fault
		}
	}
	return out
}
