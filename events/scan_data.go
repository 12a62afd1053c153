package events

import "time"

// uidOperation and uidCredential have the shape of the events that consist of
// these two members.
type uidOperation struct {
	UID       UID         `json:"uid"`
	Operation OperationID `json:"operation"`
}

type uidCredential struct {
	UID        UID          `json:"uid"`
	Credential CredentialID `json:"credential"`
}

func (s *scanner) uidOperation() uidOperation {
	e := uidOperation{s.firstUID(), OperationID(s.text(`,"operation":`))}
	s.lit(`}`)
	return e
}

func (s *scanner) uidCredential() uidCredential {
	e := uidCredential{s.firstUID(), CredentialID(s.text(`,"credential":`))}
	s.lit(`}`)
	return e
}

func (s *scanner) firstUID() UID { return UID(s.text(`{"uid":`)) }

func (s *scanner) onlyUID() UID {
	uid := s.firstUID()
	s.lit(`}`)
	return uid
}

func (s *scanner) firstEnvironment() EnvironmentID { return EnvironmentID(s.text(`{"environment":`)) }

func (s *scanner) slotClaimed() SlotClaimed {
	e := SlotClaimed{UID: s.firstUID(), Environment: EnvironmentID(s.text(`,"environment":`)), Goal: s.textIf(`,"goal":`), Holder: InstanceID(s.text(`,"holder":`))}
	s.lit(`,"plan":`)
	e.Plan = s.plan()
	e.Target = Target(s.text(`,"target":`))
	s.lit(`,"deadline":`)
	e.Deadline = s.timeOrNull()
	s.lit(`,"ready":`)
	e.Ready = s.time()
	s.lit(`}`)
	return e
}

func (s *scanner) slotTerminalizing() SlotTerminalizing {
	e := SlotTerminalizing{UID: s.firstUID(), Reason: s.text(`,"reason":`), Grace: s.textIf(`,"grace":`)}
	s.lit(`}`)
	return e
}

func (s *scanner) plan() Plan {
	p := Plan{Provider: s.text(`{"provider":`)}
	s.lit(`,"image":`)
	p.Image = s.image()
	cpus, err := ParseQuantity(s.text(`,"resources":{"cpus":`))
	s.bad = s.bad || err != nil
	p.Resources.CPUs = cpus
	p.Resources.MemoryMiB = int64(s.number(`,"memoryMiB":`))
	if s.maybe(`,"diskGiB":`) {
		p.Resources.DiskGiB = int64(s.uint())
	}
	s.lit(`},"network":`)
	if !s.maybe(`null`) {
		n := s.shared()
		p.Network = &n
	}
	p.Lifetime = time.Duration(s.number(`,"lifetime":`))
	s.lit(`,"command":`)
	p.Command = s.texts()
	if s.maybe(`,"options":`) {
		p.Options = s.textMap()
	}
	p.Delegated = s.maybe(`,"delegated":true`)
	s.lit(`}`)
	return p
}

func (s *scanner) image() Image {
	i := Image{Kind: s.text(`{"kind":`), Reference: s.text(`,"reference":`)}
	s.lit(`}`)
	return i
}

func (s *scanner) environmentProbed() EnvironmentProbed {
	e := EnvironmentProbed{Environment: s.firstEnvironment()}
	s.lit(`,"image":{"image":`)
	e.Image = ImageDescription{Image: s.image(), Digest: s.textIf(`,"digest":`), Architecture: s.text(`,"architecture":`), ABI: s.textIf(`,"abi":`), BundleSHA256: s.textIf(`,"bundleSha256":`)}
	s.lit(`}`)
	e.Network = s.textIf(`,"network":`)
	s.lit(`,"checks":`)
	e.Checks = s.checks()
	s.lit(`,"capabilities":`)
	e.Capabilities = s.capabilities()
	s.lit(`,"probedAt":`)
	e.ProbedAt = s.time()
	e.Host, e.Architecture, e.Engine = s.text(`,"host":`), s.text(`,"architecture":`), s.text(`,"engine":`)
	s.lit(`}`)
	return e
}

func (s *scanner) checks() []Check {
	return listOf(s, func() Check {
		c := Check{Name: s.text(`{"name":`), OK: s.boolean(`,"ok":`), Detail: s.textIf(`,"detail":`)}
		s.lit(`}`)
		return c
	})
}

func (s *scanner) capabilities() Capabilities {
	c := Capabilities{
		GuestBuild: s.boolean(`{"guestBuild":`), Custody: s.boolean(`,"custody":`), SessionHistory: s.boolean(`,"sessionHistory":`),
		MaterialRenewal: s.boolean(`,"materialRenewal":`), ColdCheckpoint: s.boolean(`,"coldCheckpoint":`), MemoryCheckpoint: s.boolean(`,"memoryCheckpoint":`),
		Nested: s.boolean(`,"nested":`), PauseKeepsMemory: s.boolean(`,"pauseKeepsMemory":`), Snapshot: s.boolean(`,"snapshot":`),
		Export: s.boolean(`,"export":`), GPU: s.boolean(`,"gpu":`), DurableSeatHome: s.boolean(`,"durableSeatHome":`),
		Screen: s.boolean(`,"screen":`), Exec: s.boolean(`,"exec":`),
	}
	if !s.maybe(`,"extend":false`) {
		n := s.number(`,"extend":{"stepMs":`)
		s.bad = s.bad || n < 1 || n > MaxSafeInteger
		c.Extend.StepMs = int64(n)
		s.lit(`}`)
	}
	s.lit(`}`)
	return c
}

