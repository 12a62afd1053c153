package commands

import (
	"berth/events"
	"berth/events/fault"
)

// Named says which environment is meant: by name, and if UID is set only that
// lifecycle of the name; another one is refused with expired.
type Named struct {
	Name string `json:"name" doc:"name of the environment" pattern:"^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$"`
	UID  string `json:"uid,omitzero" doc:"only if this is the name's current lifecycle uid" pattern:"^[a-z0-9]{26,32}$"`
}

// Check implements Input.
func (n Named) Check() error {
	if _, err := events.ParseAlias(n.Name); err != nil {
		return named("name", err)
	}
	// A name is public text: an nkey seed would be a name by its characters.
	if err := checkText("name", n.Name, events.MaxName); err != nil || n.UID == "" {
		return err
	}
	_, err := events.ParseUID(n.UID)
	return named("uid", err)
}

// Empty is the input of a command that needs none.
type Empty struct{}

// Check implements Input.
func (Empty) Check() error { return nil }

// GoalRef names one goal of the caller.
type GoalRef struct {
	Goal string `json:"goal" doc:"goal id" pattern:"^[A-Za-z0-9_-]{1,64}$"`
}

// Check implements Input.
func (g GoalRef) Check() error {
	if _, err := events.ParseGoalID(g.Goal); err != nil {
		return named("goal", err)
	}
	return checkText("goal", g.Goal, events.MaxName)
}

// checkGoal accepts the optional goal id of a goal command.
func checkGoal(id string) error {
	if id == "" {
		return nil
	}
	return GoalRef{id}.Check()
}

func checkID(id string) error {
	if _, err := events.ParseCommandID(id); err != nil {
		return named("id", err)
	}
	return checkText("id", id, events.MaxName)
}

// checkText accepts an optional text of at most most bytes (R71).
func checkText(field, s string, most int) error {
	switch {
	case s == "":
		return nil
	case len(s) > most:
		return bad(field, "it has %d bytes; at most %d are kept", len(s), most)
	}
	if err := events.CheckText(field, s); err != nil {
		f := fault.From(err)
		return bad(field, "%s", f.Message).WithHint("%s", f.Hint)
	}
	return nil
}

// first is the first error of several checks.
func first(errs ...error) error {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}
