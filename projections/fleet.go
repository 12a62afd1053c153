package projections

import (
	"cmp"
	"slices"
	"strings"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/slot"
	"berth/events"
	"berth/events/fault"
)

// MaxFleet is the most rows of one answer; Query.After asks for the rest.
const MaxFleet = 10_000

// Query chooses rows of the fleet. The zero value is every seat that is held.
type Query struct {
	Owner    events.Owner      // empty: every owner
	Provider string            // empty: every provider
	Status   aggregates.Status // empty: every status
	Retired  bool              // also lifecycles that have ended, after the others
	Limit    int               // 0 or more than MaxFleet: MaxFleet
	// After is Page.Next of the page before.
	After string
}

// Page is one answer of Fleet.
type Page struct {
	Items []Row  `json:"items"`
	AsOf  uint64 `json:"asOf"`
	// Next continues after this page; empty: there is no more.
	Next string `json:"next,omitempty"`
}

// Row is one line of `ls`: the closed record, and beside it what the record
// does not say. Times are epoch ms.
type Row struct {
	Alias       events.Alias             `json:"alias"`
	Owner       events.Owner             `json:"owner"`
	UID         events.UID               `json:"uid,omitempty"`
	Status      aggregates.Status        `json:"status"`
	Environment ManagedEnvironmentRecord `json:"environment"`
	Operation   *OperationView           `json:"operation"` // null: none yet
	Holder      events.InstanceID        `json:"holder,omitempty"`
	Target      events.Target            `json:"target,omitempty"`
	Resources   events.Resources         `json:"resources"`
	Deadline    *int64                   `json:"deadline,omitempty"` // accepted end of life
	Reason      string                   `json:"reason,omitempty"`   // why it ends or ended
	ReleasedAt  *int64                   `json:"releasedAt,omitempty"`
	RetiredAt   *int64                   `json:"retiredAt,omitempty"`
	ExitCode    *int                     `json:"exitCode,omitempty"`
	Fault       *fault.Error             `json:"fault,omitempty"` // of a refusal or a quarantine
}

// OperationView is one operation of the journal as readers see it.
type OperationView struct {
	ID      events.OperationID `json:"id"`
	Verb    events.Verb        `json:"verb"`
	State   environment.Phase  `json:"state"`
	At      int64              `json:"at"` // of its last change
	Stuck   bool               `json:"stuck,omitempty"`
	Waiting int                `json:"waiting,omitempty"` // operations queued behind it
	Fault   *fault.Error       `json:"fault,omitempty"`
}

// RowOf is the row of a seat that is held or quarantined.
func RowOf(s aggregates.Seat, space events.Space) Row {
	e := s.Environment
	r := Row{
		Alias: s.Alias, Owner: s.Owner, UID: s.Slot.UID, Status: s.Status(), Environment: RecordOf(s, space),
		Operation: operationOf(e), Holder: s.Slot.Holder, Target: e.Target, Resources: e.Plan.Resources,
		Deadline: millis(e.Deadline), Reason: s.Slot.Reason, ExitCode: e.ExitCode, Fault: e.Refusal,
	}
	if s.Quarantine != nil {
		r.Fault = s.Quarantine
	}
	return r
}

func operationOf(e environment.State) *OperationView {
	op, ok := e.Last()
	if !ok {
		return nil
	}
	waiting := len(e.Queue)
	if waiting > 0 && e.Queue[0].ID == op.ID {
		waiting--
	}
	return &OperationView{ID: op.ID, Verb: op.Verb, State: op.Phase, At: op.At.UnixMilli(), Stuck: op.Stuck, Waiting: waiting, Fault: op.Fault}
}

// Row is the row of a lifecycle that has ended.
func (r Retired) Row() Row {
	status := aggregates.StatusRetired
	if r.WrittenOff {
		status = aggregates.StatusWrittenOff
	}
	released, retired := r.ReleasedAt, r.RetiredAt
	return Row{
		Alias: r.Alias, Owner: r.Owner, UID: r.UID, Status: status, Environment: r.Record, Holder: r.Holder,
		Target: events.TargetRetired, Resources: r.Resources, Reason: r.Reason, ReleasedAt: &released, RetiredAt: &retired, ExitCode: r.ExitCode,
	}
}

// EachRetired calls f for every lifecycle that has ended, in the order of
// their ends, until f returns false.
func (v *Views) EachRetired(f func(Retired) bool) {
	for i := range v.retired.rows {
		if !f(v.retiredRow(uint32(i))) {
			return
		}
	}
}

func (v *Views) retiredRow(i uint32) Retired {
	r := v.retired.row(i)
	r.Record.Space = v.space
	return r
}

