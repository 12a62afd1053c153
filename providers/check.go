package providers

import (
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
)

// MaxChecks is how many checks one preflight may answer with.
const MaxChecks = 64

// violation is what a driver's answer is turned into when it breaks the
// contract: the effect may be there, but the answer can't be recorded.
func violation(driver, format string, args ...any) *fault.Error {
	return fault.New(fault.Internal, "provider %s broke its contract: "+format, append([]any{driver}, args...)...).
		WithHint("the answer was not recorded; report it to the maintainer of that provider")
}

// CheckImage refuses a description of another image than the one asked for
// (R17) and text that can't be kept (R71).
func CheckImage(asked events.Image, d events.ImageDescription) error {
	if d.Image != asked {
		return fault.New(fault.Internal, "the description is of another image than the one that was asked for (R17)")
	}
	return texts([]field{
		{"digest", d.Digest}, {"architecture", d.Architecture}, {"abi", d.ABI}, {"bundleSha256", d.BundleSHA256},
	}, nil)
}

// CheckExtend refuses an answer of extend that raised the deadline by more
// than the probed step (R28) or shortened it. A nil deadline says that the
// provider has none (R31), which an extension can't change.
func CheckExtend(before, after *time.Time, limit events.ExtendLimit) error {
	switch {
	case before == nil && after == nil:
		return nil
	case before == nil || after == nil:
		return fault.New(fault.Internal, "extend changed whether there is a deadline at all (R31)")
	case after.Before(*before):
		return fault.New(fault.Internal, "extend shortened the deadline from %s to %s", before.Format(time.RFC3339), after.Format(time.RFC3339))
	case after.Sub(*before) > time.Duration(limit.StepMs)*time.Millisecond:
		return fault.New(fault.Internal, "extend raised the deadline by %s, more than the step of %d ms (R28)", after.Sub(*before), limit.StepMs)
	}
	return nil
}

// CheckFacts refuses facts that can't be recorded: text that is not public
// (R71), a stop time of something that runs (R67), and results that answer
// another request than op's: another reference (R63, R92), another checkpoint
// id, another kind of export (R33), a path that was not asked for (R34).
func CheckFacts(op Operation, f events.Facts) error {
	fields := []field{{"ref", f.Ref}, {"volumeId", f.VolumeID}, {"incarnation", f.Incarnation}, {"network", f.Network}}
	if f.Custody != nil {
		fields = append(fields, field{"custody.bootId", f.Custody.BootID})
	}
	if f.Ready != nil {
		fields = append(fields, field{"ready.evidence", f.Ready.Evidence})
	}
	if c := f.Checkpoint; c != nil {
		fields = append(fields, field{"checkpoint.id", c.ID}, field{"checkpoint.sha256", c.SHA256})
	}
	if x := f.File; x != nil {
		fields = append(fields, field{"file.id", x.ID}, field{"file.path", x.Path}, field{"file.sha256", x.SHA256})
	}
	if err := texts(fields, op.Material); err != nil {
		return err
	}
	bad := func(format string, args ...any) error { return fault.New(fault.Internal, format, args...) }
	switch f.State {
	case events.StateReserved, events.StateCreating, events.StateRunning, events.StatePaused, events.StateStopped,
		events.StateFailed, events.StateAbsent, events.StateUnknown:
	default:
		return bad("state %q is not one of the contract", events.Scrub(string(f.State)))
	}
	if f.StoppedAt != nil && (f.State == events.StateRunning || f.State == events.StatePaused) {
		return bad("stoppedAt of something that is %s (R67)", f.State)
	}
	if f.ObservedAt.IsZero() {
		return bad("observedAt is missing (R64)")
	}
	if op.Ref != "" && f.Ref != "" && f.Ref != op.Ref {
		return bad("the reference of another environment (R63)")
	}
	return checkResult(op, f)
}

