package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"berth/events/fault"
)

func TestTable(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[fault.Code]bool{}
	for _, r := range fault.Table {
		if seen[r.Code] || !name.MatchString(string(r.Code)) || r.HTTP < 400 || r.HTTP > 599 || r.Exit == 0 || r.Meaning == "" || r.Outcome == "" {
			t.Errorf("row %+v", r)
		}
		seen[r.Code] = true
		if e := fault.New(r.Code, "x %d", 1); e.Outcome != r.Outcome || e.Retryable != r.Retryable || e.Message != "x 1" {
			t.Errorf("New(%s) is %+v", r.Code, e)
		}
	}
	if r := fault.RowOf("from-the-future"); r.Code != "from-the-future" || r.Exit != fault.ExitFailure {
		t.Errorf("an unknown code reads as %+v", r)
	}
}

func TestExitOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want fault.Exit
	}{
		{nil, fault.ExitOK},
		{errors.New("x"), fault.ExitUnavailable},
		{fault.New(fault.NotFound, "x"), fault.ExitNotFound},
		{fault.New(fault.Conflict, "x"), fault.ExitConflict},
		{fault.New(fault.Conflict, "x").WithOutcome(fault.Unknown), fault.ExitUncertain},
		{fault.New(fault.DeadlineExceeded, "x"), fault.ExitTimeout},
		{fault.New(fault.Internal, "x"), fault.ExitUncertain},
		{fmt.Errorf("wrapped: %w", fault.New(fault.BadRequest, "x")), fault.ExitUsage},
		{fault.New(fault.FailedPrecondition, "x").WithDetail(fault.DetailBadConfig), fault.ExitBadConfig},
		{fault.New(fault.UnsupportedVersion, "x").WithDetail(fault.DetailNewerFormat), fault.ExitNewerFormat},
		{fault.New(fault.NotFound, "x").WithDetail(fault.DetailLogLost), fault.ExitLogLost},
		{fault.New(fault.FailedPrecondition, "x").WithDetail(fault.DetailDataInUse), fault.ExitDataInUse},
		{fault.New(fault.FailedPrecondition, "x").WithDetail(fault.DetailPortInUse), fault.ExitPortInUse},
		{fault.New(fault.Unavailable, "x"), fault.ExitUnavailable},
		{fault.New(fault.Unavailable, "x").WithDetail(fault.DetailUnanswered), fault.ExitUncertain},
	} {
		if got := fault.ExitOf(c.err); got != c.want {
			t.Errorf("%v exits %d, want %d", c.err, got, c.want)
		}
	}
}

func TestCopiesAreIndependent(t *testing.T) {
	a := fault.New(fault.Conflict, "x").WithDetail("berth.one", "k", "v", "odd")
	b, c := a.WithDetail("berth.two"), a.WithDetail("berth.three")
	if len(a.Details) != 1 || b.Details[1].Kind != "berth.two" || c.Details[1].Kind != "berth.three" || a.Details[0].Facts["k"] != "v" {
		t.Fatalf("%+v %+v %+v", a, b, c)
	}
	if h := a.WithHint("do %s", "this"); a.Hint != "" || h.Hint != "do this" {
		t.Fatal(h)
	}
	if !errors.Is(fmt.Errorf("w: %w", a), fault.New(fault.Conflict, "")) || errors.Is(a, fault.New(fault.NotFound, "")) {
		t.Fatal("errors.Is does not go by code")
	}
}

// TestMissingOutcomeE4: an absent outcome reads as unknown.
func TestMissingOutcomeE4(t *testing.T) {
	var e fault.Error
	if err := json.Unmarshal([]byte(`{"code":"conflict","message":"m"}`), &e); err != nil || e.Outcome != fault.Unknown {
		t.Fatal(e.Outcome, err)
	}
	in := fault.New(fault.NotFound, "m").WithHint("h").WithDetail("berth.k", "a", "b")
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out fault.Error
	if err := json.Unmarshal(b, &out); err != nil || out.Error() != in.Error() || out.Outcome != fault.NotExecuted || out.Details[0].Facts["a"] != "b" {
		t.Fatalf("%+v %v", out, err)
	}
}

// TestFromE13: anything unexpected is unavailable with an unknown outcome.
func TestFromE13(t *testing.T) {
	if fault.From(nil) != nil || fault.CodeOf(nil) != "" {
		t.Fatal("nil is a fault")
	}
	if e := fault.From(errors.New("disk on fire")); e.Code != fault.Unavailable || e.Outcome != fault.Unknown {
		t.Fatal(e)
	}
}

// TestEnded: the code says what ended a context, wherever its error is wrapped.
func TestEnded(t *testing.T) {
	for code, cause := range map[fault.Code]error{fault.DeadlineExceeded: fmt.Errorf("read: %w", context.DeadlineExceeded), fault.Cancelled: context.Canceled} {
		if e := fault.Ended(cause, "%s", "it"); e.Code != code || e.Message != "it" {
			t.Errorf("%v gives %v", cause, e)
		}
	}
}
