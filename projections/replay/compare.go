package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"berth/events"
	"berth/events/eventlog"
	"berth/projections"
)

// Limits of a comparison.
const (
	MaxMismatches = 1000
	maxShown      = 200 // bytes of a value
)

// Mismatch is one field that two views tell differently; Field is empty where
// a whole record is missing.
type Mismatch struct {
	Record string `json:"record"`
	Field  string `json:"field,omitempty"`
	Served string `json:"served"`
	Log    string `json:"log"`
}

// Report is what `replay --verify` answers.
type Report struct {
	Events     uint64     `json:"events"`
	Aggregates uint64     `json:"aggregates"` // boundaries that were folded
	Records    int        `json:"records"`    // that were compared
	Mismatches []Mismatch `json:"mismatches"` // at most MaxMismatches
	AsOf       uint64     `json:"asOf"`
	// Quarantined are boundaries that could not be folded.
	Quarantined []projections.Quarantine `json:"quarantined"`
}

// Verify rebuilds everything to where the served views stand and compares.
// served must not change meanwhile: give a clone.
func Verify(ctx context.Context, log eventlog.Log, served *projections.Views) (Report, error) {
	rebuilt := projections.NewViews(served.Space())
	if served.Sequence() > 0 {
		var err error
		if rebuilt, err = At(ctx, log, served.Space(), Until{Sequence: served.Sequence()}); err != nil {
			return Report{}, err
		}
	}
	rep := Report{Events: rebuilt.Counts().Events, Aggregates: rebuilt.Counts().Boundaries, AsOf: rebuilt.Sequence(), Quarantined: rebuilt.Quarantined()}
	rep.Mismatches, rep.Records = compare(served, rebuilt)
	return rep, nil
}

// Compare names every field in which served differs from rebuilt, by record
// and field, at most MaxMismatches.
func Compare(served, rebuilt *projections.Views) []Mismatch {
	m, _ := compare(served, rebuilt)
	return m
}

func compare(served, rebuilt *projections.Views) ([]Mismatch, int) {
	c := comparison{found: []Mismatch{}}
	if a, b := served.Sequence(), rebuilt.Sequence(); a != b {
		c.add("views", "sequence", fmt.Sprint(a), fmt.Sprint(b))
	}
	want := map[string]any{}
	for name, value := range rebuilt.Records() {
		want[name] = value
	}
	n := len(want)
	for name, value := range served.Records() {
		other, ok := want[name]
		if !ok {
			n++
			c.add(name, "", show(reflect.ValueOf(value)), "absent")
			continue
		}
		delete(want, name)
		c.record = name
		c.walk("", reflect.ValueOf(value), reflect.ValueOf(other))
	}
	for name, value := range want {
		c.add(name, "", "absent", show(reflect.ValueOf(value)))
	}
	slices.SortFunc(c.found, func(a, b Mismatch) int {
		return cmp.Or(strings.Compare(a.Record, b.Record), strings.Compare(a.Field, b.Field))
	})
	return c.found, n
}

type comparison struct {
	record string
	found  []Mismatch
}

func (c *comparison) add(record, field, served, log string) {
	if len(c.found) < MaxMismatches {
		c.found = append(c.found, Mismatch{Record: record, Field: field, Served: served, Log: log})
	}
}

func (c *comparison) differ(path string, a, b reflect.Value) {
	c.add(c.record, path, show(a), show(b))
}

// walk compares two values of one type field by field. A nil and an empty
// list are the same, times are compared as instants.
func (c *comparison) walk(path string, a, b reflect.Value) {
	if a.Type() != b.Type() {
		c.differ(path, a, b)
		return
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		switch {
		case a.IsNil() != b.IsNil():
			c.differ(path, a, b)
		case !a.IsNil():
			c.walk(path, a.Elem(), b.Elem())
		}
	case reflect.Struct:
		c.fields(path, a, b)
	case reflect.Slice:
		if a.Len() != b.Len() {
			c.differ(path, a, b)
			return
		}
		for i := range a.Len() {
			c.walk(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))
		}
	case reflect.Map:
		if a.Len() != b.Len() {
			c.differ(path, a, b)
			return
		}
		for _, k := range a.MapKeys() {
			if other := b.MapIndex(k); !other.IsValid() {
				c.differ(fmt.Sprintf("%s[%v]", path, k), a, b)
			} else {
				c.walk(fmt.Sprintf("%s[%v]", path, k), a.MapIndex(k), other)
			}
		}
	default:
		if !a.Equal(b) {
			c.differ(path, a, b)
		}
	}
}

func (c *comparison) fields(path string, a, b reflect.Value) {
	t := a.Type()
	if t == reflect.TypeFor[time.Time]() && a.CanInterface() {
		if !a.Interface().(time.Time).Equal(b.Interface().(time.Time)) {
			c.differ(path, a, b)
		}
		return
	}
	if t == reflect.TypeFor[events.Quantity]() {
		if !a.Equal(b) {
			c.differ(path, a, b)
		}
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		at := f.Name
		if path != "" {
			at = path + "." + f.Name
		}
		c.walk(at, a.Field(i), b.Field(i))
	}
}

func show(v reflect.Value) string {
	if !v.IsValid() || !v.CanInterface() {
		return "?"
	}
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return "?"
	}
	if len(b) > maxShown {
		return strings.ToValidUTF8(string(b[:maxShown]), "") + "…"
	}
	return string(b)
}
