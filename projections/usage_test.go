package projections_test

import (
	"testing"

	"github.com/cockroachdb/apd/v3"

	"berth/events"
	"berth/events/fault"
	"berth/projections"
	"berth/projections/sample"
)

func card() *projections.RateCard {
	q := events.MustQuantity
	return &projections.RateCard{Currency: "EUR", Default: projections.Rates{CPUHour: q("0.031"), MemoryGiBHour: q("0.004"), DiskGiBHour: q("0.0001")},
		Providers: map[string]projections.Rates{"other": {CPUHour: q("9")}}}
}

// What owners used is exactly what their environments used, at any time, and
// a later time never gives less.
func TestUsageAddsUp(t *testing.T) {
	v := folded(records(t, sample.Options{Seed: 21, Names: 15, Owners: 3}, 5000))
	last := map[events.Owner]*apd.Decimal{}
	for _, later := range []int64{-1 << 40, 0, 1, 3_600_000, 1 << 40} {
		now := v.Newest().UnixMilli() + later
		sum := map[events.Owner]*apd.Decimal{}
		for _, u := range v.UsageOf("", now, card()) {
			if sum[u.Owner] == nil {
				sum[u.Owner] = new(apd.Decimal)
			}
			if _, err := apd.BaseContext.Add(sum[u.Owner], sum[u.Owner], number(t, u.CPUMilliseconds)); err != nil {
				t.Fatal(err)
			}
		}
		owners := v.Usage(now, card())
		if len(owners) != 3 {
			t.Fatalf("%d owners", len(owners))
		}
		for _, o := range owners {
			total := number(t, o.CPUMilliseconds)
			if total.Cmp(sum[o.Owner]) != 0 {
				t.Errorf("%s used %s CPU ms, its environments %s", o.Owner, total, sum[o.Owner])
			}
			if l := last[o.Owner]; l != nil && total.Cmp(l) < 0 {
				t.Errorf("%s used less later: %s after %s", o.Owner, total, l)
			}
			last[o.Owner] = total
		}
	}
}

func number(t *testing.T, s string) *apd.Decimal {
	t.Helper()
	d, _, err := apd.NewFromString(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A quarter of a CPU for an hour is a quarter, and prices are exact.
func TestUsageIsExact(t *testing.T) {
	v := projections.NewViews("test")
	at := events.SeatBoundary("local", "web")
	claim := events.SlotClaimed{UID: "abcdefghijklmnopqrstuvwxyz", Environment: "e", Holder: "i",
		Plan: events.Plan{Provider: "process", Resources: events.Resources{CPUs: events.MustQuantity("0.25"), MemoryMiB: 1536, DiskGiB: 2}}}
	v.Apply(events.Record{Sequence: 1, Boundary: at, Meta: events.Meta{Time: sample.Start}, Events: []events.Event{claim}})
	start := sample.Start.UnixMilli()
	got := v.Usage(start+3_600_000, card())[0]
	if got.CPUHours != "0.25" || got.MemoryGiBHours != "1.5" || got.DiskGiBHours != "2" || got.Cost != "0.01395" || got.Environments != 1 {
		t.Fatalf("an hour of a quarter: %+v", got)
	}
	if got = v.Usage(start+1, nil)[0]; got.CPUHours != "0.000000069" || got.CPUMilliseconds != "0.25" || got.Cost != "" {
		t.Fatalf("a millisecond: %+v", got)
	}
	if got = v.Usage(start-5, nil)[0]; got.CPUHours != "0" {
		t.Fatalf("before the beginning: %+v", got)
	}
}

func TestRateCardLimits(t *testing.T) {
	c := *card()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	c.Providers = map[string]projections.Rates{}
	for i := range projections.MaxRates {
		c.Providers[string(rune('a'+i))] = projections.Rates{}
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	c.Providers["one more"] = projections.Rates{}
	if err := c.Validate(); fault.CodeOf(err) != fault.BadRequest {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "seventeen letters", "E\nR"} {
		if err := (projections.RateCard{Currency: bad}).Validate(); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("currency %q: %v", bad, err)
		}
	}
}
