package projections_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
	"berth/projections/replay"
	"berth/projections/sample"
)

func records(t testing.TB, o sample.Options, n int) []events.Record {
	t.Helper()
	rs, err := sample.Records(o, n)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func folded(rs []events.Record) *projections.Views {
	v := projections.NewViews("test")
	for _, r := range rs {
		v.Apply(r)
	}
	return v
}

func same(t *testing.T, what string, a, b *projections.Views) {
	t.Helper()
	for i, m := range replay.Compare(a, b) {
		if i == 5 {
			t.Fatal("and more")
		}
		t.Errorf("%s: %s %s: %s, from the log %s", what, m.Record, m.Field, m.Served, m.Log)
	}
}

// A snapshot at any cut and the tail give what the whole log gives; a record
// that comes twice changes nothing; a clone goes on by itself.
func TestRebuildEqualsIncremental(t *testing.T) {
	for seed := range uint64(4) {
		rs := records(t, sample.Options{Seed: seed, Names: 12, Owners: 3}, 1000)
		whole := folded(rs)
		if whole.Sequence() != 1000 || len(whole.Quarantined()) != 0 {
			t.Fatalf("folded to %d with %v", whole.Sequence(), whole.Quarantined())
		}
		path := filepath.Join(t.TempDir(), "snapshot")
		for cut := int(seed); cut <= len(rs); cut += 241 {
			v := folded(rs[:cut])
			if err := projections.Save(path, "stream", v); err != nil {
				t.Fatal(err)
			}
			loaded, err := projections.Load(path, "stream", "test")
			if err != nil {
				t.Fatal(err)
			}
			same(t, "loaded", loaded, v)
			clone := v.Clone()
			for _, r := range rs[max(cut-20, 0):] { // the overlap is ignored
				loaded.Apply(r)
				clone.Apply(r)
			}
			same(t, fmt.Sprintf("seed %d cut %d", seed, cut), loaded, whole)
			same(t, fmt.Sprintf("clone of seed %d cut %d", seed, cut), clone, whole)
			same(t, "what was cloned", v, folded(rs[:cut]))
		}
	}
}

// R80: what an instance holds is at every sequence the sum over the seats that
// it holds, so nothing is released twice or never.
func TestReservationsAreTheSumOfSeats(t *testing.T) {
	v := projections.NewViews("test")
	for _, r := range records(t, sample.Options{Seed: 11, Names: 20, Owners: 2}, 4000) {
		v.Apply(r)
		if r.Sequence%7 != 0 {
			continue
		}
		want := map[events.InstanceID]projections.Held{}
		v.EachSeat(func(s aggregates.Seat) bool {
			if s.Environment.Reserved() {
				h, res := want[s.Slot.Holder], s.Environment.Plan.Resources
				h.CPUs = h.CPUs.Add(res.CPUs)
				h.MemoryMiB += res.MemoryMiB
				h.DiskGiB += res.DiskGiB
				h.Environments++
				want[s.Slot.Holder] = h
			}
			return true
		})
		for _, h := range v.Hosts() {
			if h.Reserved != want[h.Instance] {
				t.Fatalf("at %d instance %s holds %+v, its seats %+v", r.Sequence, h.Instance, h.Reserved, want[h.Instance])
			}
		}
	}
}

// R80: headroom is exact and never below zero.
func TestHeadroom(t *testing.T) {
	c := events.HostCapacity{CPUs: events.MustQuantity("1.5"), MemoryMiB: 1000, DiskGiB: 10, Slots: 2}
	got := projections.Headroom(c, projections.Held{CPUs: events.MustQuantity("0.3"), MemoryMiB: 1000, DiskGiB: 11, Environments: 3})
	want := events.HostCapacity{CPUs: events.MustQuantity("1.2")}
	if got != want {
		t.Fatalf("headroom %+v, want %+v", got, want)
	}
	if got = projections.Headroom(c, projections.Held{CPUs: events.MustQuantity("1.500000001")}); !got.CPUs.IsZero() {
		t.Fatalf("headroom below zero: %s", got.CPUs)
	}
}

// Scenarios 73 and 74: a record that can't be read stops its own boundary,
// which says so, and nothing else.
func TestQuarantineIsOfOneBoundary(t *testing.T) {
	rs := records(t, sample.Options{Seed: 3, Names: 6, Owners: 1}, 900)
	var bad events.Boundary
	for i := 300; bad == ""; i++ {
		if rs[i].Boundary.Kind() == events.KindSeat {
			bad = rs[i].Boundary
			rs[i].Broken = fault.New(fault.UnsupportedVersion, "event type slot.imagined.v99 is not known")
		}
	}
	whole, without := folded(rs), projections.NewViews("test")
	for _, r := range rs {
		if r.Boundary != bad {
			without.Apply(r)
		}
	}
	q := whole.Quarantined()
	if len(q) != 1 || q[0].Boundary != bad || q[0].Sequence <= 300 || q[0].Fault.Code != fault.UnsupportedVersion {
		t.Fatalf("quarantined: %+v", q)
	}
	owner, alias, _ := bad.Seat()
	in, ok := whole.Inspect(owner, alias)
	if !ok || in.Status != aggregates.StatusHeld || in.Fault == nil {
		t.Fatalf("the quarantined seat is %+v", in)
	}
	seat, _ := whole.Seat(owner, alias)
	if _, err := seat.Retire("", "retired", 0); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Fatalf("a decision on a quarantined seat gave %v", err)
	}
	for _, row := range without.Fleet(projections.Query{}).Items {
		got, ok := whole.Seat(row.Owner, row.Alias)
		if want, _ := without.Seat(row.Owner, row.Alias); !ok || got.Sequence != want.Sequence {
			t.Errorf("%s stands at %d, want %d", row.Alias, got.Sequence, want.Sequence)
		}
	}
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := projections.Save(path, "s", whole); err != nil {
		t.Fatal(err)
	}
	loaded, err := projections.Load(path, "s", "test")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "quarantine in a snapshot", loaded, whole)
}

