package sim

import (
	"path/filepath"
	"reflect"

	"berth/events"
	"berth/projections"
)

// readers are the projections: fed late, restored from a snapshot that is
// old, and given records that they have seen.
type readers struct {
	s        *sim
	views    *projections.Views
	snapshot *projections.Views
	saved    bool
}

const space = events.Space("sim")

func newReaders(s *sim) *readers {
	return &readers{s: s, views: projections.NewViews(space)}
}

// seat is where a shelf begins: a fold that may be old.
func (v *readers) seat(o events.Owner, a events.Alias) (seatState, bool) { return v.views.Seat(o, a) }

// read catches up, and sometimes saves, or starts again from what was saved.
func (v *readers) read() {
	v.feed(v.views.Sequence())
	switch v.s.rng.IntN(4) {
	case 0:
		v.save()
	case 1:
		v.restore()
	case 2:
		v.feed(v.views.Sequence() / 2) // all of it comes again
	}
}

func (v *readers) feed(after uint64) {
	_ = v.s.log.Scan(ctx(), after, func(r events.Record) error {
		if !v.s.o.Sabotage.LosesRecords || r.Sequence%97 != 0 {
			v.views.Apply(r)
		}
		return nil
	})
}

func (v *readers) save() {
	if v.s.o.Dir == "" {
		v.snapshot = v.views.Clone()
		return
	}
	if err := projections.Save(v.path(), "sim", v.views); err != nil {
		v.s.broke("%v", err)
	}
	v.saved = true
}

// restore goes back to what was saved; false if nothing was.
func (v *readers) restore() bool {
	switch {
	case v.saved:
		views, err := projections.Load(v.path(), "sim", space)
		if err != nil {
			v.s.broke("%v", err)
			return false
		}
		v.views = views
	case v.snapshot != nil:
		v.views = v.snapshot.Clone()
	}
	return v.saved || v.snapshot != nil
}

func (v *readers) path() string { return filepath.Join(v.s.o.Dir, "views") }

// final compares what was folded bit by bit with a fold from the beginning.
func (v *readers) final() {
	v.restore()
	v.feed(v.views.Sequence())
	got := map[string]any{}
	for name, r := range v.views.Records() {
		got[name] = r
	}
	whole := projections.NewViews(space)
	_ = v.s.log.Scan(ctx(), 0, func(r events.Record) error { whole.Apply(r); return nil })
	want := 0
	for name, r := range whole.Records() {
		if want++; !reflect.DeepEqual(got[name], r) {
			v.s.broke("law 4: %s was folded to %+v, and from the beginning it is %+v", name, got[name], r)
			return
		}
	}
	if want != len(got) {
		v.s.broke("law 4: %d records of the projections, and from the beginning %d", len(got), want)
	}
	if n, w := v.views.Held(), len(v.views.WrittenOff()); n > 0 || w > 0 {
		v.s.broke("the projections hold %d names and %d written-off environments at the end", n, w)
	}
}
