package projections

import (
	"fmt"
	"strings"
	"time"

	"berth/events"
	"berth/events/fault"
)

// phrases says in words what each event type says; a test holds it to the
// registry. Texts of events were checked or scrubbed before they were stored.
var phrases = map[string]func(events.Event) string{
	events.TypeSlotClaimed: phrase(func(e events.SlotClaimed) string {
		return fmt.Sprintf("name claimed for %s on %s, %s CPU, %d MiB, to be %s", image(e.Plan.Image), e.Plan.Provider, e.Plan.Resources.CPUs, e.Plan.Resources.MemoryMiB, e.Target)
	}),
	events.TypeSlotActivated: phrase(func(events.SlotActivated) string { return "running and managed" }),
	events.TypeSlotTerminalizing: phrase(func(e events.SlotTerminalizing) string {
		return "the end began: " + e.Reason
	}),
	events.TypeSlotCleaned: phrase(func(events.SlotCleaned) string { return "host-side material removed" }),
	events.TypeSlotRetired: phrase(func(events.SlotRetired) string { return "retired; the name is free" }),
	events.TypeSlotTakenOver: phrase(func(e events.SlotTakenOver) string {
		return fmt.Sprintf("taken over by instance %s, epoch %d", e.Holder, e.Epoch)
	}),
	events.TypeHeadActivated: phrase(func(e events.HeadActivated) string { return "lifecycle " + string(e.UID) + " is current" }),
	events.TypeHeadEpochAdvanced: phrase(func(e events.HeadEpochAdvanced) string {
		return fmt.Sprintf("lifecycle epoch is %d", e.Epoch)
	}),
	events.TypeHeadRetiring: phrase(func(events.HeadRetiring) string { return "retirement of the lifecycle began" }),
	events.TypeHeadRetired:  phrase(func(events.HeadRetired) string { return "lifecycle retired for ever" }),
	events.TypeGateOpened: phrase(func(e events.GateOpened) string {
		return fmt.Sprintf("credentials may be issued (generation %d)", e.Generation)
	}),
	events.TypeGateFrozen:  phrase(func(e events.GateFrozen) string { return "issuance of credentials frozen: " + e.Kind }),
	events.TypeGateRetired: phrase(func(events.GateRetired) string { return "issuance of credentials ended for ever" }),
	events.TypeCredentialMinted: phrase(func(e events.CredentialMinted) string {
		if e.BearerSource != nil {
			return "credential " + string(e.Credential) + " minted, bound with a bearer source of kind " + string(e.BearerSource.Kind)
		}
		return "credential " + string(e.Credential) + " minted"
	}),
	events.TypeCredentialReleased: phrase(func(e events.CredentialReleased) string {
		return "credential " + string(e.Credential) + " released"
	}),
	events.TypeCredentialRevoked: phrase(func(e events.CredentialRevoked) string {
		return "credential " + string(e.Credential) + " revoked"
	}),
	events.TypeEnvironmentProbed:  phrase(probed),
	events.TypeEnvironmentRefused: phrase(func(e events.EnvironmentRefused) string { return "refused before any effect: " + why(e.Fault) }),
	events.TypeTargetChanged:      phrase(func(e events.TargetChanged) string { return "asked to be " + string(e.Target) }),
	events.TypeOperationPlanned: phrase(func(e events.OperationPlanned) string {
		return string(e.Verb) + " queued" + arguments(e.Verb, e.Arguments)
	}),
	events.TypeOperationDispatched: phrase(func(e events.OperationDispatched) string {
		return string(e.Verb) + " sent to the provider" + arguments(e.Verb, e.Arguments)
	}),
	events.TypeOperationConfirmed: phrase(func(e events.OperationConfirmed) string { return "provider answered: " + facts(e.Facts) }),
	events.TypeOperationRefused: phrase(func(e events.OperationRefused) string {
		return "provider refused, nothing executed: " + why(e.Fault)
	}),
	events.TypeOperationUncertain: phrase(func(e events.OperationUncertain) string {
		return "answer lost, uncertain whether it was done: " + why(e.Fault)
	}),
	events.TypeOperationLanded: phrase(func(e events.OperationLanded) string {
		return "proved done: " + facts(e.Facts)
	}),
	events.TypeOperationExcluded: phrase(func(events.OperationExcluded) string { return "proved that it can never be done" }),
	events.TypeOperationStuck: phrase(func(e events.OperationStuck) string {
		return "ALARM: stuck since " + clock(e.Since)
	}),
	events.TypeOperationCancelled:  phrase(func(e events.OperationCancelled) string { return "queued operation dropped: " + e.Reason }),
	events.TypeEnvironmentObserved: phrase(func(e events.EnvironmentObserved) string { return "provider shows: " + facts(e.Facts) }),
	events.TypeDeadlineChanged: phrase(func(e events.DeadlineChanged) string {
		return "may live until " + clock(e.Deadline)
	}),
	events.TypeFileAccepted: phrase(func(e events.FileAccepted) string {
		return fmt.Sprintf("exported file verified: %d bytes, sha256 %s", e.File.ByteLength, e.File.SHA256)
	}),
	events.TypeFileRejected: phrase(func(e events.FileRejected) string { return "exported file refused, nothing kept: " + why(e.Fault) }),
	events.TypeEnvironmentWrittenOff: phrase(func(e events.EnvironmentWrittenOff) string {
		return fmt.Sprintf("written off without proof by %s.%s: %s", e.By.Owner, e.By.Actor, e.Reason)
	}),
	events.TypeEnvironmentInherited: phrase(func(e events.EnvironmentInherited) string {
		return "written off on " + string(e.From) + "; reconciled here"
	}),
	events.TypeCommandAnswered: phrase(func(e events.CommandAnswered) string {
		return "command " + string(e.Command) + " answered, nothing changed"
	}),
	events.TypeIntentAdmitted: phrase(func(e events.IntentAdmitted) string {
		return fmt.Sprintf("%s.%s lets instance %s %s it once, until %s", e.By.Owner, e.By.Actor, e.Instance, e.Kind, clock(e.ExpiresAt))
	}),
	events.TypeIntentConsumed: phrase(func(e events.IntentConsumed) string {
		return fmt.Sprintf("intent %s used for lifecycle %s by epoch %d of %s", e.Intent, e.UID, e.Executor.Epoch, e.Executor.Instance)
	}),
	events.TypeIntentSwept: phrase(func(e events.IntentSwept) string {
		return fmt.Sprintf("intent %s swept: its executor is gone, only its end is left", e.Intent)
	}),
	events.TypeIntentEnded: phrase(func(e events.IntentEnded) string {
		return fmt.Sprintf("intent %s ended: %s", e.Intent, e.Outcome)
	}),
	events.TypeIntentReleased: phrase(func(e events.IntentReleased) string {
		return fmt.Sprintf("intent %s holds the name no longer: %s", e.Intent, e.Reason)
	}),
	events.TypeTurnRelayed: phrase(func(e events.TurnRelayed) string {
		return "asked to take a turn until " + clock(e.Deadline)
	}),
	events.TypeTurnYielded: phrase(func(e events.TurnYielded) string { return "turn given back: " + string(e.Status) }),
	events.TypeTurnDropped: phrase(func(e events.TurnDropped) string { return "turn ended without an answer: " + e.Reason }),
	events.TypeGoalAccepted: phrase(func(e events.GoalAccepted) string {
		return e.Command + " of " + string(e.Allocated.Name) + " accepted"
	}),
	events.TypeGoalOffered: phrase(func(e events.GoalOffered) string {
		return "offered to the other instances until " + clock(e.Until) + ": " + e.Reason
	}),
	events.TypeGoalDeclined: phrase(func(e events.GoalDeclined) string {
		return "declined by " + string(e.Instance) + ": " + e.Reason
	}),
	events.TypeGoalRenamed: phrase(func(e events.GoalRenamed) string {
		return "goes on as " + string(e.Allocated.Name) + ": " + e.Reason
	}),
	events.TypeNumberIssued: phrase(func(e events.NumberIssued) string {
		return fmt.Sprintf("number %d issued for ever", e.Number)
	}),
	events.TypePersonaDefined: phrase(func(e events.PersonaDefined) string {
		return fmt.Sprintf("persona %s defined, %d bytes", e.Name, len(e.Text))
	}),
	events.TypePersonaRemoved:      phrase(func(e events.PersonaRemoved) string { return "persona " + string(e.Name) + " removed" }),
	events.TypeGoalClaimed:         phrase(func(e events.GoalClaimed) string { return "claimed by " + string(e.Instance) }),
	events.TypeGoalProgressed:      phrase(progressed),
	events.TypeGoalCancelRequested: phrase(func(e events.GoalCancelRequested) string { return "asked to end: " + e.Mode }),
	events.TypeGoalEnded:           phrase(func(e events.GoalEnded) string { return string(e.State) + because(e.Fault) }),
	events.TypeGoalSettled: phrase(func(e events.GoalSettled) string {
		return "turned out to have " + string(e.State) + because(e.Fault)
	}),
	events.TypeSessionRedeemed: phrase(func(e events.SessionRedeemed) string {
		return "terminal session " + e.Session[:min(8, len(e.Session))] + " of " + string(e.Name) + " was begun"
	}),
	events.TypeTranscriptStaged: phrase(func(e events.TranscriptStaged) string {
		return fmt.Sprintf("transcript of %s from %s, %d bytes, may be resumed once until %s", e.Source, e.SourceHost, e.Size, clock(e.Expires))
	}),
	events.TypeTranscriptConsumed: phrase(func(e events.TranscriptConsumed) string { return "resumed by " + string(e.Goal) }),
	events.TypeTranscriptExpired: phrase(func(events.TranscriptExpired) string {
		return "nobody resumed it in time; its bytes are removed"
	}),
	events.TypeUIDReserved: phrase(func(e events.UIDReserved) string { return "lifecycle uid " + string(e.UID) + " reserved for ever" }),
	events.TypeInstanceRegistered: phrase(func(e events.InstanceRegistered) string {
		return fmt.Sprintf("manager started, epoch %d, version %s, on %s", e.Epoch, e.Version, e.Host.Host)
	}),
	events.TypeInstanceStopped: phrase(func(e events.InstanceStopped) string {
		return fmt.Sprintf("manager stopped, epoch %d; environments go on", e.Epoch)
	}),
	events.TypeInstanceObserved: phrase(func(e events.InstanceObserved) string {
		names := make([]string, len(e.Providers))
		for i, p := range e.Providers {
			names[i] = p.Provider
		}
		return "offers the providers " + strings.Join(names, ", ")
	}),
	events.TypeClockSkewed: phrase(func(e events.ClockSkewed) string { return "wall clock was set by " + e.By.String() }),
	events.TypeChainSigned: phrase(func(e events.ChainSigned) string {
		return fmt.Sprintf("chain signed through sequence %d", e.Through)
	}),
	events.TypeHistoryLossAccepted: phrase(func(e events.HistoryLossAccepted) string {
		return fmt.Sprintf("loss of history accepted (remembered %d, found %d): %s", e.Remembered, e.Found, e.Reason)
	}),
	events.TypeProviderAccepted: phrase(func(e events.ProviderAccepted) string { return string(e.Verb) + " accepted" }),
	events.TypeProviderFenced: phrase(func(e events.ProviderFenced) string {
		return string(e.Verb) + " excluded before it arrived"
	}),
	events.TypeProviderAnswered: phrase(func(e events.ProviderAnswered) string {
		if e.Facts != nil {
			return string(e.Verb) + " landed: " + e.Evidence
		}
		return string(e.Verb) + " excluded: " + e.Evidence
	}),
}

