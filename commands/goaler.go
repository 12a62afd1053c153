package commands

// Goaler is implemented by the inputs of commands that are accepted as goals.
type Goaler interface {
	// GoalID is the goal that was asked for; empty: that of the request's id.
	GoalID() string
}

// GoalID implements Goaler.
func (in SpawnInput) GoalID() string { return in.Goal }

// GoalID implements Goaler.
func (in CheckpointInput) GoalID() string { return in.Goal }

// GoalID implements Goaler.
func (in RestoreInput) GoalID() string { return in.Goal }

// GoalID implements Goaler.
func (in ExportInput) GoalID() string { return in.Goal }

// GoalID implements Goaler.
func (in TurnInput) GoalID() string { return in.Goal }
