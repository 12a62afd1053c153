package hosted_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"testing"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/drill"
	"berth/providers/hosted"
)

// scripted is a client of a provider that misbehaves by one rule.
func scripted(t *testing.T, r drill.Rule) *hosted.Driver {
	t.Helper()
	if r.Times == 0 {
		r.Nth = 1
	}
	_, d := overDrill(t, rulesOf(t, r))
	return d
}

func rulesOf(t *testing.T, r drill.Rule) string {
	t.Helper()
	return fmt.Sprintf(`{"rules":[{"verb":%q,"nth":%d,"times":%d,"fault":%q,"delayMs":%d}]}`, r.Verb, r.Nth, r.Times, r.Fault, r.DelayMs)
}

// TestMatrixOfStreams (R36, R37, scenario 63): however a stream is damaged, what is
// taken for the file is the file.
func TestMatrixOfStreams(t *testing.T) {
	t.Parallel()
	for _, r := range []drill.Rule{
		{Fault: drill.TruncateStream}, {Fault: drill.GrowStream}, {Fault: drill.CorruptStream}, {Fault: drill.SlowStream, DelayMs: 1},
		{Fault: drill.AcceptThenDrop}, {Fault: drill.ErrorAfterAccept}, {Fault: drill.Refuse}, {Fault: drill.Throttle},
		{Fault: drill.NeverAnswer}, {Fault: drill.AcceptThenLateAnswer, DelayMs: 20}, {Fault: drill.Vanish}, {Fault: drill.SwapIncarnation},
	} {
		t.Run(string(r.Fault), func(t *testing.T) {
			r.Verb = drill.ReadFile
			d := scripted(t, r)
			id, ref := provisioned(t, d)
			file := exported(t, d, id, ref)
			limit := patience
			if r.Fault == drill.NeverAnswer {
				limit = hasty
			}
			ctx, cancel := contextFor(limit)
			defer cancel()
			first, err := download(ctx, d, id, ref, file)
			// Of a stream that goes on too long, the provider sends what the export
			// answered and cuts: that may be the file, whole.
			if damaged := r.Fault == drill.TruncateStream || r.Fault == drill.CorruptStream; damaged && err == nil && first {
				t.Errorf("a %s was taken for the file", r.Fault)
			}
			if err == nil && !first && r.Fault != drill.CorruptStream {
				t.Errorf("%s: neither an error nor the file: only a changed byte has to be found by the digest", r.Fault)
			}
			again, err := download(within(t), d, id, ref, file)
			if r.Fault == drill.Vanish {
				if fault.CodeOf(err) != fault.NotFound {
					t.Errorf("the file of what vanished: %v", err)
				}
			} else if err != nil || !again {
				t.Errorf("the second try: %v, the file: %v", err, again)
			}
		})
	}
}

// download reads a file whole; is says that it has the answered length and digest.
func download(ctx context.Context, d providers.Driver, id events.EnvironmentID, ref string, file events.File) (is bool, err error) {
	r, err := d.ReadFile(ctx, id, ref, file.ID, 0)
	if err != nil {
		return false, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, file.ByteLength+1))
	sum := sha256.Sum256(b)
	return int64(len(b)) == file.ByteLength && hex.EncodeToString(sum[:]) == file.SHA256, err
}

// TestMatrixOfOutput (R36): output that is damaged on its way never moves the
// offset back, and never hangs.
func TestMatrixOfOutput(t *testing.T) {
	t.Parallel()
	for _, r := range []drill.Rule{{Fault: drill.TruncateStream}, {Fault: drill.GrowStream}, {Fault: drill.CorruptStream}, {Fault: drill.SlowStream, DelayMs: 1},
		{Fault: drill.AcceptThenDrop}, {Fault: drill.ErrorAfterAccept}, {Fault: drill.Throttle}} {
		t.Run(string(r.Fault), func(t *testing.T) {
			r.Verb = drill.Logs
			d := scripted(t, r)
			id, ref := provisioned(t, d)
			if out := d.Do(within(t), operation(id, events.VerbStart, ref)); out.Kind != providers.Done {
				t.Fatalf("start: %+v", out)
			}
			var first, again bytes.Buffer
			if next, _ := d.Logs(within(t), id, ref, 0, false, &first); next < 0 {
				t.Errorf("the offset went back to %d", next)
			}
			if next, err := d.Logs(within(t), id, ref, 0, false, &again); err != nil || next != int64(again.Len()) {
				t.Errorf("the second try: offset %d after %d bytes, %v", next, again.Len(), err)
			}
		})
	}
}

// TestMatrixOfLists (R92): whatever a list says, an operation id and an
// inspection tell what is.
func TestMatrixOfLists(t *testing.T) {
	t.Parallel()
	for _, f := range []drill.Fault{drill.ListEmpty, drill.ListStale, drill.ListDuplicate} {
		t.Run(string(f), func(t *testing.T) {
			d := scripted(t, drill.Rule{Verb: drill.List, Fault: f, Times: 1000})
			id, ref := provisioned(t, d)
			op := operation(id, events.VerbStart, ref)
			if out := d.Do(within(t), op); out.Kind != providers.Done {
				t.Fatalf("start: %+v", out)
			}
			listed, err := d.List(within(t))
			if err != nil {
				t.Fatal(err)
			}
			if len(listed) == 1 && listed[0].Environment == id {
				t.Errorf("the list tells the truth: %+v", listed)
			}
			if got := d.Reconcile(within(t), op); got.Verdict != providers.Landed {
				t.Errorf("reconcile beside a list that lies: %+v", got)
			}
			if got, err := d.Inspect(within(t), id, ref); err != nil || got.State != events.StateRunning {
				t.Errorf("inspect beside a list that lies: %+v %v", got, err)
			}
		})
	}
}

// TestMatrixOfIncarnations (R64, scenario 10): a machine that was replaced, or
// lost, behind its reference is seen through HTTPS for what it is.
func TestMatrixOfIncarnations(t *testing.T) {
	t.Parallel()
	for _, f := range []drill.Fault{drill.SwapIncarnation, drill.Vanish} {
		t.Run(string(f), func(t *testing.T) {
			d := scripted(t, drill.Rule{Verb: drill.Inspect, Fault: f})
			id, ref := provisioned(t, d)
			out := d.Do(within(t), operation(id, events.VerbStart, ref))
			if out.Kind != providers.Done {
				t.Fatalf("start: %+v", out)
			}
			for range 2 { // it does not come back
				got, err := d.Inspect(within(t), id, ref)
				switch {
				case f == drill.Vanish && fault.CodeOf(err) != fault.NotFound:
					t.Errorf("%+v %v", got, err)
				case f == drill.SwapIncarnation && (err != nil || got.Incarnation == out.Facts.Incarnation):
					t.Errorf("%+v %v", got, err)
				}
			}
		})
	}
}
