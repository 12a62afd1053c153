package events

// The versionless names of the event types, as EventType returns them. Names
// are stored: none is ever changed or used again.
const (
	TypeSlotClaimed           = "slot.claimed"
	TypeSlotActivated         = "slot.activated"
	TypeSlotTerminalizing     = "slot.terminalizing"
	TypeSlotCleaned           = "slot.cleaned"
	TypeSlotRetired           = "slot.retired"
	TypeSlotTakenOver         = "slot.taken-over"
	TypeHeadActivated         = "head.activated"
	TypeHeadEpochAdvanced     = "head.epoch-advanced"
	TypeHeadRetiring          = "head.retiring"
	TypeHeadRetired           = "head.retired"
	TypeGateOpened            = "gate.opened"
	TypeGateFrozen            = "gate.frozen"
	TypeGateRetired           = "gate.retired"
	TypeCredentialMinted      = "credential.minted"
	TypeCredentialReleased    = "credential.released"
	TypeCredentialRevoked     = "credential.revoked"
	TypeEnvironmentProbed     = "environment.probed"
	TypeEnvironmentRefused    = "environment.refused"
	TypeTargetChanged         = "environment.target-changed"
	TypeOperationPlanned      = "environment.operation-planned"
	TypeOperationDispatched   = "environment.operation-dispatched"
	TypeOperationConfirmed    = "environment.operation-confirmed"
	TypeOperationRefused      = "environment.operation-refused"
	TypeOperationUncertain    = "environment.operation-uncertain"
	TypeOperationLanded       = "environment.operation-landed"
	TypeOperationExcluded     = "environment.operation-excluded"
	TypeOperationStuck        = "environment.operation-stuck"
	TypeOperationCancelled    = "environment.operation-cancelled"
	TypeEnvironmentObserved   = "environment.observed"
	TypeDeadlineChanged       = "environment.deadline-changed"
	TypeFileAccepted          = "environment.file-accepted"
	TypeFileRejected          = "environment.file-rejected"
	TypeEnvironmentWrittenOff = "environment.written-off"
	TypeEnvironmentInherited  = "environment.inherited"
	TypeCommandAnswered       = "command.answered"
	TypeIntentAdmitted        = "intent.admitted"
	TypeIntentConsumed        = "intent.consumed"
	TypeIntentSwept           = "intent.swept"
	TypeIntentEnded           = "intent.ended"
	TypeIntentReleased        = "intent.released"
	TypeTurnRelayed           = "turn.relayed"
	TypeTurnYielded           = "turn.yielded"
	TypeTurnDropped           = "turn.dropped"
	TypeGoalAccepted          = "goal.accepted"
	TypeGoalClaimed           = "goal.claimed"
	TypeGoalDeclined          = "goal.declined"
	TypeGoalOffered           = "goal.offered"
	TypeGoalProgressed        = "goal.progressed"
	TypeGoalCancelRequested   = "goal.cancel-requested"
	TypeGoalEnded             = "goal.ended"
	TypeGoalSettled           = "goal.settled"
	TypeGoalRenamed           = "goal.renamed"
	TypeNumberIssued          = "number.issued"
	TypePersonaDefined        = "persona.defined"
	TypePersonaRemoved        = "persona.removed"
	TypeTranscriptStaged      = "transcript.staged"
	TypeTranscriptConsumed    = "transcript.consumed"
	TypeTranscriptExpired     = "transcript.expired"
	TypeUIDReserved           = "uid.reserved"
	TypeSessionRedeemed       = "session.redeemed"
	TypeInstanceRegistered    = "instance.registered"
	TypeInstanceStopped       = "instance.stopped"
	TypeInstanceObserved      = "instance.observed"
	TypeClockSkewed           = "instance.clock-skewed"
	TypeChainSigned           = "instance.chain-signed"
	TypeHistoryLossAccepted   = "space.history-loss-accepted"
	TypeProviderAccepted      = "provider.accepted"
	TypeProviderFenced        = "provider.fenced"
	TypeProviderAnswered      = "provider.answered"
)

// EventType implements Event.
func (SlotClaimed) EventType() string { return TypeSlotClaimed }

// EventType implements Event.
func (SlotActivated) EventType() string { return TypeSlotActivated }

// EventType implements Event.
func (SlotTerminalizing) EventType() string { return TypeSlotTerminalizing }

// EventType implements Event.
func (SlotCleaned) EventType() string { return TypeSlotCleaned }

// EventType implements Event.
func (SlotRetired) EventType() string { return TypeSlotRetired }

// EventType implements Event.
func (SlotTakenOver) EventType() string { return TypeSlotTakenOver }

// EventType implements Event.
func (HeadActivated) EventType() string { return TypeHeadActivated }

// EventType implements Event.
func (HeadEpochAdvanced) EventType() string { return TypeHeadEpochAdvanced }

// EventType implements Event.
func (HeadRetiring) EventType() string { return TypeHeadRetiring }

// EventType implements Event.
func (HeadRetired) EventType() string { return TypeHeadRetired }

// EventType implements Event.
func (GateOpened) EventType() string { return TypeGateOpened }

// EventType implements Event.
func (GateFrozen) EventType() string { return TypeGateFrozen }

// EventType implements Event.
func (GateRetired) EventType() string { return TypeGateRetired }

// EventType implements Event.
func (CredentialMinted) EventType() string { return TypeCredentialMinted }