// phrase makes a row of the table from a function of one type.
func phrase[T events.Event](f func(T) string) func(events.Event) string {
	return func(e events.Event) string {
		t, ok := e.(T)
		if !ok {
			return e.EventType()
		}
		return f(t)
	}
}

func probed(e events.EnvironmentProbed) string {
	failed := ""
	for _, c := range e.Checks {
		if !c.OK {
			failed += ", " + c.Name + " failed"
		}
	}
	return fmt.Sprintf("probed on %s (%s, %s): %d checks%s", e.Host, e.Architecture, e.Engine, len(e.Checks), failed)
}

func progressed(e events.GoalProgressed) string {
	if e.Detail == "" {
		return e.Phase
	}
	return e.Phase + ": " + e.Detail
}

func image(i events.Image) string { return i.Kind + " " + i.Reference }

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func why(f *fault.Error) string {
	if f == nil {
		return "no reason given"
	}
	return f.Error()
}

func because(f *fault.Error) string {
	if f == nil {
		return ""
	}
	return ": " + f.Error()
}

func arguments(v events.Verb, a events.Arguments) string {
	switch {
	case v == events.VerbRestore:
		return ", back to checkpoint " + a.CheckpointID
	case a.ExtendTo != nil:
		return " to " + clock(*a.ExtendTo)
	case a.FileID != "":
		return " of file " + a.FileID
	case a.HostPath != "":
		return " to " + a.HostPath
	case a.CheckpointID != "":
		return " of " + a.CheckpointID
	case a.Grace != "":
		return " with grace " + a.Grace
	}
	return ""
}

func facts(f events.Facts) string {
	s := string(f.State)
	if f.Ready != nil {
		s += ", ready: " + f.Ready.Evidence
	}
	if f.ExitCode != nil {
		s += fmt.Sprintf(", exit code %d", *f.ExitCode)
	}
	if f.ExpiresAt != nil {
		s += ", until " + clock(*f.ExpiresAt)
	}
	if f.Checkpoint != nil {
		s += fmt.Sprintf(", %s checkpoint %s of %d bytes", f.Checkpoint.Kind, f.Checkpoint.ID, f.Checkpoint.ByteLength)
	}
	if f.File != nil {
		s += fmt.Sprintf(", file of %d bytes", f.File.ByteLength)
	}
	return s
}