func checkResult(op Operation, f events.Facts) error {
	bad := func(format string, args ...any) error { return fault.New(fault.Internal, format, args...) }
	switch op.Verb {
	case events.VerbReserve:
		if f.Ref == "" {
			return bad("reserve answered without a reference (R92)")
		}
	case events.VerbCheckpoint:
		if f.Checkpoint == nil || f.Checkpoint.ID != op.Arguments.CheckpointID {
			return bad("checkpoint answered with another id than the one asked for")
		}
		if f.Checkpoint.Kind != "cold" && f.Checkpoint.Kind != "memory" {
			return bad("checkpoint kind %q is neither cold nor memory", events.Scrub(f.Checkpoint.Kind))
		}
	case events.VerbRestore:
		if f.State != events.StateRunning || f.Incarnation == "" {
			return bad("restore answered with %s and incarnation %q: what was put back runs, as another incarnation", f.State, events.Scrub(f.Incarnation))
		}
	case events.VerbExport:
		x := f.File
		switch {
		case x == nil || x.ByteLength < 0 || len(x.SHA256) != 64:
			return bad("export answered without a file, its length and its SHA-256 (R35)")
		case op.Arguments.HostPath != "" && (x.Path != op.Arguments.HostPath || x.ID != ""):
			return bad("export to a host path answered with another place (R33, R34)")
		case op.Arguments.HostPath == "" && (x.ID == "" || x.Path != "" || strings.Contains(x.ID, "://")):
			return bad("export of a provider file answered without a plain file id (R33, R35)")
		case x.ByteLength > op.Arguments.MaxBytes:
			return bad("export answered with %d bytes, more than the %d asked for (R37)", x.ByteLength, op.Arguments.MaxBytes)
		}
	}
	return nil
}

// CheckPreflight refuses a probe that can't be recorded: no checks, nameless
// ones, text that is not public, no time of the probe (R3), a step out of
// range (R2).
func CheckPreflight(p Preflight) error {
	if len(p.Checks) == 0 || len(p.Checks) > MaxChecks {
		return fault.New(fault.Internal, "preflight answered %d checks; 1 to %d are accepted", len(p.Checks), MaxChecks)
	}
	for _, c := range p.Checks {
		if err := events.CheckText("check name", c.Name); err != nil {
			return err
		}
		if err := texts([]field{{"detail of check " + c.Name, c.Detail}}, nil); err != nil {
			return err
		}
	}
	if p.ProbedAt.IsZero() {
		return fault.New(fault.Internal, "preflight answered without the time of the probe (R3)")
	}
	if n := p.Capabilities.Extend.StepMs; n < 0 || n > events.MaxSafeInteger {
		return fault.New(fault.Internal, "preflight answered stepMs %d, which is not a positive safe integer (R2)", n)
	}
	return texts([]field{{"network", p.Network}}, nil)
}

// ScrubFault returns a copy of a driver's failure that is fit for the log:
// every text scrubbed (E13), and none of the material in it (R55).
func ScrubFault(e *fault.Error, m Material) *fault.Error {
	if e == nil {
		return nil
	}
	clean := func(s string) string {
		if s == "" {
			return ""
		}
		return events.Scrub(redact(s, m))
	}
	c := *e
	c.Message, c.Hint, c.ID = clean(e.Message), clean(e.Hint), clean(e.ID)
	c.Details = nil
	for _, d := range e.Details {
		facts := make(map[string]string, len(d.Facts))
		for k, v := range d.Facts {
			facts[clean(k)] = clean(v)
		}
		c.Details = append(c.Details, fault.Detail{Kind: clean(d.Kind), Facts: facts})
	}
	return &c
}

// minSecret is the shortest material that is looked for in answers: shorter
// bytes would be found everywhere.
const minSecret = 8

func redact(s string, m Material) string {
	for _, v := range m {
		if len(v) >= minSecret {
			s = strings.ReplaceAll(s, string(v), "[redacted]")
		}
	}
	return s
}

type field struct{ name, text string }

// texts checks every field that is set; an absent one is fine (R66).
func texts(fs []field, m Material) error {
	for _, f := range fs {
		if f.text == "" {
			continue
		}
		if err := events.CheckText(f.name, f.text); err != nil {
			return err
		}
		if redact(f.text, m) != f.text {
			return fault.New(fault.Internal, "%s holds bytes of the material (R55)", f.name)
		}
	}
	return nil
}