// EventType implements Event.
func (CredentialReleased) EventType() string { return TypeCredentialReleased }

// EventType implements Event.
func (CredentialRevoked) EventType() string { return TypeCredentialRevoked }

// EventType implements Event.
func (EnvironmentProbed) EventType() string { return TypeEnvironmentProbed }

// EventType implements Event.
func (EnvironmentRefused) EventType() string { return TypeEnvironmentRefused }

// EventType implements Event.
func (TargetChanged) EventType() string { return TypeTargetChanged }

// EventType implements Event.
func (OperationPlanned) EventType() string { return TypeOperationPlanned }

// EventType implements Event.
func (OperationDispatched) EventType() string { return TypeOperationDispatched }

// EventType implements Event.
func (OperationConfirmed) EventType() string { return TypeOperationConfirmed }

// EventType implements Event.
func (OperationRefused) EventType() string { return TypeOperationRefused }

// EventType implements Event.
func (OperationUncertain) EventType() string { return TypeOperationUncertain }

// EventType implements Event.
func (OperationLanded) EventType() string { return TypeOperationLanded }

// EventType implements Event.
func (OperationExcluded) EventType() string { return TypeOperationExcluded }

// EventType implements Event.
func (OperationStuck) EventType() string { return TypeOperationStuck }

// EventType implements Event.
func (OperationCancelled) EventType() string { return TypeOperationCancelled }

// EventType implements Event.
func (EnvironmentObserved) EventType() string { return TypeEnvironmentObserved }

// EventType implements Event.
func (DeadlineChanged) EventType() string { return TypeDeadlineChanged }

// EventType implements Event.
func (FileAccepted) EventType() string { return TypeFileAccepted }

// EventType implements Event.
func (FileRejected) EventType() string { return TypeFileRejected }

// EventType implements Event.
func (EnvironmentWrittenOff) EventType() string { return TypeEnvironmentWrittenOff }

// EventType implements Event.
func (EnvironmentInherited) EventType() string { return TypeEnvironmentInherited }

// EventType implements Event.
func (CommandAnswered) EventType() string { return TypeCommandAnswered }

// EventType implements Event.
func (TurnRelayed) EventType() string { return TypeTurnRelayed }

// EventType implements Event.
func (TurnYielded) EventType() string { return TypeTurnYielded }

// EventType implements Event.
func (TurnDropped) EventType() string { return TypeTurnDropped }

// EventType implements Event.
func (GoalAccepted) EventType() string { return TypeGoalAccepted }

// EventType implements Event.
func (GoalClaimed) EventType() string { return TypeGoalClaimed }

// EventType implements Event.
func (GoalDeclined) EventType() string { return TypeGoalDeclined }

// EventType implements Event.
func (GoalOffered) EventType() string { return TypeGoalOffered }

// EventType implements Event.
func (GoalProgressed) EventType() string { return TypeGoalProgressed }

// EventType implements Event.
func (GoalCancelRequested) EventType() string { return TypeGoalCancelRequested }

// EventType implements Event.
func (GoalEnded) EventType() string { return TypeGoalEnded }

// EventType implements Event.
func (GoalSettled) EventType() string { return TypeGoalSettled }

// EventType implements Event.
func (GoalRenamed) EventType() string { return TypeGoalRenamed }

// EventType implements Event.
func (NumberIssued) EventType() string { return TypeNumberIssued }

// EventType implements Event.
func (SessionRedeemed) EventType() string { return TypeSessionRedeemed }

// EventType implements Event.
func (PersonaDefined) EventType() string { return TypePersonaDefined }

// EventType implements Event.
func (PersonaRemoved) EventType() string { return TypePersonaRemoved }

// EventType implements Event.
func (TranscriptStaged) EventType() string { return TypeTranscriptStaged }

// EventType implements Event.
func (TranscriptConsumed) EventType() string { return TypeTranscriptConsumed }

// EventType implements Event.
func (TranscriptExpired) EventType() string { return TypeTranscriptExpired }

// EventType implements Event.
func (UIDReserved) EventType() string { return TypeUIDReserved }

// EventType implements Event.
func (InstanceRegistered) EventType() string { return TypeInstanceRegistered }

// EventType implements Event.
func (InstanceStopped) EventType() string { return TypeInstanceStopped }

// EventType implements Event.
func (InstanceObserved) EventType() string { return TypeInstanceObserved }

// EventType implements Event.
func (ClockSkewed) EventType() string { return TypeClockSkewed }

// EventType implements Event.
func (ChainSigned) EventType() string { return TypeChainSigned }

// EventType implements Event.
func (HistoryLossAccepted) EventType() string { return TypeHistoryLossAccepted }

// EventType implements Event.
func (ProviderAccepted) EventType() string { return TypeProviderAccepted }

// EventType implements Event.
func (ProviderFenced) EventType() string { return TypeProviderFenced }

// EventType implements Event.
func (ProviderAnswered) EventType() string { return TypeProviderAnswered }

// EventType implements Event.
func (IntentAdmitted) EventType() string { return TypeIntentAdmitted }

// EventType implements Event.
func (IntentConsumed) EventType() string { return TypeIntentConsumed }

// EventType implements Event.
func (IntentSwept) EventType() string { return TypeIntentSwept }

// EventType implements Event.
func (IntentEnded) EventType() string { return TypeIntentEnded }

// EventType implements Event.
func (IntentReleased) EventType() string { return TypeIntentReleased }
