package drill

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// TestLateAnswer (scenario 6): the answer comes 90 seconds after the call,
// long after its deadline; the caller held it as unknown and still gets it.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDir(t, t.TempDir(), Rule{Verb: "reserve", Fault: AcceptThenLateAnswer, DelayMs: 90_000})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		late := make(chan providers.Outcome, 1)
		op := realOp(1, events.VerbReserve)
		out := providers.Call(ctx, d, op, func(_ providers.Operation, o providers.Outcome) { late <- o })
		if out.Kind != providers.Unknown || out.Fault.Code != fault.DeadlineExceeded || time.Since(began) != time.Second {
			t.Errorf("after %s: %+v", time.Since(began), out)
		}
		if f := d.Reconcile(t.Context(), op); f.Verdict != providers.Open {
			t.Errorf("before it lands: %+v", f)
		}
		if o := <-late; o.Kind != providers.Done || time.Since(began) != 90*time.Second {
			t.Errorf("late, after %s: %+v", time.Since(began), o)
		}
	})
}

// TestNeverAnswer (scenario 81): the call ends with its context, and so does
// a read.
func TestNeverAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDir(t, t.TempDir(), Rule{Verb: "reserve", Fault: NeverAnswer}, Rule{Verb: Inspect, Fault: NeverAnswer})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		if out := d.Do(ctx, realOp(1, events.VerbReserve)); out.Kind != providers.Unknown || time.Since(began) != time.Hour {
			t.Errorf("after %s: %+v", time.Since(began), out)
		}
		if _, err := d.Inspect(ctx, envID(1), ""); fault.CodeOf(err) != fault.DeadlineExceeded {
			t.Errorf("inspect: %v", err)
		}
		if f := d.Reconcile(t.Context(), realOp(1, events.VerbReserve)); f.Verdict != providers.Landed {
			t.Errorf("reconcile: %+v", f)
		}
	})
}

func TestCloseEndsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDir(t, t.TempDir(), Rule{Verb: "reserve", Fault: NeverAnswer})
		out := make(chan providers.Outcome)
		go func() { out <- d.Do(context.Background(), realOp(1, events.VerbReserve)) }()
		synctest.Wait()
		d.Close()
		if o := <-out; o.Kind != providers.Unknown {
			t.Errorf("%+v", o)
		}
		if o := d.Do(t.Context(), realOp(2, events.VerbReserve)); o.Kind != providers.Refused {
			t.Errorf("after close: %+v", o)
		}
	})
}

// TestWatch: an expiry is told at its moment, without polling, and so is one
// whose moment was moved.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDir(t, t.TempDir())
		began := time.Now()
		at := began.Add(time.Hour)
		op := realOp(1, events.VerbReserve)
		ctx, cancel := context.WithCancel(t.Context())
		seen := make(chan events.EnvironmentID)
		ended := make(chan error)
		go func() { ended <- d.Watch(ctx, func(id events.EnvironmentID) { seen <- id }) }()
		synctest.Wait() // it sleeps; the reserve has to wake it
		op.Expires = &at
		d.Do(t.Context(), op)
		if id := <-seen; id != envID(1) || time.Since(began).Round(time.Second) != time.Hour {
			t.Errorf("%s after %s", id, time.Since(began))
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestFollowLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDir(t, t.TempDir())
		do := func(n int, v events.Verb) {
			op := realOp(1, v)
			op.ID = events.OperationID(fmt.Sprintf("operation-%08d", n))
			if out := d.Do(t.Context(), op); out.Kind != providers.Done {
				t.Fatalf("%+v", out)
			}
		}
		do(1, events.VerbReserve)
		do(2, events.VerbProvision)
		var got bytes.Buffer
		next := make(chan int64)
		go func() {
			n, err := d.Logs(t.Context(), envID(1), "", 0, true, &got)
			if err != nil {
				t.Error(err)
			}
			next <- n
		}()
		synctest.Wait()
		do(3, events.VerbStart)
		synctest.Wait()
		do(4, events.VerbStop)
		if n := <-next; n != int64(got.Len()) || strings.Count(got.String(), "\n") != 4 {
			t.Errorf("next %d of %d:\n%s", n, got.Len(), &got)
		}
	})
}

func TestSlowStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openDir(t, t.TempDir(), Rule{Verb: ReadFile, Fault: SlowStream, DelayMs: 60_000})
		var f *events.File
		for i, v := range []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbCheckpoint, events.VerbExport} {
			op := realOp(1, v)
			op.ID = events.OperationID(fmt.Sprintf("operation-%08d", i))
			op.Arguments = events.Arguments{CheckpointID: "cp", MaxBytes: 1 << 20}
			out := d.Do(t.Context(), op)
			if out.Kind != providers.Done {
				t.Fatalf("%+v", out)
			}
			f = out.Facts.File
		}
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		r, err := d.ReadFile(ctx, envID(1), "", f.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if len(b) != 2*chunk || fault.CodeOf(err) != fault.DeadlineExceeded {
			t.Errorf("%d bytes in 150 seconds: %v", len(b), err)
		}
	})
}

// TestHostFileFaults (scenario 63): what is on the disk is not what was said.
func TestHostFileFaults(t *testing.T) {
	for _, f := range []Fault{"", TruncateStream, GrowStream, CorruptStream} {
		var rules []Rule
		if f != "" {
			rules = []Rule{{Verb: "export", Fault: f}}
		}
		d := openDir(t, t.TempDir(), rules...)
		path := t.TempDir() + "/out"
		var file events.File
		for i, v := range []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbCheckpoint, events.VerbExport} {
			op := realOp(1, v)
			op.ID = events.OperationID(fmt.Sprintf("operation-%08d", i))
			op.Arguments = events.Arguments{CheckpointID: "cp", MaxBytes: 1 << 20, HostPath: path}
			if out := d.Do(t.Context(), op); out.Kind != providers.Done {
				t.Fatalf("%+v", out)
			} else if v == events.VerbExport {
				file = *out.Facts.File
			}
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if right := digest(b) == file.SHA256; right != (f == "") {
			t.Errorf("fault %q: the file is right: %v", f, right)
		}
	}
}

func TestBadOperationsAreRefused(t *testing.T) {
	d := openDir(t, t.TempDir())
	for name, change := range map[string]func(*providers.Operation){
		"operation id":   func(op *providers.Operation) { op.ID = "short" },
		"environment id": func(op *providers.Operation) { op.Environment = "x" },
		"alias":          func(op *providers.Operation) { op.Alias = "a b" },
		"relative path": func(op *providers.Operation) {
			op.Verb, op.Arguments.HostPath = events.VerbExport, "x"
		},
		"path to a directory": func(op *providers.Operation) {
			op.Verb, op.Arguments.HostPath = events.VerbExport, os.TempDir()
		},
	} {
		op := realOp(1, events.VerbReserve)
		change(&op)
		code := fault.BadRequest
		if filepath.IsAbs(op.Arguments.HostPath) { // what is there is wrong, not what was said
			code = fault.FailedPrecondition
		}
		if out := d.Do(t.Context(), op); out.Kind != providers.Refused || out.Fault.Code != code {
			t.Errorf("%s: %+v", name, out)
		}
	}
	if s := d.Status(); len(s.Calls) != 0 {
		t.Errorf("journaled all the same: %+v", s.Calls)
	}
}

const childDir = "BERTH_DRILL_TEST_DIR"

// TestMain runs the child of TestKilled in the place of the tests.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	os.Exit(m.Run())
}

// child reserves until it is killed, and says so after each answer.
func child(dir string) {
	d, err := Open(Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for n := 1; ; n++ {
		if out := d.Do(context.Background(), realOp(n, events.VerbReserve)); out.Kind != providers.Done {
			os.Exit(1)
		}
		fmt.Println(n)
	}
}

// TestKilled: what was answered before a kill -9 is there afterwards, and the
// directory can be opened again at once.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answered := 0
	for lines := bufio.NewScanner(out); answered < 20 && lines.Scan(); answered++ {
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed: that is its error
	d := openDir(t, dir)
	if s := d.Status(); answered != 20 || len(s.Environments) < answered {
		t.Errorf("%d answered, %d are there", answered, len(s.Environments))
	}
	if f := d.Reconcile(t.Context(), realOp(20, events.VerbReserve)); f.Verdict != providers.Landed {
		t.Errorf("%+v", f)
	}
}
