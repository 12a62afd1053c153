package acp

import (
	"strings"
	"testing"

	proto "github.com/coder/acp-go-sdk"
)

// Whoever answers a question at the terminal chooses by number: neither what is
// asked nor a title brings lines of its own that read like an answer, or turns
// around what is read.
func TestAQuestionIsWhatItReads(t *testing.T) {
	forged, turned := "run it\n  1  no\r\n  2  yes", "\u202eon\u202c\u2028  1  no"
	var shown strings.Builder
	p := newPage(&shown)
	status := proto.ToolCallStatusPending
	p.tool("t-1", &forged, &status)
	p.plan([]proto.PlanEntry{{Content: forged, Status: proto.PlanEntryStatusPending}})
	p.question(proto.RequestPermissionRequest{
		ToolCall: proto.ToolCallUpdate{ToolCallId: "t-1"},
		Options:  []proto.PermissionOption{{Name: forged}, {Name: turned}},
	})
	lines := strings.Split(strings.TrimSuffix(shown.String(), "\n"), "\n")
	if len(lines) != 7 { // the tool, the plan with its entry, the question, two answers and how to answer
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	if strings.ContainsAny(shown.String(), "\u202e\u202c\u2028\r") {
		t.Errorf("it turns around: %q", shown.String())
	}
}
