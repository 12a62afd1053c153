package transcript_test

import (
	"strings"
	"testing"
	"time"

	"berth/aggregates/transcript"
	"berth/events"
	"berth/events/fault"
)

var (
	begun = time.UnixMilli(1_800_000_000_000).UTC()
	me    = events.Caller{Owner: "local", Actor: "me", UID: "cccccccccccccccccccccccccc"}
	goal  = events.GoalBoundary(me, "g")
)

func staged() transcript.State {
	return transcript.State{}.Apply(events.TranscriptStaged{
		Claim: "k", SHA256: strings.Repeat("a", 64), Size: 3, Source: "s", SourceHost: "h", Holder: me, Instance: "i", Expires: begun.Add(transcript.ClaimFor),
	})
}

func use(change func(*transcript.Use)) transcript.Use {
	u := transcript.Use{Goal: goal, Caller: me, At: "i", Source: "s", Now: begun}
	if change != nil {
		change(&u)
	}
	return u
}

// A claim is used once: by its holder, where the bytes are, for its source and
// in time; everything else is refused, and nothing was executed.
func TestAClaimIsUsedOnce(t *testing.T) {
	s := staged()
	es, err := s.Consume(use(nil))
	if err != nil || len(es) != 1 {
		t.Fatalf("%v, %v", es, err)
	}
	used := s.Apply(es[0])
	if again, err := used.Consume(use(func(u *transcript.Use) { u.Now = begun.Add(time.Hour) })); err != nil || len(again) != 0 {
		t.Errorf("the same goal again: %v, %v", again, err)
	}
	other := events.GoalBoundary(me, "other")
	for _, c := range []struct {
		name  string
		state transcript.State
		use   transcript.Use
		code  fault.Code
		says  string
	}{
		{"none", transcript.State{}, use(nil), fault.NotFound, "none"},
		{"another caller", s, use(func(u *transcript.Use) { u.Caller.Actor = "you" }), fault.PermissionDenied, "other"},
		{"another caller of a used one", used, use(func(u *transcript.Use) { u.Caller.Actor = "you" }), fault.PermissionDenied, "other"},
		{"a second spawn", used, use(func(u *transcript.Use) { u.Goal = other }), fault.FailedPrecondition, "consumed"},
		{"at its end", s, use(func(u *transcript.Use) { u.Now = begun.Add(transcript.ClaimFor) }), fault.FailedPrecondition, "expired"},
		{"another session", s, use(func(u *transcript.Use) { u.Source = "z" }), fault.FailedPrecondition, "source"},
		{"elsewhere", s, use(func(u *transcript.Use) { u.At = "j" }), fault.FailedPrecondition, "elsewhere"},
	} {
		es, err := c.state.Consume(c.use)
		e := fault.From(err)
		if len(es) != 0 || e == nil || e.Code != c.code || e.Outcome != fault.NotExecuted || len(e.Details) != 1 || e.Details[0].Facts["state"] != c.says {
			t.Errorf("%s: %v, %v", c.name, es, err)
		}
	}
	if es, err := s.Consume(use(func(u *transcript.Use) { u.Source = ""; u.Now = begun.Add(transcript.ClaimFor - 1) })); err != nil || len(es) != 1 {
		t.Errorf("in the last moment, for its source: %v, %v", es, err)
	}
}

// A claim expires only in time and only unused, and what came first stays.
func TestAClaimExpires(t *testing.T) {
	s := staged()
	if es := s.Expire(begun.Add(transcript.ClaimFor - 1)); len(es) != 0 {
		t.Errorf("too early: %v", es)
	}
	es := s.Expire(begun.Add(transcript.ClaimFor))
	if len(es) != 1 {
		t.Fatalf("%v", es)
	}
	gone := s.Apply(es[0])
	if !gone.Expired || len(gone.Expire(begun.Add(time.Hour))) != 0 {
		t.Errorf("%+v", gone)
	}
	if late := gone.Apply(events.TranscriptConsumed{Goal: goal}); late.Goal != "" {
		t.Error("an expired claim was used")
	}
	used := s.Apply(events.TranscriptConsumed{Goal: goal})
	if used.Apply(es[0]).Expired || len(used.Expire(begun.Add(time.Hour))) != 0 {
		t.Error("a used claim expired")
	}
	if again := used.Apply(events.TranscriptConsumed{Goal: "goal.x.y.z.w"}); again.Goal != goal {
		t.Error("a second use replaced the first")
	}
	if again := s.Apply(events.TranscriptStaged{Claim: "z"}); again.Claim != "k" {
		t.Error("a claim was made twice")
	}
	if (transcript.State{}).Apply(events.TranscriptConsumed{Goal: goal}).Goal != "" {
		t.Error("a claim that was never made was used")
	}
	if p := s.Plan(); p.Claim != "k" || p.Source != "s" || p.Size != 3 || p.SHA256 != s.SHA256 {
		t.Errorf("%+v", p)
	}
}
