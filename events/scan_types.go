package events

// scans are readers of the event types that most of a log consists of. Like
// scanEnvelope they know only what Encode writes, member by member in the order
// of the struct, and leave everything else to the JSON library: they are three
// times as fast, and a replay spends most of its time here. A test holds each of
// them to the library's answer.
var scans = map[string]func(*scanner) Event{
	SlotClaimed{}.EventType():       func(s *scanner) Event { return s.slotClaimed() },
	SlotActivated{}.EventType():     func(s *scanner) Event { return SlotActivated{UID: s.onlyUID()} },
	SlotTerminalizing{}.EventType(): func(s *scanner) Event { return s.slotTerminalizing() },
	SlotCleaned{}.EventType():       func(s *scanner) Event { return SlotCleaned{UID: s.onlyUID()} },
	SlotRetired{}.EventType():       func(s *scanner) Event { return SlotRetired{UID: s.onlyUID()} },
	HeadActivated{}.EventType():     func(s *scanner) Event { return HeadActivated(s.uidOperation()) },
	HeadRetiring{}.EventType():      func(s *scanner) Event { return HeadRetiring(s.uidOperation()) },
	HeadRetired{}.EventType():       func(s *scanner) Event { return HeadRetired(s.uidOperation()) },
	GateRetired{}.EventType():       func(s *scanner) Event { return GateRetired(s.uidOperation()) },
	GateOpened{}.EventType(): func(s *scanner) Event {
		e := GateOpened{UID: s.firstUID(), Operation: OperationID(s.text(`,"operation":`)), Generation: s.number(`,"generation":`)}
		s.lit(`}`)
		return e
	},
	GateFrozen{}.EventType(): func(s *scanner) Event {
		e := GateFrozen{UID: s.firstUID(), Operation: OperationID(s.text(`,"operation":`)), Kind: s.text(`,"kind":`)}
		s.lit(`}`)
		return e
	},
	CredentialMinted{}.EventType(): func(s *scanner) Event {
		e := CredentialMinted{UID: s.firstUID(), Credential: CredentialID(s.text(`,"credential":`)), Holder: s.text(`,"holder":`), Generation: s.number(`,"generation":`)}
		s.lit(`}`)
		return e
	},
	CredentialReleased{}.EventType():  func(s *scanner) Event { return CredentialReleased(s.uidCredential()) },
	CredentialRevoked{}.EventType():   func(s *scanner) Event { return CredentialRevoked(s.uidCredential()) },
	EnvironmentProbed{}.EventType():   func(s *scanner) Event { return s.environmentProbed() },
	OperationDispatched{}.EventType(): func(s *scanner) Event { return s.operationDispatched() },
	OperationConfirmed{}.EventType(): func(s *scanner) Event {
		e := OperationConfirmed{Environment: s.firstEnvironment(), Operation: OperationID(s.text(`,"operation":`))}
		s.lit(`,"facts":`)
		e.Facts = s.facts()
		s.lit(`}`)
		return e
	},
	EnvironmentObserved{}.EventType(): func(s *scanner) Event {
		e := EnvironmentObserved{Environment: s.firstEnvironment()}
		s.lit(`,"facts":`)
		e.Facts = s.facts()
		s.lit(`}`)
		return e
	},
	SlotTakenOver{}.EventType(): func(s *scanner) Event {
		e := SlotTakenOver{UID: s.firstUID(), Holder: InstanceID(s.text(`,"holder":`)), Epoch: s.number(`,"epoch":`)}
		s.lit(`}`)
		return e
	},
	OperationPlanned{}.EventType(): func(s *scanner) Event { return s.operationPlanned() },
	OperationLanded{}.EventType(): func(s *scanner) Event {
		e := OperationLanded{Environment: s.firstEnvironment(), Operation: OperationID(s.text(`,"operation":`))}
		s.lit(`,"facts":`)
		e.Facts = s.facts()
		e.Evidence = s.text(`,"evidence":`)
		s.lit(`}`)
		return e
	},
	OperationExcluded{}.EventType(): func(s *scanner) Event {
		e := OperationExcluded{Environment: s.firstEnvironment(), Operation: OperationID(s.text(`,"operation":`)), Evidence: s.text(`,"evidence":`)}
		s.lit(`}`)
		return e
	},
	TargetChanged{}.EventType(): func(s *scanner) Event {
		e := TargetChanged{Environment: s.firstEnvironment(), Target: Target(s.text(`,"target":`))}
		s.lit(`}`)
		return e
	},
	OperationRefused{}.EventType(): func(s *scanner) Event {
		return OperationRefused{Environment: s.firstEnvironment(), Operation: OperationID(s.text(`,"operation":`)), Fault: s.lastFault()}
	},
	OperationUncertain{}.EventType(): func(s *scanner) Event {
		return OperationUncertain{Environment: s.firstEnvironment(), Operation: OperationID(s.text(`,"operation":`)), Fault: s.lastFault()}
	},
	OperationCancelled{}.EventType(): func(s *scanner) Event {
		e := OperationCancelled{Environment: s.firstEnvironment(), Operation: OperationID(s.text(`,"operation":`)), Reason: s.text(`,"reason":`)}
		s.lit(`}`)
		return e
	},
	FileAccepted{}.EventType(): func(s *scanner) Event {
		e := FileAccepted{Environment: s.firstEnvironment(), Operation: OperationID(s.text(`,"operation":`))}
		s.lit(`,"file":`)
		e.File = *s.file()
		s.lit(`}`)
		return e
	},
	DeadlineChanged{}.EventType(): func(s *scanner) Event {
		e := DeadlineChanged{Environment: s.firstEnvironment()}
		s.lit(`,"deadline":`)
		e.Deadline = s.time()
		s.lit(`}`)
		return e
	},
	GoalAccepted{}.EventType(): func(s *scanner) Event { return s.goalAccepted() },
	GoalProgressed{}.EventType(): func(s *scanner) Event {
		e := GoalProgressed{Phase: s.text(`{"phase":`), Detail: s.textIf(`,"detail":`)}
		s.lit(`}`)
		return e
	},
	GoalEnded{}.EventType(): func(s *scanner) Event {
		e := GoalEnded{State: GoalState(s.text(`{"state":`))}
		if s.maybe(`,"fault":`) {
			e.Fault = s.fault()
		}
		if s.maybe(`,"result":`) {
			e.Result = s.rawObject()
		}
		s.lit(`}`)
		return e
	},
	UIDReserved{}.EventType(): func(s *scanner) Event {
		e := UIDReserved{UID: s.firstUID(), Owner: Owner(s.text(`,"owner":`)), Actor: Actor(s.text(`,"actor":`)), MintedBy: InstanceID(s.text(`,"mintedBy":`))}
		s.lit(`}`)
		return e
	},
}

// scanEvent reads the data of an event by its fast reader, if there is one and
// it is sure.
func scanEvent(r row, data []byte) (Event, bool) {
	if r.scan == nil {
		return nil, false
	}
	s := scanner{b: data}
	e := r.scan(&s)
	return e, !s.bad && len(s.b) == 0
}
