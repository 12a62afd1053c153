package events

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"berth/events/fault"
)

// upcast turns the data of one version into that of the next.
type upcast func(data []byte) ([]byte, error)

// row declares one event type: its name, the version that is written, how its
// data is read, and the upcasters from version 1, 2, ... to the next.
type row struct {
	name    string
	typ     string // name with version, as it is stored
	version int
	decode  func(data []byte) (Event, error)
	scan    func(*scanner) Event // the fast reader, nil for rare types
	older   []upcast
}

// registry is the one table of event types. A new type is a struct with its
// name in names.go, a line here and a golden file in testdata/frozen. A change
// of meaning raises the version and adds an upcaster.
var registry = index(
	of[SlotClaimed](1),
	of[SlotActivated](1),
	of[SlotTerminalizing](1),
	of[SlotCleaned](1),
	of[SlotRetired](1),
	of[SlotTakenOver](1),
	of[HeadActivated](1),
	of[HeadEpochAdvanced](1),
	of[HeadRetiring](1),
	of[HeadRetired](1),
	of[GateOpened](1),
	of[GateFrozen](1),
	of[GateRetired](1),
	of[CredentialMinted](1),
	of[CredentialReleased](1),
	of[CredentialRevoked](1),
	of[EnvironmentProbed](1),
	of[EnvironmentRefused](1),
	of[TargetChanged](1),
	of[OperationPlanned](1),
	of[OperationDispatched](1),
	of[OperationConfirmed](1),
	of[OperationRefused](1),
	of[OperationUncertain](1),
	of[OperationLanded](1),
	of[OperationExcluded](1),
	of[OperationStuck](1),
	of[OperationCancelled](1),
	of[EnvironmentObserved](1),
	of[DeadlineChanged](1),
	of[FileAccepted](1),
	of[FileRejected](1),
	of[EnvironmentWrittenOff](1),
	of[EnvironmentInherited](1),
	of[CommandAnswered](1),
	of[IntentAdmitted](1),
	of[IntentConsumed](1),
	of[IntentSwept](1),
	of[IntentEnded](1),
	of[IntentReleased](1),
	of[TurnRelayed](1),
	of[TurnYielded](1),
	of[TurnDropped](1),
	of[GoalAccepted](1),
	of[GoalOffered](1),
	of[GoalDeclined](1),
	of[GoalClaimed](1),
	of[GoalProgressed](1),
	of[GoalCancelRequested](1),
	of[GoalEnded](1),
	of[GoalSettled](1),
	of[GoalRenamed](1),
	of[NumberIssued](1),
	of[PersonaDefined](1),
	of[PersonaRemoved](1),
	of[TranscriptStaged](1),
	of[TranscriptConsumed](1),
	of[TranscriptExpired](1),
	of[UIDReserved](1),
	of[SessionRedeemed](1),
	of[InstanceRegistered](1),
	of[InstanceStopped](1),
	of[InstanceObserved](1),
	of[ClockSkewed](1),
	of[ChainSigned](1),
	of[HistoryLossAccepted](1),
	of[ProviderAccepted](1),
	of[ProviderFenced](1),
	of[ProviderAnswered](1),
)

// of declares the row of T at a version; older are its upcasters.
func of[T Event](version int, older ...upcast) row {
	var zero T
	return row{name: zero.EventType(), typ: zero.EventType() + ".v" + strconv.Itoa(version), version: version, older: older, scan: scans[zero.EventType()], decode: func(data []byte) (Event, error) {
		var v T
		if err := unmarshal(data, &v); err != nil {
			return nil, err
		}
		return v, nil
	}}
}

// v1 keeps the semantics of encoding/json (durations as nanoseconds, nil
// slices as null) with the speed of the newer reader.
var v1 = jsonv1.DefaultOptionsV1()

func unmarshal(data []byte, v any) error { return jsonv2.Unmarshal(data, v, v1) }

func index(rows ...row) map[string]row {
	m := make(map[string]row, len(rows))
	for _, r := range rows {
		if _, dup := m[r.name]; dup || len(r.older) != r.version-1 {
			panic("events: the registry row of " + r.name + " is wrong")
		}
		m[r.name] = r
	}
	return m
}

// Types lists the versioned name of every event type, sorted.
func Types() []string {
	out := make([]string, 0, len(registry))
	for _, r := range registry {
		out = append(out, r.typ)
	}
	slices.Sort(out)
	return out
}

// VersionedType is the name that an event is stored under, such as
// slot.claimed.v1. An unregistered type is refused with bad-request.
func VersionedType(e Event) (string, error) {
	if e == nil {
		return "", fault.New(fault.BadRequest, "a commit holds a nil event")
	}
	r, ok := registry[e.EventType()]
	if !ok {
		return "", fault.New(fault.BadRequest, "event type %q is not registered", clip(e.EventType()))
	}
	return r.typ, nil
}

// Decode reads one event by its versioned type. It returns the event by value.
// Unknown types and newer versions are refused with unsupported-version,
// unreadable data with internal.
func Decode(typ string, data []byte) (Event, error) { return decodeWith(registry, typ, data) }

func decodeWith(table map[string]row, typ string, data []byte) (Event, error) {
	dot := strings.LastIndex(typ, ".v")
	if dot < 0 {
		return nil, fault.New(fault.UnsupportedVersion, "event type %q has no version", clip(typ))
	}
	r, ok := table[typ[:dot]]
	if !ok {
		return nil, fault.New(fault.UnsupportedVersion, "event type %q is not known to this program; a newer berth may read it", clip(typ))
	}
	version, err := strconv.Atoi(typ[dot+2:])
	if err != nil || version < 1 || strconv.Itoa(version) != typ[dot+2:] {
		return nil, fault.New(fault.UnsupportedVersion, "event type %q has no version", clip(typ))
	}
	if version > r.version {
		return nil, fault.New(fault.UnsupportedVersion, "event type %q is newer than version %d, which this program reads; use a newer berth", clip(typ), r.version)
	}
	if !isObject(data) {
		return nil, fault.New(fault.Internal, "event type %q: its data is not an object", clip(typ))
	}
	for v := version; v < r.version; v++ {
		if data, err = r.older[v-1](data); err != nil {
			return nil, fault.New(fault.Internal, "event type %q: raising version %d: %s", clip(typ), v, Scrub(err.Error()))
		}
	}
	if e, ok := scanEvent(r, data); ok {
		return e, nil
	}
	e, err := r.decode(data)
	if err != nil {
		return nil, fault.New(fault.Internal, "event type %q: its data can't be read: %s", clip(typ), Scrub(err.Error()))
	}
	return e, nil
}

func isObject(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{"))
}
