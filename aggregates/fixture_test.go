package aggregates_test

import (
	"berth/events"
)

// capable is a provider that can do everything.
var capable = events.Capabilities{PauseKeepsMemory: true, ColdCheckpoint: true, Export: true, Extend: events.ExtendLimit{StepMs: 600_000}}
