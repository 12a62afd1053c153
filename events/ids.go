package events

import (
	"regexp"
	"strings"

	"github.com/google/uuid"

	"berth/events/fault"
)

// The typed names and ids. Each has one parser, which refuses with
// bad-request before any effect; the zero value means "absent".
type (
	// Space is one tenant: one stream.
	Space string
	// Owner is whom an agent acts for; `local` in open mode.
	Owner string
	// Actor is the agent's handle under its owner.
	Actor string
	// Alias is the operator-visible name of a seat.
	Alias string
	// UID is a lifecycle uid, [a-z0-9]{26,32}, never reused.
	UID string
	// InstanceID names a manager, [a-z0-9]{26}, kept across restarts.
	InstanceID string
	// EnvironmentID is ours (R61), a UUIDv7; never the provider's reference.
	EnvironmentID string
	// OperationID names one logical provider mutation, [A-Za-z0-9_-]{16,64}.
	OperationID string
	// EventID is a UUIDv7; the i-th event of a commit has the commit's id plus i.
	EventID string
	// CommandID is the caller's id of one request, [A-Za-z0-9_-]{1,64}.
	CommandID string
	// GoalID is the caller's name for a long-running command, same grammar.
	GoalID string
	// CredentialID names one credential in a lifecycle's ledger.
	CredentialID string
)

// Limits on names, in bytes.
const (
	MaxName    = 64
	MaxSubject = 1024
)

var (
	nameRE      = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$`)
	tokenRE     = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	operationRE = regexp.MustCompile(`^[A-Za-z0-9_-]{16,64}$`)
	uidRE       = regexp.MustCompile(`^[a-z0-9]{26,32}$`)
	instanceRE  = regexp.MustCompile(`^[a-z0-9]{26}$`)
)

// Caller is the triple that the subject carries and the broker authenticates
// (decision 21).
type Caller struct {
	Owner Owner `json:"owner"`
	Actor Actor `json:"actor"`
	UID   UID   `json:"uid"`
}

// String is owner.actor.uid, as in a subject.
func (c Caller) String() string {
	return string(c.Owner) + "." + string(c.Actor) + "." + string(c.UID)
}

// ParseAlias accepts a seat's name: letters, digits, - and _, 1 to 64 bytes,
// beginning and ending with a letter or digit. `chat_` is reserved.
func ParseAlias(s string) (Alias, error) {
	if err := parse("name", s, nameRE, "letters, digits, - and _, 1 to 64 of them, beginning and ending with a letter or digit"); err != nil {
		return "", err
	}
	if strings.HasPrefix(s, "chat_") {
		return "", fault.New(fault.BadRequest, "name %q: names that start with chat_ are reserved", s)
	}
	return Alias(s), nil
}

// ParseOwner accepts an owner's name.
func ParseOwner(s string) (Owner, error) {
	return Owner(s), parse("owner", s, nameRE, "letters, digits, - and _, 1 to 64 of them")
}

// ParseActor accepts an actor's handle.
func ParseActor(s string) (Actor, error) {
	return Actor(s), parse("actor", s, nameRE, "letters, digits, - and _, 1 to 64 of them")
}

// ParseSpace accepts the name of a tenant.
func ParseSpace(s string) (Space, error) {
	return Space(s), parse("space", s, nameRE, "letters, digits, - and _, 1 to 64 of them")
}

// ParseUID accepts a lifecycle uid.
func ParseUID(s string) (UID, error) {
	return UID(s), parse("lifecycle uid", s, uidRE, "26 to 32 of a-z and 0-9")
}

// ParseInstanceID accepts a manager's id.
func ParseInstanceID(s string) (InstanceID, error) {
	return InstanceID(s), parse("instance id", s, instanceRE, "26 of a-z and 0-9")
}

// ParseOperationID accepts an operation id; it is opaque to everybody else.
func ParseOperationID(s string) (OperationID, error) {
	return OperationID(s), parse("operation id", s, operationRE, "16 to 64 letters, digits, - and _")
}

// ParseCommandID accepts the id that a caller gives a request.
func ParseCommandID(s string) (CommandID, error) {
	return CommandID(s), parse("command id", s, tokenRE, "1 to 64 letters, digits, - and _")
}

// ParseGoalID accepts the id that a caller gives a goal.
func ParseGoalID(s string) (GoalID, error) {
	return GoalID(s), parse("goal id", s, tokenRE, "1 to 64 letters, digits, - and _")
}

// ParseEnvironmentID accepts a UUID version 7 in its canonical text.
func ParseEnvironmentID(s string) (EnvironmentID, error) {
	return EnvironmentID(s), parseUUID("environment id", s)
}

// ParseEventID accepts a UUID version 7 in its canonical text.
func ParseEventID(s string) (EventID, error) {
	return EventID(s), parseUUID("event id", s)
}

func parse(what, s string, re *regexp.Regexp, want string) error {
	if !re.MatchString(s) {
		return fault.New(fault.BadRequest, "%s %q is not valid: %s", what, clip(s), want)
	}
	return nil
}

func parseUUID(what, s string) error {
	if !isUUIDv7(s) {
		return fault.New(fault.BadRequest, "%s %q is not valid: a UUID version 7 in lower case", what, clip(s))
	}
	return nil
}

// isUUIDv7 says that s is the canonical text of a UUID version 7: lower case,
// with hyphens. Each commit is checked, so it is done by hand.
func isUUIDv7(s string) bool {
	if len(s) != 36 || s[14] != '7' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8, i == 13, i == 18, i == 23:
			if c != '-' {
				return false
			}
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f':
		default:
			return false
		}
	}
	return true
}

// clip keeps a refusal readable whatever was sent.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// At is the id of the i-th event of the commit with id e: the last 48 bits of
// the UUID plus i, so that one id is stored per commit and every event still
// has its own UUIDv7.
func (e EventID) At(i int) EventID {
	u, err := uuid.Parse(string(e))
	if err != nil || i == 0 {
		return e
	}
	for k, carry := 15, i; k >= 10 && carry > 0; k-- {
		carry += int(u[k])
		u[k] = byte(carry)
		carry >>= 8
	}
	return EventID(u.String())
}

// IDs is where every id comes from, so that no pure code makes one. Each
// method returns a fresh value; implementations are safe for concurrent use.
type IDs interface {
	// UUID returns a UUIDv7, rising within one process.
	UUID() string
	// Token returns 26 random characters of [a-z0-9], at least 128 bits.
	Token() string
}
