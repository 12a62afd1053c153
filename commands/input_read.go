package commands

import (
	"slices"
	"strconv"
	"time"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/projections"
)

// LsInput chooses rows of the fleet.
type LsInput struct {
	Provider string `json:"provider,omitzero" doc:"only of this provider"`
	Status   string `json:"status,omitzero" doc:"only with this status"`
	All      bool   `json:"all,omitzero" doc:"also lives that have ended"`
	After    string `json:"after,omitzero" doc:"continue after the next of the page before" maxLength:"256"`
	Limit    int    `json:"limit,omitzero" doc:"rows of a page; 200 if absent" max:"500"`
}

// Check implements Input.
func (in LsInput) Check() error {
	if in.Status != "" && !slices.Contains(aggregates.Statuses, aggregates.Status(in.Status)) {
		return bad("status", "%q is not a status", clip(in.Status))
	}
	return first(checkText("provider", in.Provider, events.MaxName), checkText("after", in.After, 256), clipLimit("limit", in.Limit, MaxPage))
}

// SlotsInput chooses slots: the held ones, or those of Names.
type SlotsInput struct {
	Names          []string `json:"names,omitzero" doc:"only these, each once" maxItems:"100"`
	IncludeRetired bool     `json:"includeRetired,omitzero" doc:"also names that nobody holds any more"`
	After          string   `json:"after,omitzero" doc:"continue after the next of the page before" maxLength:"64"`
	Limit          int      `json:"limit,omitzero" doc:"rows of a page; 200 if absent" max:"500"`
}

// Check implements Input.
func (in SlotsInput) Check() error {
	if len(in.Names) > MaxNames {
		return bad("names", "there are %d; at most %d are possible", len(in.Names), MaxNames)
	}
	for i, n := range in.Names {
		if err := (Named{Name: n}).Check(); err != nil {
			return named("names."+strconv.Itoa(i), err)
		}
		if slices.Index(in.Names, n) != i {
			return bad("names."+strconv.Itoa(i), "%s is given twice", n)
		}
	}
	return first(checkText("after", in.After, events.MaxName), clipLimit("limit", in.Limit, MaxPage))
}

// GoalsInput chooses goals of the caller.
type GoalsInput struct {
	Ended bool   `json:"ended,omitzero" doc:"also the newest of those that ended"`
	After string `json:"after,omitzero" doc:"continue after the next of the page before" maxLength:"64"`
	Limit int    `json:"limit,omitzero" doc:"rows of a page; 200 if absent" max:"500"`
}

// Check implements Input.
func (in GoalsInput) Check() error {
	return first(checkText("after", in.After, events.MaxName), clipLimit("limit", in.Limit, MaxPage))
}

// GoalCancelInput asks a goal to end.
type GoalCancelInput struct {
	GoalRef
	Mode string `json:"mode,omitzero" doc:"graceful (if absent) or terminate" enum:"graceful,terminate"`
}

// Check implements Input.
func (in GoalCancelInput) Check() error {
	if in.Mode != "" && in.Mode != "graceful" && in.Mode != "terminate" {
		return bad("mode", "%q is neither graceful nor terminate", clip(in.Mode))
	}
	return in.GoalRef.Check()
}

