package commands

import (
	"time"

	"berth/events/fault"
)

// The commands, in the order of the documentation: about the manager, about
// the fleet, a life, its goals, and what went wrong.
var (
	Describe = command[Empty, DescribeResult](Contract{
		Name: "describe", Kind: Read, Target: TargetAny, Modes: aboutNobody, Capability: Baseline,
		Doc: "The commands that this instance serves, with their schemas.", Example: `{}`,
	})
	Status = command[Empty, StatusResult](Contract{
		Name: "status", Kind: Read, Target: TargetAny, Modes: aboutNobody, Capability: CanRead,
		Doc: "How an instance is: its epoch, its providers, how far it has folded, what its engine does.", Example: `{}`,
	})
	Hosts = command[Empty, HostsResult](Contract{
		Name: "environment-host-facts", Kind: Read, Target: TargetAny, Modes: aboutNobody, Capability: CanRead, Timeout: 30 * time.Second,
		Doc:      "What the hosts behind the instance's providers have and what is free; a probe that fails fails the command (R76-R84).",
		Example:  `{}`,
		Refusals: []fault.Code{fault.Internal},
	})
	Health = command[Empty, HealthResult](Contract{
		Name: "health", Kind: Read, Target: TargetAny, Modes: aboutNobody, Capability: CanRead,
		Doc: "What a person should look at: quarantined boundaries, uncertain and stuck operations, failures, what was written off.", Example: `{}`,
	})
	Ls = command[LsInput, LsResult](Contract{
		Name: "ls", Kind: Read, Target: TargetAny, Modes: aboutOwner, Capability: CanRead,
		Doc: "The environments of an owner, a page at a time.", Example: `{"provider":"process","limit":100}`,
	})
	Inspect = command[Named, InspectResult](Contract{
		Name: "inspect", Kind: Read, Target: TargetAny, Modes: aboutOwner, Capability: CanRead,
		Doc: "Everything about one name, at one sequence.", Example: `{"name":"demo"}`, Refusals: []fault.Code{fault.NotFound, fault.Expired},
	})
	Slots = command[SlotsInput, SlotsResult](Contract{
		Name: "slots", Kind: Read, Target: TargetAny, Modes: aboutOwner, Capability: CanRead,
		Doc: "Which names are held, by whom, and where the claim stands.", Example: `{"names":["demo"]}`,
	})
	History = command[HistoryInput, HistoryResult](Contract{
		Name: "history", Kind: Read, Target: TargetAny, Modes: aboutOwner, Capability: CanRead,
		Doc: "The story of a name, or of a goal, in words.", Example: `{"name":"demo"}`, Refusals: []fault.Code{fault.NotFound},
	})
	Events = command[EventsInput, EventsResult](Contract{
		Name: "events", Kind: Read, Target: TargetAny, Modes: aboutNobody, Capability: CanRead, Timeout: MaxWait + DefaultTimeout,
		Doc: "The log from a sequence, as structured CloudEvents; wait for the next one.", Example: `{"from":1,"limit":10}`,
	})
	Usage = command[UsageInput, UsageResult](Contract{
		Name: "usage", Kind: Read, Target: TargetAny, Modes: aboutOwner, Capability: CanRead,
		Doc: "What was used, exactly, and with a rate card what it cost.", Example: `{"byEnvironment":true}`,
	})
	Logs = command[LogsInput, LogsResult](Contract{
		Name: "logs", Kind: Read, Target: TargetHolder, Modes: aboutOwner, Capability: CanFiles, Timeout: MaxWait + DefaultTimeout,
		Doc: "The output of a seat from a byte offset; wait for more.", Example: `{"name":"demo","from":0}`,
		Refusals: []fault.Code{fault.NotFound, fault.Expired, fault.FailedPrecondition},
	})
	Type = command[InputInput, InputResult](Contract{
		Name: "input", Kind: Effect, Target: TargetHolder, Modes: aboutOwner, Capability: CanManage,
		Doc: "Type a text into the terminal of a running seat; it is kept nowhere.", Example: `{"name":"demo","text":"date"}`,
		Refusals: []fault.Code{fault.NotFound, fault.Expired, fault.FailedPrecondition},
	})
	Attach = command[AttachInput, AttachResult](Contract{
		Name: "attach", Kind: Effect, Target: TargetHolder, Modes: aboutOwner, Capability: CanManage,
		Doc:      "Offer one terminal session with a running seat to one holder, who redeems it once.",
		Example:  `{"name":"demo","holder":"UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"}`,
		Refusals: []fault.Code{fault.NotFound, fault.Expired, fault.FailedPrecondition},
	})
	Wait = command[WaitInput, WaitResult](Contract{
		Name: "wait", Kind: Read, Target: TargetAny, Modes: aboutOwner, Capability: CanRead, Timeout: MaxWait + DefaultTimeout,
		Doc: "Wait until a name has a status, until an operation of it ended, or until a goal ended.", Example: `{"name":"demo","until":["running"]}`,
		Refusals: []fault.Code{fault.NotFound},
	})

	Spawn = command[SpawnInput, SpawnResult](Contract{
		Name: "spawn", Kind: Goal, Target: TargetAny, Modes: aboutOwner, Capability: CanSpawn,
		Doc:      "Make an environment and take it all the way to a running seat.",
		Example:  `{"name":"demo","provider":"process","cpus":"0.25","memory":"128MiB","ttl":"1h","command":["sh","-c","date"]}`,
		Refusals: []fault.Code{fault.NotFound, fault.Conflict, fault.FailedPrecondition},
	})
	Reserve = command[SpawnInput, SpawnResult](Contract{
		Name: "reserve", Kind: Goal, Target: TargetAny, Modes: aboutOwner, Capability: CanSpawn,
		Doc:     "Take the name and reserve at the provider; provision and start go on from there.",
		Example: `{"name":"demo","ttl":"1h","command":["sh","-c","date"]}`, Refusals: []fault.Code{fault.NotFound, fault.Conflict, fault.FailedPrecondition},
	})
	Provision = lifeCommand("provision", "Build what was reserved, without starting it.")
	Start     = lifeCommand("start", "Start the seat of what was reserved or provisioned.")
	Pause     = lifeCommand("pause", "Freeze the seat; its memory is kept and its lifetime runs on (decision 15).")
	Resume    = lifeCommand("resume", "Thaw a paused seat.")
	Extend    = command[ExtendInput, WriteResult](Contract{
		Name: "extend", Kind: Write, Target: TargetAny, Modes: aboutOwner, Capability: CanManage,
		Doc: "Make a life longer; never shorter (R26-R32).", Example: `{"name":"demo","by":"30m"}`, Refusals: lifeRefusals,
	})
	Retire = command[RetireInput, WriteResult](Contract{
		Name: "retire", Kind: Write, Target: TargetAny, Modes: aboutOwner, Capability: CanManage,
		Doc: "End a life: stop, prove the exit, revoke, destroy, free the name.", Example: `{"name":"demo","grace":"10s"}`,
		Refusals: []fault.Code{fault.NotFound, fault.Expired, fault.Conflict, fault.FailedPrecondition},
	})
	Checkpoint = command[CheckpointInput, OperationResult](Contract{
		Name: "checkpoint", Kind: Goal, Target: TargetAny, Modes: aboutOwner, Capability: CanManage,
		Doc: "Capture a state that the provider keeps.", Example: `{"name":"demo"}`, Refusals: lifeRefusals,
	})
	Restore = command[RestoreInput, OperationResult](Contract{
		Name: "restore", Kind: Goal, Target: TargetAny, Modes: aboutOwner, Capability: CanManage,
		Doc: "Put a seat back, in place, to a checkpoint of its own; what it did since is lost.", Example: `{"name":"demo","checkpoint":"01a22ed2-ff57-7000-8de2-5828de278000"}`, Refusals: lifeRefusals,
	})
	Export = command[ExportInput, OperationResult](Contract{
		Name: "export", Kind: Goal, Target: TargetAny, Modes: aboutOwner, Capability: CanFiles,
		Doc: "Have a checkpoint written to a file, verified by length and digest (R33-R42).", Example: `{"name":"demo","maxBytes":1073741824}`, Refusals: lifeRefusals,
	})
	ExportRead = command[ExportReadInput, ExportReadResult](Contract{
		Name: "export-read", Kind: Read, Target: TargetHolder, Modes: aboutCaller, Capability: CanFiles,
		Doc: "One chunk of the file of an export goal that succeeded.", Example: `{"goal":"backup-1","offset":0}`,
		Refusals: []fault.Code{fault.NotFound, fault.FailedPrecondition, fault.Expired},
	})

	GoalGet = command[GoalRef, GoalResult](Contract{
		Name: "goal", Kind: Read, Target: TargetAny, Modes: aboutCaller, Capability: CanRead,
		Doc: "A goal of the caller as it stands; ended ones are answered for ever.", Example: `{"goal":"g-1"}`, Refusals: []fault.Code{fault.NotFound},
	})
	Goals = command[GoalsInput, GoalsResult](Contract{
		Name: "goals", Kind: Read, Target: TargetAny, Modes: aboutCaller, Capability: CanRead,
		Doc: "The goals of the caller: open ones, and the newest that ended.", Example: `{"ended":true}`,
	})
	GoalCancel = command[GoalCancelInput, GoalResult](Contract{
		Name: "goal-cancel", Kind: Write, Target: TargetAny, Modes: aboutCaller, Capability: CanManage,
		Doc: "Ask a goal of the caller to end; what is open is reconciled first.", Example: `{"goal":"g-1"}`,
		Refusals: []fault.Code{fault.NotFound, fault.FailedPrecondition, fault.Conflict},
	})
	WriteOff = command[WriteOffInput, WriteResult](Contract{
		Name: "write-off", Kind: Write, Target: TargetAny, Modes: aboutOwner, Capability: CanAdmin,
		Doc:     "Give up an environment whose operation stays uncertain: name and reservation are freed without proof (decision 13).",
		Example: `{"name":"demo","reason":"provider account closed"}`, Refusals: []fault.Code{fault.NotFound, fault.Expired, fault.Conflict, fault.FailedPrecondition},
	})
	TakeOver = command[TakeOverInput, TakeOverResult](Contract{
		Name: "takeover", Kind: Write, Target: TargetAny, Modes: aboutOwner, Capability: CanAdmin, Timeout: MaxWait,
		Doc:     "Hold the seats of an instance that does not serve any more, where their provider is reached from here too (decision 1).",
		Example: `{"instance":"abcdefghijklmnopqrstuvwxyz","confirmed":true}`, Refusals: []fault.Code{fault.NotFound, fault.Expired, fault.Conflict, fault.FailedPrecondition},
	})
	Shutdown = command[ShutdownInput, ShutdownResult](Contract{
		Name: "shutdown", Kind: Effect, Target: TargetOne, Modes: aboutNobody, Capability: CanAdmin,
		Doc: "End an instance, in order; its environments go on and are taken up by its next start.", Example: `{"empty":true}`,
		Refusals: []fault.Code{fault.FailedPrecondition},
	})
)

