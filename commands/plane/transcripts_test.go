package plane_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/aggregates/transcript"
	"berth/commands"
	"berth/commands/commandstest"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

// box is a bucket in memory.
type box struct {
	mu   sync.Mutex
	held map[string][]byte
}

func (b *box) Name() string { return "box" }

func (b *box) Has(_ context.Context, object string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.held[object]
	return ok, nil
}

func (b *box) Fetch(_ context.Context, object string, most int64, to io.Writer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err := io.Copy(to, io.LimitReader(bytes.NewReader(b.held[object]), most+1))
	return err
}

func (b *box) Remove(_ context.Context, object string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.held, object)
	return nil
}

func (b *box) put(object, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held[object] = []byte(text)
}

func receiving(t *testing.T, c commandstest.Config) (*commandstest.World, *box) {
	w, b := commandstest.New(t, c), &box{held: map[string][]byte{}}
	w.Plane.Transfers = b
	return w, b
}

func announced(text string) commands.TranscriptInput {
	sum := sha256.Sum256([]byte(text))
	return commands.TranscriptInput{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(text)), Source: "session-7", SourceHost: "laptop"}
}

// bring gives the instance a transcript and returns the claim.
func bring(t *testing.T, w *commandstest.World, b *box, id, text string) string {
	t.Helper()
	in := announced(text)
	b.put(in.SHA256, text)
	r, err := commandstest.Ask(w, commands.TranscriptReceive, id, in)
	if err != nil || r.State != commands.TranscriptStaged || !r.Fetched {
		t.Fatalf("%+v, %v", r, err)
	}
	return r.Claim
}

func resuming(name, claim string) commands.SpawnInput {
	in := commandstest.Drill(name)
	in.Resume = claim
	return in
}

// It says where to put the bytes; what is put there is taken over once and
// removed from the bucket, and the same request has the same claim.
func TestATranscriptIsTakenOver(t *testing.T) {
	w, b := receiving(t, commandstest.Config{})
	in := announced("hello")
	r, err := commandstest.Ask(w, commands.TranscriptReceive, "t", in)
	if err != nil || r.State != commands.TranscriptUpload || r.Bucket != "box" || r.Object != in.SHA256 || r.Claim != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	tip := w.Tip()
	claim := bring(t, w, b, "t", "hello")
	if got, err := os.ReadFile(filepath.Join(w.Dir, "transcripts", claim)); err != nil || string(got) != "hello" {
		t.Errorf("kept: %q, %v", got, err)
	}
	if there, _ := b.Has(t.Context(), in.SHA256); there {
		t.Error("it is still in the bucket")
	}
	again, err := commandstest.Ask(w, commands.TranscriptReceive, "t", in)
	if err != nil || again.Claim != claim || again.Fetched || w.Tip() != tip+1 {
		t.Errorf("again: %+v, %v, tip %d after %d", again, err, w.Tip(), tip)
	}
	if _, err := commandstest.Ask(w, commands.TranscriptReceive, "t", announced("other")); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("another transcript under the id: %v", err)
	}
}

// Other bytes than the announced ones are removed, and give no claim.
func TestADamagedTranscriptIsRemoved(t *testing.T) {
	w, b := receiving(t, commandstest.Config{})
	in, tip := announced("hello"), w.Tip()
	for _, text := range []string{"jello", "hello!", "hell", ""} {
		b.put(in.SHA256, text)
		_, err := commandstest.Ask(w, commands.TranscriptReceive, "t", in)
		if code, outcome := commandstest.Code(err); code != fault.FailedPrecondition || outcome != fault.NotExecuted {
			t.Errorf("%q: %v", text, err)
		}
		if there, _ := b.Has(t.Context(), in.SHA256); there {
			t.Errorf("%q is still in the bucket", text)
		}
	}
	left, err := os.ReadDir(filepath.Join(w.Dir, "transcripts"))
	if err != nil || len(left) != 0 || w.Tip() != tip {
		t.Errorf("left: %v, %v; tip %d, was %d", left, err, w.Tip(), tip)
	}
}

// Of many spawns that try one claim at once, one has it, and nothing is made
// for the others; the seat's plan names what it resumes.
func TestOneSpawnHasTheClaim(t *testing.T) {
	w, b := receiving(t, commandstest.Config{})
	claim := bring(t, w, b, "t", "hello")
	names := []string{"a", "b", "c", "d", "e", "f"}
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, n := range names {
		all.Go(func() { _, errs[i] = commandstest.Ask(w, commands.Spawn, "spawn-"+n, resuming(n, claim)) })
	}
	all.Wait()
	won := ""
	for i, err := range errs {
		if err == nil {
			won += names[i]
		} else if code, outcome := commandstest.Code(err); code != fault.FailedPrecondition || outcome != fault.NotExecuted {
			t.Errorf("%s: %v", names[i], err)
		}
	}
	if len(won) != 1 {
		t.Fatalf("%q have the claim", won)
	}
	w.Ended("spawn-" + won)
	w.Views.Read(func(v *projections.Views) {
		if s, ok := v.Seat(commandstest.Caller.Owner, events.Alias(won)); !ok || s.Environment.Plan.Resume == nil || s.Environment.Plan.Resume.Claim != claim || s.Status() != "running" {
			t.Errorf("%+v", s.Environment.Plan)
		}
		if n := v.Held(); n != 1 {
			t.Errorf("%d names are held", n)
		}
	})
	if r, err := commandstest.Ask(w, commands.Spawn, "spawn-"+won, resuming(won, claim)); err != nil || string(r.Name) != won {
		t.Errorf("the same goal again: %+v, %v", r, err)
	}
}

