package events

import (
	"strconv"
	"time"
)

// writeEvent appends the data of an event as encoding/json writes it, for the
// types that most records are made of: a commit spends most of its encoding in
// reflection otherwise. ok is false for any other type, and for a value that
// only the library is sure of; b is then worth nothing. A test holds each type
// to the library's bytes.
func writeEvent(b []byte, e Event) (out []byte, ok bool) {
	w := writer{b: b}
	switch e := e.(type) {
	case SlotActivated:
		w.uid(e.UID)
	case SlotTerminalizing:
		w.uid(e.UID)
		w.text(`,"reason":`, e.Reason)
		w.textIf(`,"grace":`, e.Grace)
	case SlotCleaned:
		w.uid(e.UID)
	case SlotRetired:
		w.uid(e.UID)
	case SlotTakenOver:
		w.uid(e.UID)
		w.text(`,"holder":`, string(e.Holder))
		w.number(`,"epoch":`, e.Epoch)
	case HeadActivated:
		w.uidOperation(e.UID, e.Operation)
	case HeadRetiring:
		w.uidOperation(e.UID, e.Operation)
	case HeadRetired:
		w.uidOperation(e.UID, e.Operation)
	case GateRetired:
		w.uidOperation(e.UID, e.Operation)
	case GateOpened:
		w.uidOperation(e.UID, e.Operation)
		w.number(`,"generation":`, e.Generation)
	case GateFrozen:
		w.uidOperation(e.UID, e.Operation)
		w.text(`,"kind":`, e.Kind)
	case CredentialMinted:
		w.uid(e.UID)
		w.text(`,"credential":`, string(e.Credential))
		w.text(`,"holder":`, e.Holder)
		w.number(`,"generation":`, e.Generation)
		w.timeIf(`,"expiresAt":`, e.ExpiresAt)
		if e.BearerSource != nil {
			w.bad = true // rare: the library writes it
		}
	case CredentialReleased:
		w.uid(e.UID)
		w.text(`,"credential":`, string(e.Credential))
	case CredentialRevoked:
		w.uid(e.UID)
		w.text(`,"credential":`, string(e.Credential))
	case GoalProgressed:
		w.text(`{"phase":`, e.Phase)
		w.textIf(`,"detail":`, e.Detail)
	case TargetChanged:
		w.environment(e.Environment)
		w.text(`,"target":`, string(e.Target))
	default:
		w.operation(e)
	}
	return append(w.b, '}'), !w.bad
}

// operation is writeEvent for what happens to operations.
func (w *writer) operation(e Event) {
	switch e := e.(type) {
	case OperationPlanned:
		w.environmentOperation(e.Environment, e.Operation)
		w.text(`,"verb":`, string(e.Verb))
		w.arguments(e.Arguments)
		w.textIf(`,"goal":`, e.Goal)
	case OperationDispatched:
		w.environmentOperation(e.Environment, e.Operation)
		w.text(`,"verb":`, string(e.Verb))
		w.arguments(e.Arguments)
		w.textIf(`,"goal":`, e.Goal)
		w.time(`,"deadline":`, e.Deadline)
	case OperationConfirmed:
		w.environmentOperation(e.Environment, e.Operation)
		w.facts(&e.Facts)
	case OperationLanded:
		w.environmentOperation(e.Environment, e.Operation)
		w.facts(&e.Facts)
		w.text(`,"evidence":`, e.Evidence)
	case OperationExcluded:
		w.environmentOperation(e.Environment, e.Operation)
		w.text(`,"evidence":`, e.Evidence)
	case EnvironmentObserved:
		w.environment(e.Environment)
		w.facts(&e.Facts)
	case OperationCancelled:
		w.environmentOperation(e.Environment, e.Operation)
		w.text(`,"reason":`, e.Reason)
	case FileAccepted:
		w.environmentOperation(e.Environment, e.Operation)
		w.file(&e.File)
	case DeadlineChanged:
		w.environment(e.Environment)
		w.time(`,"deadline":`, e.Deadline)
	default:
		w.larger(e)
	}
}

// writer appends members to b; after the first surprise it is bad.
type writer struct {
	b   []byte
	bad bool
}

func (w *writer) text(name, value string) { w.b = quote(append(w.b, name...), value) }

func (w *writer) textIf(name, value string) {
	if value != "" {
		w.text(name, value)
	}
}