var lifeRefusals = []fault.Code{fault.NotFound, fault.Expired, fault.Conflict, fault.FailedPrecondition}

func lifeCommand(name, doc string) Command[SeatInput, WriteResult] {
	return command[SeatInput, WriteResult](Contract{
		Name: name, Kind: Write, Target: TargetAny, Modes: aboutOwner, Capability: CanManage,
		Doc: doc, Example: `{"name":"demo"}`, Refusals: lifeRefusals,
	})
}

// Table lists every command once.
var Table = []*Contract{
	Describe.Contract, Status.Contract, Hosts.Contract, Health.Contract,
	Ls.Contract, Inspect.Contract, Slots.Contract, History.Contract, Events.Contract, Usage.Contract, Logs.Contract, Wait.Contract, Type.Contract, Attach.Contract,
	Spawn.Contract, Reserve.Contract, Provision.Contract, Start.Contract, Pause.Contract, Resume.Contract, Extend.Contract,
	Checkpoint.Contract, Restore.Contract, Export.Contract, ExportRead.Contract, Retire.Contract,
	Turn.Contract, TurnPending.Contract, TurnYield.Contract, Stop.Contract,
	GoalGet.Contract, Goals.Contract, GoalCancel.Contract, WriteOff.Contract, TakeOver.Contract, Replay.Contract, VerifyLog.Contract,
	Intents.Contract, IntentAdmit.Contract, IntentUse.Contract, IntentRelease.Contract,
	PersonaDefine.Contract, PersonaRemove.Contract, PersonaList.Contract, PersonaShow.Contract,
	Shutdown.Contract, TranscriptReceive.Contract,
}