// A transcript stays while its seat lives, and goes after it; an unused claim
// expires, and a file that no claim was made on goes, too.
func TestTranscriptsGoInTime(t *testing.T) {
	begun := time.Now()
	var passed atomic.Int64 // by the plane's clock; its offers ask it, too
	w, b := receiving(t, commandstest.Config{Now: func() time.Time { return begun.Add(time.Duration(passed.Load())) }})
	used, unused := bring(t, w, b, "used", "hello"), bring(t, w, b, "unused", "there")
	dir := filepath.Join(w.Dir, "transcripts")
	orphan := filepath.Join(dir, strings.Repeat("a", 26))
	if err := os.WriteFile(orphan, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := commandstest.Ask(w, commands.Spawn, "spawn-a", resuming("a", used)); err != nil {
		t.Fatal(err)
	}
	w.Ended("spawn-a")
	left := func(want ...string) {
		t.Helper()
		if err := w.Plane.SweepTranscripts(t.Context()); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != len(want) {
			t.Fatalf("%v are left, %v; want %v", files, err, want)
		}
	}
	left(used, unused, orphan)
	passed.Add(int64(transcript.ClaimFor + time.Minute))
	left(used)
	if _, err := commandstest.Ask(w, commands.Spawn, "spawn-b", resuming("b", unused)); fault.CodeOf(err) != fault.FailedPrecondition {
		t.Errorf("an expired claim: %v", err)
	}
	passed.Add(int64(time.Hour))
	left(used)
	if _, err := commandstest.Ask(w, commands.Retire, "end", commands.RetireInput{Named: commands.Named{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	w.Until("a is gone", func(v *projections.Views) bool { return v.Held() == 0 })
	left()
	rs, err := w.Log.Load(t.Context(), events.TranscriptBoundary(unused), 0)
	if err != nil || len(rs) != 2 {
		t.Fatalf("%d records, %v", len(rs), err)
	}
	if _, ok := rs[1].Events[0].(events.TranscriptExpired); !ok {
		t.Errorf("%+v", rs[1].Events)
	}
}

// A refused spawn leaves the claim to the next one.
func TestARefusedSpawnLeavesTheClaim(t *testing.T) {
	w, b := receiving(t, commandstest.Config{MaxSeats: 1})
	w.Spawn("taken")
	claim := bring(t, w, b, "t", "hello")
	for _, name := range []string{"taken", "other"} { // the name is held; the instance is full
		if _, err := commandstest.Ask(w, commands.Spawn, "no-"+name, resuming(name, claim)); err == nil {
			t.Fatalf("%s was accepted", name)
		}
	}
	if _, err := commandstest.Ask(w, commands.Retire, "end", commands.RetireInput{Named: commands.Named{Name: "taken"}}); err != nil {
		t.Fatal(err)
	}
	w.Until("it is gone", func(v *projections.Views) bool { return v.Held() == 0 })
	if _, err := commandstest.Ask(w, commands.Spawn, "yes", resuming("other", claim)); err != nil {
		t.Errorf("the claim was used up by a refused spawn: %v", err)
	}
	if w.Ended("yes").State != events.GoalSucceeded {
		t.Errorf("%+v", w.Ended("yes"))
	}
}

// The input is bounded, and what is no claim is refused before anything.
func TestTranscriptInput(t *testing.T) {
	good := announced("x")
	for name, change := range map[string]func(*commands.TranscriptInput){
		"digest":  func(in *commands.TranscriptInput) { in.SHA256 = strings.ToUpper(in.SHA256) },
		"nothing": func(in *commands.TranscriptInput) { in.Size = 0 },
		"size":    func(in *commands.TranscriptInput) { in.Size = commands.MaxTranscript + 1 },
		"source":  func(in *commands.TranscriptInput) { in.Source = "" },
		"host":    func(in *commands.TranscriptInput) { in.SourceHost = "" },
		"long":    func(in *commands.TranscriptInput) { in.Source = strings.Repeat("s", commands.MaxSource+1) },
		"title":   func(in *commands.TranscriptInput) { in.Title = strings.Repeat("s", commands.MaxTitle+1) },
	} {
		in := good
		change(&in)
		if fault.CodeOf(in.Check()) != fault.BadRequest {
			t.Errorf("%s: accepted", name)
		}
	}
	in := good
	in.Size, in.Source, in.Title = commands.MaxTranscript, strings.Repeat("s", commands.MaxSource), strings.Repeat("s", commands.MaxTitle)
	if err := in.Check(); err != nil {
		t.Errorf("at the limits: %v", err)
	}
	for _, s := range []commands.SpawnInput{resuming("a", "short"), {Name: "a", ResumeSource: "s"}} {
		if fault.CodeOf(s.Check()) != fault.BadRequest {
			t.Errorf("%+v: accepted", s)
		}
	}
}
