//go:build linux

package seatdir

import (
	"os"
	"testing"
)

// A journal from anywhere: read, or an error; never an empty one in its place.
func FuzzLoadJournal(f *testing.F) {
	f.Add([]byte(`{"environment":"0198c5a0-0000-7000-8000-000000000001","phase":"running","operations":[{"operation":"operation-00000001","standing":"begun"}]}`))
	f.Add([]byte(`null`))
	f.Add([]byte(``))
	d := In(f.TempDir(), testID)
	if err := d.Make(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(d.File(FileJournal), b, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := d.LoadJournal()
		if err != nil {
			return
		}
		if len(b) == 0 {
			t.Fatal("an empty file is a journal")
		}
		_ = j.Find("operation-00000001")
		if err := d.SaveJournal(j); err != nil {
			t.Errorf("%q was read and can't be written: %v", b, err)
		}
	})
}
