package plane

import (
	"berth/commands"
	"berth/events"
)

// handlers has one row for every command of the table; a test says so.
var handlers = map[string]handler{
	"describe":               on(commands.Describe, (*Plane).describe),
	"status":                 on(commands.Status, (*Plane).status),
	"environment-host-facts": on(commands.Hosts, (*Plane).hosts),
	"health":                 on(commands.Health, (*Plane).health),
	"ls":                     on(commands.Ls, (*Plane).ls),
	"inspect":                on(commands.Inspect, (*Plane).inspect),
	"slots":                  on(commands.Slots, (*Plane).slots),
	"history":                on(commands.History, (*Plane).history),
	"events":                 on(commands.Events, (*Plane).events),
	"usage":                  on(commands.Usage, (*Plane).usage),
	"logs":                   on(commands.Logs, (*Plane).logs),
	"input":                  on(commands.Type, (*Plane).input),
	"attach":                 on(commands.Attach, (*Plane).attach),
	"wait":                   on(commands.Wait, (*Plane).wait),
	"spawn":                  on(commands.Spawn, spawnTo(events.TargetRunning)),
	"reserve":                on(commands.Reserve, spawnTo(events.TargetReserved)),
	"provision":              on(commands.Provision, advance(events.TargetProvisioned)),
	"start":                  on(commands.Start, advance(events.TargetRunning)),
	"pause":                  on(commands.Pause, queue(events.VerbPause)),
	"resume":                 on(commands.Resume, queue(events.VerbResume)),
	"extend":                 on(commands.Extend, (*Plane).extend),
	"retire":                 on(commands.Retire, (*Plane).retire),
	"checkpoint":             on(commands.Checkpoint, (*Plane).checkpoint),
	"restore":                on(commands.Restore, (*Plane).restore),
	"export":                 on(commands.Export, (*Plane).export),
	"export-read":            on(commands.ExportRead, (*Plane).exportRead),
	"turn":                   on(commands.Turn, (*Plane).turn),
	"turn-pending":           on(commands.TurnPending, (*Plane).turnPending),
	"turn-yield":             on(commands.TurnYield, (*Plane).turnYield),
	"stop":                   on(commands.Stop, (*Plane).stop),
	"goal":                   on(commands.GoalGet, (*Plane).goal),
	"goals":                  on(commands.Goals, (*Plane).goals),
	"goal-cancel":            on(commands.GoalCancel, (*Plane).goalCancel),
	"write-off":              on(commands.WriteOff, (*Plane).writeOff),
	"takeover":               on(commands.TakeOver, (*Plane).takeOver),
	"persona-define":         on(commands.PersonaDefine, (*Plane).personaDefine),
	"persona-remove":         on(commands.PersonaRemove, (*Plane).personaRemove),
	"persona-list":           on(commands.PersonaList, (*Plane).personaList),
	"persona-show":           on(commands.PersonaShow, (*Plane).personaShow),
	"replay":                 on(commands.Replay, (*Plane).replayLog),
	"verify":                 on(commands.VerifyLog, (*Plane).verifyLog),
	"shutdown":               on(commands.Shutdown, (*Plane).shutdown),
}
