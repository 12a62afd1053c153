//go:build linux

package stage

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, nil, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	tool := write("tool", 0o755)
	text := write("text", 0o644)
	for name, want := range map[string]string{"tool": tool, tool: tool, "text": "", text: "", "none": "", dir: "", filepath.Join(dir, "none"): "", "": ""} {
		got, err := LookPath(name, "relative:/no/such:"+dir)
		if want == "" && err == nil || want != "" && (err != nil || got != want) {
			t.Errorf("%q: %q, %v, want %q", name, got, err, want)
		}
	}
}
