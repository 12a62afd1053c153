package commands

import (
	"strings"

	"berth/events"
	"berth/events/fault"
)

// Mode is whose things a request is about (decision 21).
type Mode string

// The modes of the subject grammar.
const (
	ModeSelf  Mode = "self"  // the caller's own lifecycle
	ModeOwner Mode = "owner" // something of the caller's owner
	ModeAny   Mode = "any"   // something of any owner, which needs authority
	ModeNone  Mode = "none"  // nobody's: the space or an instance
)

// Modes lists every mode.
var Modes = []Mode{ModeSelf, ModeOwner, ModeAny, ModeNone}

// Any is the target of a request that every instance can answer.
const Any = "any"

// noOwner stands in the subject where a mode names no owner.
const noOwner = "_"

// Address is everything that a subject says: which instance is asked, for
// what, about whose things, and by whom.
type Address struct {
	Target  string // Any, or an instance id
	Command string
	Mode    Mode
	Owner   events.Owner // modes owner and any; empty otherwise
	Caller  events.Caller
}

// Prefix is what every command subject of a space starts with.
func Prefix(s events.Space) string { return "berth." + string(s) + ".cmd." }

// Subject is the address in a space:
// berth.<space>.cmd.<any|instance>.<command>.<mode>.<owner|_>.<owner>.<actor>.<uid>.
func (a Address) Subject(s events.Space) string {
	owner := string(a.Owner)
	if owner == "" {
		owner = noOwner
	}
	return Prefix(s) + a.Target + "." + a.Command + "." + string(a.Mode) + "." + owner + "." + a.Caller.String()
}

// ParseAddress reads a subject. Whatever is not of the grammar is refused with
// bad-request: nothing is guessed from a subject.
func ParseAddress(s events.Space, subject string) (Address, error) {
	refuse := func(why string) (Address, error) {
		return Address{}, fault.New(fault.BadRequest, "the subject is not that of a command: %s", why)
	}
	rest, ok := strings.CutPrefix(subject, Prefix(s))
	p := strings.Split(rest, ".")
	if !ok || len(p) != 7 || len(subject) > events.MaxSubject {
		return refuse("it has another number of tokens or another space")
	}
	a := Address{Target: p[0], Command: p[1], Mode: Mode(p[2])}
	if _, err := events.ParseInstanceID(a.Target); err != nil && a.Target != Any {
		return refuse("its target is neither any nor an instance id")
	}
	var err error
	switch a.Mode {
	case ModeOwner, ModeAny:
		if a.Owner, err = events.ParseOwner(p[3]); err != nil {
			return refuse("its target owner is not valid")
		}
	case ModeSelf, ModeNone:
		if p[3] != noOwner {
			return refuse("its mode names no owner")
		}
	default:
		return refuse("its mode is unknown")
	}
	a.Caller, err = ParseCaller(p[4], p[5], p[6])
	if err != nil {
		return Address{}, err
	}
	return a, nil
}

// ParseCaller reads the three tokens of a caller.
func ParseCaller(owner, actor, uid string) (c events.Caller, err error) {
	if c.Owner, err = events.ParseOwner(owner); err == nil {
		if c.Actor, err = events.ParseActor(actor); err == nil {
			c.UID, err = events.ParseUID(uid)
		}
	}
	return c, err
}
