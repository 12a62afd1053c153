package events

import (
	"strings"

	"berth/events/fault"
)

// Boundary names one consistency boundary: the part of a subject after
// `berth.<space>.event.`. One boundary is one compare-and-append; everything
// that must agree with itself lives on one.
type Boundary string

// Kind is a boundary's first token.
type Kind string

// The kinds of boundary, and which aggregate folds each.
const (
	KindSeat        Kind = "seat"        // seat.<owner>.<alias>: slot, head, environment
	KindGoal        Kind = "goal"        // goal.<owner>.<actor>.<uid>.<goalId>: goal
	KindUID         Kind = "uid"         // uid.<uid>: create-only reservation
	KindNumber      Kind = "number"      // number.<owner>.<base>: numbers of names that nobody chose
	KindPersona     Kind = "persona"     // persona.<owner>: catalog of personas
	KindInstance    Kind = "instance"    // instance.<id>: instance
	KindEnvironment Kind = "environment" // environment.<id>: one that was written off
	KindSession     Kind = "session"     // session.<id>: create-only proof that an offer was used
	KindTranscript  Kind = "transcript"  // transcript.<claim>: one that may be resumed, once
	KindSpace       Kind = "space"       // space.<name>: facts about the whole log
	KindProvider    Kind = "provider"    // provider.<id>: one environment's operations, at a served provider
)

// SeatBoundary is where one name's whole life is.
func SeatBoundary(o Owner, a Alias) Boundary {
	return Boundary("seat." + string(o) + "." + string(a))
}

// GoalBoundary is where a caller's goal is; another caller's same id is another goal.
func GoalBoundary(c Caller, g GoalID) Boundary {
	return Boundary("goal." + c.String() + "." + string(g))
}

// UIDBoundary is the create-only reservation of a lifecycle uid.
func UIDBoundary(u UID) Boundary { return Boundary("uid." + string(u)) }

// NumberBoundary is where the numbers of a base are issued, each once for ever.
func NumberBoundary(o Owner, base Alias) Boundary {
	return Boundary("number." + string(o) + "." + string(base))
}

// PersonaBoundary is an owner's catalog of personas.
func PersonaBoundary(o Owner) Boundary { return Boundary("persona." + string(o)) }

// InstanceBoundary is a manager's registration.
func InstanceBoundary(i InstanceID) Boundary { return Boundary("instance." + string(i)) }

// EnvironmentBoundary is where a written-off environment goes on (decision 13).
func EnvironmentBoundary(e EnvironmentID) Boundary { return Boundary("environment." + string(e)) }

// SessionBoundary is where a terminal session's offer is used, once.
func SessionBoundary(id string) Boundary { return Boundary("session." + id) }

// TranscriptBoundary is where the claim on a transcript is made and used up.
func TranscriptBoundary(claim string) Boundary { return Boundary("transcript." + claim) }

// ProviderBoundary is where a served provider journals the operations of one
// environment. It is in the provider's log, never in a manager's.
func ProviderBoundary(e EnvironmentID) Boundary { return Boundary("provider." + string(e)) }

// SpaceBoundary holds facts about the log itself, such as an accepted loss of history.
func SpaceBoundary(s Space) Boundary { return Boundary("space." + string(s)) }

// Kind is the boundary's first token.
func (b Boundary) Kind() Kind {
	k, _, _ := strings.Cut(string(b), ".")
	return Kind(k)
}

// Seat is the owner and the name of a seat boundary.
func (b Boundary) Seat() (Owner, Alias, bool) {
	k, rest, _ := strings.Cut(string(b), ".")
	o, a, two := strings.Cut(rest, ".")
	if Kind(k) != KindSeat || !two || strings.Contains(a, ".") {
		return "", "", false
	}
	return Owner(o), Alias(a), true
}

// Goal is the caller and the id of a goal boundary.
func (b Boundary) Goal() (Caller, GoalID, bool) {
	p := strings.Split(string(b), ".")
	if len(p) != 5 || Kind(p[0]) != KindGoal {
		return Caller{}, "", false
	}
	return Caller{Owner(p[1]), Actor(p[2]), UID(p[3])}, GoalID(p[4]), true
}

// Served is the environment of a provider boundary.
func (b Boundary) Served() (EnvironmentID, bool) {
	k, id, _ := strings.Cut(string(b), ".")
	e, err := ParseEnvironmentID(id)
	return e, Kind(k) == KindProvider && err == nil
}

// Subject is the NATS subject of the boundary in a space.
func (b Boundary) Subject(s Space) string {
	return SubjectPrefix(s) + string(b)
}

// SubjectPrefix is what every event subject of a space starts with.
func SubjectPrefix(s Space) string { return "berth." + string(s) + ".event." }

// StreamName is the stream of a space.
func StreamName(s Space) string { return "BERTH_" + string(s) }

// ParseBoundary takes the tail of an event subject. It refuses what is not a
// boundary of this grammar.
func ParseBoundary(s string) (Boundary, error) {
	kind, rest, _ := strings.Cut(s, ".")
	if n := Kind(kind).tokens(); n == 0 || n != strings.Count(s, ".") || len(s) > MaxSubject {
		return "", fault.New(fault.BadRequest, "%q is not a boundary", clip(s))
	}
	for t := range strings.SplitSeq(rest, ".") {
		if !isToken(t) {
			return "", fault.New(fault.BadRequest, "%q is not a boundary: token %q", clip(s), clip(t))
		}
	}
	return Boundary(s), nil
}

// tokens is how many tokens come after the kind; zero is no kind of boundary.
func (k Kind) tokens() int {
	switch k {
	case KindSeat, KindNumber:
		return 2
	case KindGoal:
		return 4
	case KindPersona, KindUID, KindInstance, KindEnvironment, KindSession, KindTranscript, KindSpace, KindProvider:
		return 1
	}
	return 0
}

// isToken is tokenRE without the machinery: each commit is checked.
func isToken(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return 0 < len(s) && len(s) <= MaxName
}