// RetiredOf lists the ended lifecycles of a name, newest first, at most limit
// (0: all).
func (v *Views) RetiredOf(o events.Owner, a events.Alias, limit int) []Retired {
	var out []Retired
	row, ok := v.last[events.SeatBoundary(o, a)]
	for next := row + 1; ok && next > 0 && (limit == 0 || len(out) < limit); {
		r := v.retiredRow(next - 1)
		out = append(out, r)
		next = r.prev
	}
	return out
}

// Fleet lists seats by owner and name, and then, if asked, ended lifecycles
// from the newest to the oldest.
func (v *Views) Fleet(q Query) Page {
	limit := q.Limit
	if limit <= 0 || limit > MaxFleet {
		limit = MaxFleet
	}
	page := Page{Items: []Row{}, AsOf: v.sequence}
	if !strings.HasPrefix(q.After, afterRetired) {
		for _, e := range v.sorted(q) {
			if len(page.Items) == limit {
				page.Next = string(page.Items[limit-1].boundary())
				return page
			}
			page.Items = append(page.Items, v.rowOf(e))
		}
	}
	if q.Retired {
		v.ended(q, limit, &page)
	}
	return page
}

// rowOf is the row of an entry. A name whose record can't be read after its
// lifecycle ended shows that lifecycle, held: it is all that is known.
func (v *Views) rowOf(e *entry) Row {
	if e.prev == 0 || !unread(e.seat) {
		return RowOf(e.seat, v.space)
	}
	row := v.retiredRow(e.prev - 1).Row()
	row.Status, row.Fault = e.seat.Status(), e.seat.Quarantine
	return row
}

// unread says that a name is quarantined and nothing of a lifecycle that began
// since it was last free can be read.
func unread(s aggregates.Seat) bool { return s.Quarantine != nil && s.Slot.UID == "" }

func (r Row) boundary() events.Boundary { return events.SeatBoundary(r.Owner, r.Alias) }

// sorted is the live seats that q wants, after its cursor, by boundary.
func (v *Views) sorted(q Query) []*entry {
	names := make([]events.Boundary, 0, len(v.live))
	for b, e := range v.live {
		if q.After != "" && string(b) <= q.After {
			continue
		}
		if q.wants(e.seat.Owner, e.seat.Environment.Plan.Provider) && (q.Status == "" || e.seat.Status() == q.Status) {
			names = append(names, b)
		}
	}
	slices.Sort(names)
	out := make([]*entry, len(names))
	for i, b := range names {
		out[i] = v.live[b]
	}
	return out
}

func (q Query) wants(o events.Owner, provider string) bool {
	return (q.Owner == "" || q.Owner == o) && (q.Provider == "" || q.Provider == provider)
}

// Slot is one line of `slots` (2.1).
type Slot struct {
	Alias       events.Alias         `json:"alias"`
	Owner       events.Owner         `json:"owner"`
	UID         events.UID           `json:"uid"`
	Phase       slot.Phase           `json:"phase"`
	Holder      events.InstanceID    `json:"holder"`
	Epoch       uint64               `json:"epoch,omitempty"`
	Environment events.EnvironmentID `json:"environment"`
	Status      aggregates.Status    `json:"status"`
	ClaimedAt   int64                `json:"claimedAt"`
	Reason      string               `json:"reason,omitempty"`
	Cleaned     bool                 `json:"cleaned,omitempty"`
	Goal        events.Boundary      `json:"goal,omitempty"`
}

// SlotOf is the slot of a seat.
func SlotOf(s aggregates.Seat) Slot {
	return Slot{Alias: s.Alias, Owner: s.Owner, UID: s.Slot.UID, Phase: s.Slot.Phase, Holder: s.Slot.Holder, Epoch: s.Slot.Epoch,
		Environment: s.Environment.ID, Status: s.Status(), ClaimedAt: stamp(s.Slot.ClaimedAt), Reason: s.Slot.Reason, Cleaned: s.Slot.Cleaned, Goal: s.Slot.Goal}
}

// Slots lists the slots that are held or quarantined, of one owner or (empty)
// of all, by owner and name.
func (v *Views) Slots(o events.Owner) []Slot {
	out := []Slot{}
	for _, e := range v.live {
		if (e.seat.Slot.Held() || e.seat.Quarantine != nil) && (o == "" || e.seat.Owner == o) {
			out = append(out, SlotOf(e.seat))
		}
	}
	slices.SortFunc(out, func(a, b Slot) int {
		return cmp.Or(strings.Compare(string(a.Owner), string(b.Owner)), strings.Compare(string(a.Alias), string(b.Alias)))
	})
	return out
}
