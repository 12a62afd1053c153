package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "life")
	for _, name := range []string{"a", "b"} {
		if err := Create(dir, name, []byte("of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Create(dir, "a", []byte("another")); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("a file that exists: %v", err)
	}
	for path, perm := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "a"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != perm {
			t.Fatalf("%s: %v %v", path, info, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != "of a" {
		t.Fatalf("%q %v", b, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Fatalf("%v %v", files, err)
	}
}

func TestCreateWhereNothingCanBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Create(file, "a", nil); err == nil {
		t.Fatal("a file was made below a file")
	}
}
