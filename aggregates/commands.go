package aggregates

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"berth/events"
	"berth/events/fault"
)

// Limits of the command ids that a seat remembers (decision 5).
const (
	KeepCommands    = 64
	KeepCommandsFor = 24 * time.Hour
	MaxCommandsKept = 1024 // whatever their age
)

// Commands is what a seat remembers of the commands that changed it, oldest
// first, so that a repeated id gets the same answer.
type Commands struct {
	Kept []CommandEntry
	// Forgotten is the newest time of an entry that was dropped, by its writer's
	// clock or by its own id: an unknown time-ordered id that is not newer can't
	// be told from it. An id that says no time is only known while it is kept.
	Forgotten time.Time
}

// CommandEntry is one command that was carried out.
type CommandEntry struct {
	ID          events.CommandID
	Fingerprint string
	Sequence    uint64
	At          time.Time
	Operation   events.OperationID
}

func (c Commands) add(r *events.Record) Commands {
	if r.Meta.Command == "" {
		return c
	}
	if i := slices.IndexFunc(c.Kept, func(e CommandEntry) bool { return e.ID == r.Meta.Command }); i >= 0 {
		return c
	}
	// Never written into in place, so exactly as large as it has to be.
	c.Kept = append(append(make([]CommandEntry, 0, len(c.Kept)+1), c.Kept...), CommandEntry{r.Meta.Command, r.Meta.Fingerprint, r.Sequence, r.Meta.Time, r.Meta.Operation})
	drop := 0
	for n := len(c.Kept); n-drop > KeepCommands && (r.Meta.Time.Sub(c.Kept[drop].At) > KeepCommandsFor || n-drop > MaxCommandsKept); drop++ {
		c.Forgotten = later(c.Forgotten, c.Kept[drop].At)
		// The caller's clock may run ahead of the writer's.
		if at, ok := timeOf(c.Kept[drop].ID); ok {
			c.Forgotten = later(c.Forgotten, at)
		}
	}
	if drop > 0 {
		c.Kept = slices.Clone(c.Kept[drop:])
	}
	return c
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Seen finds the answer of an id that was used before: found with the same
// fingerprint, a conflict with another, expired if the id is so old that it
// may have been forgotten.
func (c Commands) Seen(id events.CommandID, fingerprint string) (CommandEntry, bool, error) {
	for _, e := range c.Kept {
		if e.ID == id {
			if e.Fingerprint != fingerprint {
				return e, false, fault.New(fault.Conflict, "command id %s was used for another request", id).WithHint("use a new command id")
			}
			return e, true, nil
		}
	}
	if at, ok := timeOf(id); ok && !c.Forgotten.IsZero() && !at.After(c.Forgotten) {
		return CommandEntry{}, false, fault.New(fault.Expired, "command id %s is too old to tell whether it was carried out", id)
	}
	return CommandEntry{}, false, nil
}

func timeOf(id events.CommandID) (time.Time, bool) {
	u, err := uuid.Parse(string(id))
	if err != nil || u.Version() != 7 {
		return time.Time{}, false
	}
	sec, nsec := u.Time().UnixTime()
	return time.Unix(sec, nsec).UTC(), true
}
