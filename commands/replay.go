package commands

import (
	"strconv"
	"time"

	"berth/events/eventlog/verify"
	"berth/events/fault"
	"berth/projections"
	"berth/projections/replay"
)

// What looks at the whole log. Both take as long as reading it does.
var (
	Replay = command[ReplayInput, ReplayResult](Contract{
		Name: "replay", Kind: Read, Target: TargetAny, Modes: aboutNobody, Capability: CanRead, Timeout: MaxTimeout,
		Doc: "Rebuild everything from the log, as of now or of any moment before, and compare it with what is served.", Example: `{"verify":true}`,
	})
	VerifyLog = command[VerifyInput, verify.Report](Contract{
		Name: "verify", Kind: Read, Target: TargetAny, Modes: aboutNobody, Capability: CanRead, Timeout: MaxTimeout,
		Doc: "Compute every hash of the log again and check the signatures: nothing was changed, removed or put in between.", Example: `{}`,
		Refusals: []fault.Code{fault.Internal},
	})
)

// VerifyInput bounds a check of the log.
type VerifyInput struct {
	Limit int `json:"limit,omitzero" doc:"only the first so many records; all of them if absent" min:"0"`
}

// Check implements Input.
func (in VerifyInput) Check() error {
	if in.Limit < 0 {
		return bad("limit", "%d is below zero", in.Limit)
	}
	return nil
}

// ReplayInput says how far to go, and whether to compare.
type ReplayInput struct {
	At     string `json:"at,omitzero" doc:"the last sequence, or an RFC 3339 time; the tip if absent"`
	Verify bool   `json:"verify,omitzero" doc:"compare with what is served; not with at"`
}

// Check implements Input.
func (in ReplayInput) Check() error {
	if in.Verify && in.At != "" {
		return bad("at", "what is served is of now: give either verify or at")
	}
	_, err := in.Until()
	return err
}

// Until is At as a sequence or a time.
func (in ReplayInput) Until() (replay.Until, error) {
	if in.At == "" {
		return replay.Until{}, nil
	}
	if n, err := strconv.ParseUint(in.At, 10, 64); err == nil && n > 0 {
		return replay.Until{Sequence: n}, nil
	}
	t, err := time.Parse(time.RFC3339, in.At)
	if err != nil || len(in.At) > 64 {
		return replay.Until{}, bad("at", "%q is neither a sequence nor a time such as 2026-01-02T15:04:05Z", clip(in.At))
	}
	return replay.Until{Time: t}, nil
}

// ReplayResult is what a replay found.
type ReplayResult struct {
	replay.Report
	Verified bool `json:"verified"` // it was compared with what is served
	// Items is the fleet as it was then, at most MaxPage rows.
	Items []projections.Row `json:"items,omitempty"`
}
