package projections_test

import (
	"encoding/json"
	"strings"
	"testing"

	"berth/events"
	"berth/events/fault"
	"berth/projections"
	"berth/projections/sample"
)

func record(t *testing.T) projections.ManagedEnvironmentRecord {
	t.Helper()
	v := folded(records(t, sample.Options{Seed: 1, Names: 1, Calm: true, Stay: true}, 40))
	items := v.Fleet(projections.Query{}).Items
	if len(items) != 1 {
		t.Fatalf("%d rows", len(items))
	}
	return items[0].Environment
}

// R60, R66, R69: the record is closed and its times are epoch milliseconds.
func TestRecordIsClosed(t *testing.T) {
	b, err := json.Marshal(record(t))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := "arch capabilities createdAt engine expiresAt host id image owner probedAt provider providerRef space state version"
	if names := strings.Join(sortedKeys(got), " "); names != want {
		t.Errorf("fields %s\nwant   %s", names, want)
	}
	if string(got["createdAt"]) < "1772366400000" || len(got["createdAt"]) != 13 {
		t.Errorf("createdAt is %s", got["createdAt"])
	}
}

// R71, R72, R74: every string is record text at most 2048 bytes long, values
// are closed, and a refusal names the field and never repeats the text.
func TestRecordValidate(t *testing.T) {
	good := record(t)
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	type edit = func(*projections.ManagedEnvironmentRecord)
	good.VolumeID = strings.Repeat("v", events.MaxText)
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]edit{
		"volumeId":     func(r *projections.ManagedEnvironmentRecord) { r.VolumeID += "v" },
		"providerRef":  func(r *projections.ManagedEnvironmentRecord) { r.ProviderRef = "" },
		"provider":     func(r *projections.ManagedEnvironmentRecord) { r.Provider = "" },
		"host":         func(r *projections.ManagedEnvironmentRecord) { r.Host = "Bearer abcdefgh" },
		"network":      func(r *projections.ManagedEnvironmentRecord) { r.Network = "https://u:hunter2@example.org/" },
		"image.ref":    func(r *projections.ManagedEnvironmentRecord) { r.Image.Reference = "a\x00b" },
		"image.kind":   func(r *projections.ManagedEnvironmentRecord) { r.Image.Kind = "disk" },
		"state":        func(r *projections.ManagedEnvironmentRecord) { r.State = "paused" },
		"version":      func(r *projections.ManagedEnvironmentRecord) { r.Version = "v2" },
		"createdAt":    func(r *projections.ManagedEnvironmentRecord) { r.CreatedAt = -1 },
		"expiresAt":    func(r *projections.ManagedEnvironmentRecord) { n := int64(1 << 60); r.ExpiresAt = &n },
		"image.digest": func(r *projections.ManagedEnvironmentRecord) { r.Image.Digest = "password=hunter2" },
	} {
		bad := good
		f(&bad)
		err := bad.Validate()
		if fault.CodeOf(err) != fault.BadRequest || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The shapes that scripts rely on.
func TestShapesOfInspectAndFleet(t *testing.T) {
	v := folded(records(t, sample.Options{Seed: 1, Names: 1, Owners: 1, Calm: true, Stay: true}, 40))
	row := v.Fleet(projections.Query{}).Items[0]
	in, ok := v.Inspect(row.Owner, row.Alias)
	if !ok {
		t.Fatal("the seat is not there")
	}
	for _, c := range []struct {
		value any
		want  []string
	}{
		{v.Fleet(projections.Query{}), []string{`"items":[{"alias":`, `"environment":{"version":"berth-manager-environment-record/v1"`, `"operation":{"id":`, `"verb":"start"`, `"state":"confirmed"`, `"asOf":`}},
		{in, []string{`"alias":`, `"live":true`, `"slot":{`, `"phase":"active"`, `"head":{"state":"active"`, `"gate":"open"`, `"environment":{`, `"operation":{`, `"consistency":"snapshot"`, `"asOf":`}},
		{projections.NewViews("x").Fleet(projections.Query{Retired: true}), []string{`{"items":[],"asOf":0}`}},
	} {
		b, err := json.Marshal(c.value)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range c.want {
			if !strings.Contains(string(b), w) {
				t.Errorf("%s is not in %s", w, b)
			}
		}
	}
	if _, ok := v.Inspect("nobody", "nothing"); ok {
		t.Error("a name that was never claimed is there")
	}
}