// A record that can't be read after the name was retired, or before anything
// of it could be read: what is known is shown, with the error that names it.
func TestQuarantineShowsWhatIsKnown(t *testing.T) {
	rs := records(t, sample.Options{Seed: 3, Names: 6, Owners: 1}, 900)
	v := folded(rs)
	var last projections.Retired
	v.EachRetired(func(r projections.Retired) bool {
		if _, held := v.Seat(r.Owner, r.Alias); !held {
			last = r
		}
		return true
	})
	if last.Alias == "" {
		t.Fatal("no name of the sample is free again")
	}
	broken := fault.New(fault.UnsupportedVersion, "event type slot.imagined.v99 is not known")
	for alias, uid := range map[events.Alias]events.UID{last.Alias: last.UID, "unheard": ""} {
		at := events.SeatBoundary(last.Owner, alias)
		bad := v.Sequence() + 1
		v.Apply(events.Record{Sequence: bad, Boundary: at, Broken: broken})
		in, ok := v.Inspect(last.Owner, alias)
		if !ok || in.Status != aggregates.StatusHeld || in.Slot.Status != aggregates.StatusHeld || in.Live || in.Slot.UID != uid || in.Head.UID != uid || in.Boundary != bad {
			t.Errorf("%s: %+v", alias, in)
		}
		if in.Fault == nil || !strings.Contains(in.Fault.Message, fmt.Sprintf("sequence %d of %s", bad, at)) {
			t.Errorf("%s: the fault does not name the record: %v", alias, in.Fault)
		}
		rows := v.Fleet(projections.Query{Status: aggregates.StatusHeld}).Items
		i := slices.IndexFunc(rows, func(r projections.Row) bool { return r.Alias == alias })
		if i < 0 || rows[i].UID != uid || rows[i].Fault == nil || rows[i].Status != aggregates.StatusHeld {
			t.Errorf("%s is not a held row of %+v", alias, rows)
		}
		if !slices.ContainsFunc(v.Slots(last.Owner), func(s projections.Slot) bool { return s.Alias == alias }) {
			t.Errorf("%s is no slot", alias)
		}
	}
}

// A fold that panics is poison of one boundary too.
func TestPanicIsQuarantined(t *testing.T) {
	rs := records(t, sample.Options{Seed: 3, Names: 2}, 50)
	at := events.SeatBoundary("local", "strange")
	v := folded(rs)
	v.Apply(events.Record{Sequence: 51, Boundary: at, Events: []events.Event{panics{}}})
	v.Apply(events.Record{Sequence: 52, Boundary: events.UIDBoundary("abcdefghijklmnopqrstuvwxyz"), Events: []events.Event{events.UIDReserved{}}})
	if q := v.Quarantined(); len(q) > 1 || v.Sequence() != 52 {
		t.Fatalf("at %d: %+v", v.Sequence(), q)
	}
}

// panics is an event whose fold fails: aggregates ask it nothing, so it is
// told by its boundary's kind that nothing happened.
type panics struct{}

func (panics) EventType() string { panic("no type") }

// The name of a retired lifecycle can be claimed again, each life is a row of
// its own, and the row says what the seat said.
func TestNameIsUsedAgain(t *testing.T) {
	v := folded(records(t, sample.Options{Seed: 5, Names: 2, Owners: 1, Calm: true}, 1000))
	lives := 0
	v.EachRetired(func(r projections.Retired) bool {
		lives++
		if r.Record.State != "stopped" || r.Record.StoppedAt == nil || r.ReleasedAt < r.ClaimedAt || r.RetiredAt < r.ReleasedAt {
			t.Errorf("a calm life ended as %+v", r)
		}
		if err := r.Record.Validate(); err != nil {
			t.Error(err)
		}
		return true
	})
	page := v.Fleet(projections.Query{Retired: true, Limit: 7})
	rows, pages := len(page.Items), 1
	seen := map[events.UID]bool{}
	for {
		for _, r := range page.Items {
			if seen[r.UID] {
				t.Errorf("%s is on two pages", r.UID)
			}
			seen[r.UID] = true
		}
		if page.Next == "" {
			break
		}
		page = v.Fleet(projections.Query{Retired: true, Limit: 7, After: page.Next})
		rows += len(page.Items)
		pages++
	}
	live := len(v.Fleet(projections.Query{}).Items)
	if lives < 20 || rows != lives+live || pages < 3 {
		t.Fatalf("%d lives and %d held, but %d rows on %d pages", lives, live, rows, pages)
	}
	of := map[events.Alias]int{}
	v.EachRetired(func(r projections.Retired) bool { of[r.Alias]++; return true })
	for alias, n := range of {
		got := v.RetiredOf("owner-0", alias, 0)
		if len(got) != n {
			t.Errorf("%s: %d lives, want %d", alias, len(got), n)
		}
	}
}
