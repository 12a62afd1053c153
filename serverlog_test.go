package berth

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// A start after a kill says nothing of the index that the server makes again;
// whatever else the server warns of is passed on.
func TestAServersIndexIsNoAlarm(t *testing.T) {
	var out bytes.Buffer
	l := serverLog{slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	l.Warnf("Filestore [%s] Stream state outdated, last block has additional entries, will rebuild", "BERTH_x")
	l.Warnf("Filestore [%s] Recovering stream state from index errored: %v", "BERTH_x", "prior state file")
	if out.Len() > 0 {
		t.Errorf("it warns: %s", out.String())
	}
	l.Warnf("Filestore [%s] Stream state detected prior state, could not locate msg block %d", "BERTH_x", 1)
	l.Warnf("%s: Stream state outdated", "another part")
	if n := strings.Count(out.String(), "level=WARN"); n != 2 {
		t.Errorf("%d of 2 warnings were passed on: %s", n, out.String())
	}
}