func (w *writer) number(name string, n uint64) {
	w.b = strconv.AppendUint(append(w.b, name...), n, 10)
}

func (w *writer) numberIf(name string, n int64) {
	if n != 0 {
		w.b = strconv.AppendInt(append(w.b, name...), n, 10)
	}
}

// time is RFC 3339 in UTC, with as many digits as are needed.
func (w *writer) time(name string, t time.Time) {
	if y := t.Year(); y < 0 || y > 9999 || t.Location() != time.UTC {
		w.bad = true
		return
	}
	w.b = append(w.b, name...)
	w.b = append(t.AppendFormat(append(w.b, '"'), time.RFC3339Nano), '"')
}

func (w *writer) timeIf(name string, t *time.Time) {
	if t != nil {
		w.time(name, *t)
	}
}

func (w *writer) uid(u UID) { w.text(`{"uid":`, string(u)) }

func (w *writer) uidOperation(u UID, o OperationID) {
	w.uid(u)
	w.text(`,"operation":`, string(o))
}

func (w *writer) environment(e EnvironmentID) { w.text(`{"environment":`, string(e)) }

func (w *writer) environmentOperation(e EnvironmentID, o OperationID) {
	w.environment(e)
	w.text(`,"operation":`, string(o))
}

// arguments leaves out what is empty: the first member has no comma before it.
func (w *writer) arguments(a Arguments) {
	w.b = append(w.b, `,"arguments":{`...)
	from := len(w.b)
	w.timeIf(`,"extendTo":`, a.ExtendTo)
	w.timeIf(`,"wanted":`, a.Wanted)
	w.textIf(`,"checkpointId":`, a.CheckpointID)
	w.numberIf(`,"maxBytes":`, a.MaxBytes)
	w.textIf(`,"hostPath":`, a.HostPath)
	w.textIf(`,"fileId":`, a.FileID)
	w.textIf(`,"grace":`, a.Grace)
	w.close(from)
}

// close ends an object whose members began at from, each with a comma.
func (w *writer) close(from int) {
	if len(w.b) > from {
		w.b = append(w.b[:from], w.b[from+1:]...)
	}
	w.b = append(w.b, '}')
}

func (w *writer) facts(f *Facts) {
	w.b = append(w.b, `,"facts":{`...)
	from := len(w.b)
	w.textIf(`,"ref":`, f.Ref)
	w.textIf(`,"volumeId":`, f.VolumeID)
	w.textIf(`,"incarnation":`, f.Incarnation)
	w.text(`,"state":`, string(f.State))
	w.textIf(`,"network":`, f.Network)
	w.timeIf(`,"stoppedAt":`, f.StoppedAt)
	if f.ExitCode != nil {
		w.b = strconv.AppendInt(append(w.b, `,"exitCode":`...), int64(*f.ExitCode), 10)
	}
	if f.ExpiresAt == nil {
		w.b = append(w.b, `,"expiresAt":null`...)
	}
	w.timeIf(`,"expiresAt":`, f.ExpiresAt)
	w.time(`,"observedAt":`, f.ObservedAt)
	if c := f.Custody; c != nil {
		w.text(`,"custody":{"bootId":`, c.BootID)
		w.b = strconv.AppendInt(append(w.b, `,"pid":`...), int64(c.PID), 10)
		w.number(`,"startTime":`, c.StartTime)
		w.b = append(w.b, '}')
	}
	w.bad = w.bad || f.Ready != nil // once in a life, by the library
	if c := f.Checkpoint; c != nil {
		w.text(`,"checkpoint":{"id":`, c.ID)
		w.text(`,"kind":`, c.Kind)
		w.integer(`,"byteLength":`, c.ByteLength)
		w.textIf(`,"sha256":`, c.SHA256)
		w.time(`,"capturedAt":`, c.CapturedAt)
		w.b = append(w.b, '}')
	}
	if f.File != nil {
		w.file(f.File)
	}
	w.close(from)
}

func (w *writer) file(f *File) {
	w.b = append(w.b, `,"file":{`...)
	from := len(w.b)
	w.textIf(`,"id":`, f.ID)
	w.textIf(`,"path":`, f.Path)
	w.integer(`,"byteLength":`, f.ByteLength)
	w.text(`,"sha256":`, f.SHA256)
	w.close(from)
}
