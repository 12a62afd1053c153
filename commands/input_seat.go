package commands

import (
	"time"

	"berth/events"
)

// SeatInput is the input of provision, start, pause and resume.
type SeatInput struct{ Named }

// ExtendInput asks for a longer life: By more, or Until a time; one of them.
type ExtendInput struct {
	Named
	By    string `json:"by,omitzero" doc:"how much longer, such as 30m"`
	Until string `json:"until,omitzero" doc:"until when, RFC 3339"`
}

// Check implements Input.
func (in ExtendInput) Check() error {
	if err := in.Named.Check(); err != nil {
		return err
	}
	switch {
	case (in.By == "") == (in.Until == ""):
		return bad("by", "give either by or until").WithHint("--by 30m makes a life longer by that, --until 2h so that it ends in two hours")
	case in.By != "":
		_, err := in.Growth()
		return err
	}
	_, err := ParseTime("until", in.Until)
	return err
}

// Growth is By as a duration.
func (in ExtendInput) Growth() (time.Duration, error) {
	return ParseDuration("by", in.By, MinLifetime, MaxLifetime)
}

// RetireInput asks for the end of a life.
type RetireInput struct {
	Named
	Grace string `json:"grace,omitzero" doc:"how long the seat may take to stop before it is killed, such as 10s"`
}

// Check implements Input.
func (in RetireInput) Check() error {
	if err := in.Named.Check(); err != nil {
		return err
	}
	_, err := in.GraceFor()
	return err
}

// GraceFor is Grace as a duration, zero if none was given.
func (in RetireInput) GraceFor() (time.Duration, error) {
	if in.Grace == "" {
		return 0, nil
	}
	return ParseDuration("grace", in.Grace, 0, MaxGrace)
}

// WriteOffInput gives an environment up whose end can't be proved (decision 13).
type WriteOffInput struct {
	Named
	Reason string `json:"reason" doc:"why; history shows it for ever" maxLength:"512"`
}

// Check implements Input.
func (in WriteOffInput) Check() error {
	if in.Reason == "" {
		return bad("reason", "it is empty: say why, history shows it for ever")
	}
	return first(in.Named.Check(), checkText("reason", in.Reason, MaxReason))
}

// TakeOverInput names an instance that is gone, and one of its seats or all.
type TakeOverInput struct {
	Instance  string `json:"instance" doc:"the instance that does not serve any more" pattern:"^[a-z0-9]{26}$"`
	Seat      string `json:"seat,omitzero" doc:"the one name to take over; all that the instance holds if absent" pattern:"^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$"`
	Confirmed bool   `json:"confirmed,omitzero" doc:"an operator's word that it does not run, where it did not record its end"`
}

// Check implements Input.
func (in TakeOverInput) Check() error {
	if _, err := events.ParseInstanceID(in.Instance); err != nil {
		return named("instance", err)
	}
	if in.Seat == "" {
		return nil
	}
	if _, err := events.ParseAlias(in.Seat); err != nil {
		return named("seat", err)
	}
	return checkText("seat", in.Seat, events.MaxName)
}

// CheckpointInput asks for a state that the provider keeps.
type CheckpointInput struct {
	Named
	Goal string `json:"goal,omitzero" doc:"id of the goal; the request's id if absent" pattern:"^[A-Za-z0-9_-]{1,64}$"`
}

// Check implements Input.
func (in CheckpointInput) Check() error { return first(in.Named.Check(), checkGoal(in.Goal)) }

// RestoreInput asks that a seat is put back to a checkpoint of its own.
type RestoreInput struct {
	Named
	Goal       string `json:"goal,omitzero" doc:"id of the goal; the request's id if absent" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Checkpoint string `json:"checkpoint" doc:"id of the checkpoint"`
}

// Check implements Input.
func (in RestoreInput) Check() error {
	if in.Checkpoint == "" {
		return bad("checkpoint", "it is empty: say which checkpoint, `berth inspect` lists them")
	}
	return first(in.Named.Check(), checkGoal(in.Goal), checkText("checkpoint", in.Checkpoint, events.MaxName))
}

// ExportInput asks for a file of a checkpoint.
type ExportInput struct {
	Named
	Goal       string `json:"goal,omitzero" doc:"id of the goal; the request's id if absent" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Checkpoint string `json:"checkpoint,omitzero" doc:"id of the checkpoint; the newest if absent"`
	MaxBytes   int64  `json:"maxBytes,omitzero" doc:"the longest file that is accepted, in bytes (R37); 64 GiB if absent" max:"17592186044416"`
}

// Check implements Input.
func (in ExportInput) Check() error {
	return first(in.Named.Check(), checkGoal(in.Goal), checkText("checkpoint", in.Checkpoint, events.MaxName), clipLimit("maxBytes", in.MaxBytes, MaxExport))
}

// Bytes is MaxBytes or its default.
func (in ExportInput) Bytes() int64 {
	if in.MaxBytes == 0 {
		return DefaultExport
	}
	return in.MaxBytes
}

// ExportReadInput asks for one chunk of an accepted file.
type ExportReadInput struct {
	GoalRef
	Offset int64 `json:"offset,omitzero" doc:"first byte"`
	Limit  int   `json:"limit,omitzero" doc:"at most so many bytes; 256 KiB if absent" max:"524288"`
}

// Check implements Input.
func (in ExportReadInput) Check() error {
	return first(in.GoalRef.Check(), clipLimit("offset", in.Offset, MaxExport), clipLimit("limit", in.Limit, MaxChunk))
}

// LogsInput asks for the seat's output from a byte offset.
type LogsInput struct {
	Named
	From  int64  `json:"from,omitzero" doc:"first byte; what is no longer kept is skipped"`
	Limit int    `json:"limit,omitzero" doc:"at most so many bytes; 256 KiB if absent" max:"524288"`
	Wait  string `json:"wait,omitzero" doc:"wait so long for more, such as 30s"`
}

// Check implements Input.
func (in LogsInput) Check() error {
	if err := first(in.Named.Check(), clipLimit("from", in.From, MaxExport), clipLimit("limit", in.Limit, MaxChunk)); err != nil {
		return err
	}
	_, err := waitFor(in.Wait)
	return err
}

// WaitFor is Wait as a duration, zero if none was given.
func (in LogsInput) WaitFor() (time.Duration, error) { return waitFor(in.Wait) }

func waitFor(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	return ParseDuration("wait", s, 0, MaxWait)
}