// HistoryInput asks for the story of a name, or of a goal.
type HistoryInput struct {
	Name  string `json:"name,omitzero" doc:"name of an environment" pattern:"^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$"`
	Goal  string `json:"goal,omitzero" doc:"goal id of the caller, instead of a name" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	After uint64 `json:"after,omitzero" doc:"only what is after this sequence"`
	Limit int    `json:"limit,omitzero" doc:"lines of a page; 200 if absent" max:"500"`
}

// Check implements Input.
func (in HistoryInput) Check() error {
	if (in.Name == "") == (in.Goal == "") {
		return bad("name", "give either name or goal")
	}
	if in.Name != "" {
		return first(Named{Name: in.Name}.Check(), clipLimit("limit", in.Limit, MaxPage))
	}
	return first(GoalRef{in.Goal}.Check(), clipLimit("limit", in.Limit, MaxPage))
}

// EventsInput reads the log.
type EventsInput struct {
	From  uint64 `json:"from,omitzero" doc:"first sequence; 1 if absent"`
	Limit int    `json:"limit,omitzero" doc:"commits of a page; 200 if absent" max:"500"`
	Wait  string `json:"wait,omitzero" doc:"wait so long for the first, such as 30s"`
}

// Check implements Input.
func (in EventsInput) Check() error {
	if err := clipLimit("limit", in.Limit, MaxPage); err != nil {
		return err
	}
	_, err := waitFor(in.Wait)
	return err
}

// WaitFor is Wait as a duration, zero if none was given.
func (in EventsInput) WaitFor() (time.Duration, error) { return waitFor(in.Wait) }

// UsageInput asks what was used, and with a rate card what it cost.
type UsageInput struct {
	ByEnvironment bool                  `json:"byEnvironment,omitzero" doc:"a row for every environment instead of one for every owner"`
	Rates         *projections.RateCard `json:"rates,omitzero" doc:"what an hour costs"`
	Offset        int                   `json:"offset,omitzero" doc:"continue at the next of the page before"`
	Limit         int                   `json:"limit,omitzero" doc:"rows of a page; 200 if absent" max:"500"`
}

// Check implements Input.
func (in UsageInput) Check() error {
	if err := first(clipLimit("offset", in.Offset, projections.MaxFleet), clipLimit("limit", in.Limit, MaxPage)); err != nil || in.Rates == nil {
		return err
	}
	if len(in.Rates.Providers) > MaxRates {
		return bad("rates.providers", "there are %d; at most %d are possible", len(in.Rates.Providers), MaxRates)
	}
	if err := in.Rates.Validate(); err != nil {
		return bad("rates", "%s", fault.From(err).Message)
	}
	return nil
}

// WaitInput waits for an environment or a goal to be somewhere.
type WaitInput struct {
	Name      string   `json:"name,omitzero" doc:"name of an environment" pattern:"^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$"`
	Goal      string   `json:"goal,omitzero" doc:"goal id of the caller, instead of a name: until it ended" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Until     []string `json:"until,omitzero" doc:"statuses, any of which ends the wait for a name" maxItems:"13"`
	Operation string   `json:"operation,omitzero" doc:"wait until this operation of the name ended" pattern:"^[A-Za-z0-9_-]{16,64}$"`
	UID       string   `json:"uid,omitzero" doc:"of this lifecycle of the name; another one ends the wait as retired" pattern:"^[a-z0-9]{26,32}$"`
	Wait      string   `json:"wait,omitzero" doc:"how long this request waits, such as 30s; as long as is possible if absent"`
}

// Check implements Input.
func (in WaitInput) Check() error {
	if (in.Name == "") == (in.Goal == "") {
		return bad("name", "give either name or goal")
	}
	if _, err := waitFor(in.Wait); err != nil {
		return err
	}
	if in.Goal != "" {
		if len(in.Until) > 0 || in.Operation != "" || in.UID != "" {
			return bad("goal", "until, operation and uid are of a name, not of a goal")
		}
		return GoalRef{in.Goal}.Check()
	}
	if len(in.Until) == 0 && in.Operation == "" {
		return bad("until", "give until, operation or both")
	}
	if in.Operation != "" {
		if _, err := events.ParseOperationID(in.Operation); err != nil {
			return named("operation", err)
		}
	}
	for i, s := range in.Until {
		if !slices.Contains(aggregates.Statuses, aggregates.Status(s)) || len(in.Until) > len(aggregates.Statuses) {
			return bad("until."+strconv.Itoa(i), "%q is not a status", clip(s))
		}
	}
	return Named{Name: in.Name, UID: in.UID}.Check()
}

// WaitFor is Wait as a duration, MaxWait if none was given.
func (in WaitInput) WaitFor() time.Duration {
	if d, err := waitFor(in.Wait); err == nil && in.Wait != "" {
		return d
	}
	return MaxWait
}
