package providers

import (
	"context"
	"testing"

	"berth/events"
	"berth/events/fault"
)

// resuming is a stub whose seats get transcripts of at most five bytes.
type resuming struct{ *stub }

func (resuming) TakesTranscript() int64 { return 5 }

// A launch that resumes brings exactly the transcript of its plan, to a driver
// that gives it to the seat; everything else is refused before the driver.
func TestATranscriptIsTheOneOfThePlan(t *testing.T) {
	op := someOp(events.VerbStart)
	op.Plan.Resume = &events.Resume{Claim: "k", Source: "s", SHA256: digestOf([]byte("hello")), Size: 5}
	launch := func(transcript string) Material {
		m := launchOf(t, op, canary, holder, nil)
		if transcript != "" {
			m[MaterialTranscript] = []byte(transcript)
		}
		return m
	}
	plain := someOp(events.VerbStart)
	for name, c := range map[string]struct {
		d    func(*stub) Driver
		op   Operation
		m    Material
		want fault.Code
	}{
		"as planned":    {func(s *stub) Driver { return resuming{s} }, op, launch("hello"), ""},
		"none":          {func(s *stub) Driver { return resuming{s} }, op, launch(""), fault.BadRequest},
		"other bytes":   {func(s *stub) Driver { return resuming{s} }, op, launch("jello"), fault.BadRequest},
		"longer":        {func(s *stub) Driver { return resuming{s} }, op, launch("hello!"), fault.BadRequest},
		"it takes none": {func(s *stub) Driver { return s }, op, launch("hello"), fault.Unimplemented},
		"without a plan": {func(s *stub) Driver { return resuming{s} }, plain, func() Material {
			m := launchOf(t, plain, canary, holder, nil)
			m[MaterialTranscript] = []byte("hello")
			return m
		}(), fault.BadRequest},
	} {
		called := 0
		d := c.d(&stub{name: "stub", do: func(context.Context, Operation) Outcome { called++; return DoneWith(someFacts()) }})
		c.op.Material = c.m
		out := Guard(d).Do(t.Context(), c.op)
		if code := fault.CodeOf(errOf(out)); code != c.want || (called > 0) != (c.want == "") {
			t.Errorf("%s: %s %v, called %d times, want %q", name, out.Kind, out.Fault, called, c.want)
		}
	}
	e := Entry{Name: "stub"}
	e.Driver = resuming{&stub{name: "stub"}}
	if err := e.TakesTranscript(5); err != nil {
		t.Error(err)
	}
	if err := e.TakesTranscript(6); fault.CodeOf(err) != fault.ResourceExhausted {
		t.Errorf("one byte too long: %v", err)
	}
}