func (s *scanner) operationDispatched() OperationDispatched {
	e := OperationDispatched{Environment: s.firstEnvironment(), Operation: OperationID(s.text(`,"operation":`)), Verb: Verb(s.text(`,"verb":`))}
	s.lit(`,"arguments":`)
	e.Arguments = s.arguments()
	e.Goal = s.textIf(`,"goal":`)
	s.lit(`,"deadline":`)
	e.Deadline = s.time()
	s.lit(`}`)
	return e
}

func (s *scanner) operationPlanned() OperationPlanned {
	e := OperationPlanned{Environment: s.firstEnvironment(), Operation: OperationID(s.text(`,"operation":`)), Verb: Verb(s.text(`,"verb":`))}
	s.lit(`,"arguments":`)
	e.Arguments = s.arguments()
	e.Goal = s.textIf(`,"goal":`)
	s.lit(`}`)
	return e
}

// arguments reads members of which each may be left out.
func (s *scanner) arguments() (a Arguments) {
	s.lit(`{`)
	first := true
	has := func(name string) bool {
		if first {
			name = name[1:]
		}
		ok := s.maybe(name)
		first = first && !ok
		return ok
	}
	if has(`,"extendTo":`) {
		t := s.time()
		a.ExtendTo = &t
	}
	if has(`,"wanted":`) {
		t := s.time()
		a.Wanted = &t
	}
	for _, m := range []struct {
		name string
		text *string
	}{{`,"checkpointId":`, &a.CheckpointID}, {`,"maxBytes":`, nil}, {`,"hostPath":`, &a.HostPath}, {`,"fileId":`, &a.FileID}, {`,"grace":`, &a.Grace}} {
		switch {
		case !has(m.name):
		case m.text != nil:
			*m.text = s.shared()
		default:
			a.MaxBytes = int64(s.uint())
		}
	}
	s.lit(`}`)
	return a
}

// facts are those without the results of checkpoint and export, which are rare.
func (s *scanner) facts() Facts {
	var f Facts
	s.lit(`{`)
	if s.maybe(`"ref":`) {
		f.Ref = s.shared()
		s.lit(`,`)
	}
	if s.maybe(`"volumeId":`) {
		f.VolumeID = s.shared()
		s.lit(`,`)
	}
	if s.maybe(`"incarnation":`) {
		f.Incarnation = s.shared()
		s.lit(`,`)
	}
	f.State = ProviderState(s.text(`"state":`))
	f.Network = s.textIf(`,"network":`)
	if s.maybe(`,"stoppedAt":`) {
		t := s.time()
		f.StoppedAt = &t
	}
	if s.maybe(`,"exitCode":`) {
		n := int(s.uint())
		f.ExitCode = &n
	}
	s.lit(`,"expiresAt":`)
	f.ExpiresAt = s.timeOrNull()
	s.lit(`,"observedAt":`)
	f.ObservedAt = s.time()
	if s.maybe(`,"custody":`) {
		f.Custody = &Custody{BootID: s.text(`{"bootId":`), PID: int(s.number(`,"pid":`)), StartTime: s.number(`,"startTime":`)}
		s.lit(`}`)
	}
	if s.maybe(`,"checkpoint":`) {
		c := &Checkpoint{ID: s.text(`{"id":`), Kind: s.text(`,"kind":`), ByteLength: int64(s.number(`,"byteLength":`)), SHA256: s.textIf(`,"sha256":`)}
		s.lit(`,"capturedAt":`)
		c.CapturedAt = s.time()
		s.lit(`}`)
		f.Checkpoint = c
	}
	if s.maybe(`,"file":`) {
		f.File = s.file()
	}
	s.lit(`}`)
	return f
}

func (s *scanner) file() *File {
	f := &File{}
	s.lit(`{`)
	if s.maybe(`"id":`) {
		f.ID = s.shared()
		s.lit(`,`)
	}
	if s.maybe(`"path":`) {
		f.Path = s.shared()
		s.lit(`,`)
	}
	f.ByteLength, f.SHA256 = int64(s.number(`"byteLength":`)), s.text(`,"sha256":`)
	s.lit(`}`)
	return f
}

func (s *scanner) goalAccepted() GoalAccepted {
	e := GoalAccepted{Command: s.text(`{"command":`), Fingerprint: s.text(`,"fingerprint":`)}
	s.lit(`,"request":`)
	e.Request = s.rawObject()
	e.Holder = InstanceID(s.text(`,"holder":`))
	e.Allocated = Allocation{
		Name: Alias(s.text(`,"allocated":{"name":`)), Owner: Owner(s.text(`,"owner":`)), Actor: Actor(s.text(`,"actor":`)),
		UID: UID(s.textIf(`,"uid":`)), Environment: EnvironmentID(s.textIf(`,"environment":`)), Operation: OperationID(s.textIf(`,"operation":`)),
	}
	s.lit(`},"ready":`)
	e.Ready = s.time()
	s.lit(`}`)
	return e
}
