package aggregates_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/goal"
	"berth/aggregates/head"
	"berth/aggregates/instance"
	"berth/aggregates/slot"
)

var update = flag.Bool("update", false, "write docs/states.md from the tables")

// docs/states.md is generated from the tables that the folds run on.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString("# States\n\nGenerated from the tables in `aggregates/` by `go test ./aggregates -run TestDocs -update`; not edited by hand.\n" +
		"Each table is the guard, the fold, the exhaustive test and this page. What has no row is refused and changes nothing.\n")
	section := func(title, why, mermaid, rows string) {
		b.WriteString("\n## " + title + "\n\n" + why + "\n\n```mermaid\n" + mermaid + "```\n\n" + rows)
	}
	section("Slot", "The durable claim of a name by an instance.", slot.Table.Mermaid(), slot.Table.Markdown())
	section("Head", "The one current incarnation of an actor.", head.Table.Mermaid(), head.Table.Markdown())
	section("Gate", "Whether credentials may be minted for that lifecycle.", head.GateTable.Mermaid(), head.GateTable.Markdown())
	section("Environment record", "What `inspect` serves: four states.", environment.RecordTable.Mermaid(), environment.RecordTable.Markdown())
	section("Operation", "One logical provider mutation, in the environment's journal.", environment.Table.Mermaid(), environment.Table.Markdown())
	section("Goal", "A long-running command.", goal.Table.Mermaid(), goal.Table.Markdown())
	section("Instance", "A manager's registration.", instance.Table.Mermaid(), instance.Table.Markdown())
	b.WriteString("\n## Status\n\nOne word for a seat, computed from all of the above; the first that holds, in this order of what a person must know first:\n")
	b.WriteString("held (quarantined), none, written-off, retired, uncertain, stopping, retiring, failed, stopped, paused, running, reserved, starting.\n")
	for _, s := range aggregates.Statuses {
		if !strings.Contains(b.String(), string(s)) {
			t.Errorf("the page does not name the status %s", s)
		}
	}
	path := filepath.Join("..", "docs", "states.md")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s is not what the tables say: run go test ./aggregates -run TestDocs -update", path)
	}
}
