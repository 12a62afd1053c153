package events

import (
	"regexp"
	"strconv"
	"time"

	"berth/events/fault"
)

// Connector is the harness that runs in a seat, frozen with the plan: when it
// counts as ready and what it is given to begin with. All of it is public
// text (decision 24); the command line is the plan's own.
type Connector struct {
	Name string `json:"name"` // row of the table in internal/connector
	// Ready is the sign by which the seat itself says that it is ready; null:
	// it is ready when its process has started.
	Ready *ReadySign `json:"ready,omitempty"`
	// Prompt is what the harness is asked first, and Persona what it is told to
	// be: content only, and never policy. Empty: none.
	Prompt  string `json:"prompt,omitempty"`
	Persona string `json:"persona,omitempty"`
}

// SignKind is a way in which a seat says that it is ready.
type SignKind string

// The kinds of signs.
const (
	SignFD      SignKind = "fd"      // a line on the descriptor ReadyFD
	SignPattern SignKind = "pattern" // a match in what it writes to its terminal
	SignPort    SignKind = "port"    // a process of it listens on a TCP port
)

// ReadyFD is the descriptor on which a seat with a sign of kind fd says so: it
// writes a line, as supervisors know it from s6.
const ReadyFD = 3

// MaxPattern is the longest pattern of a sign, in bytes.
const MaxPattern = 256

// ReadySign is one sign. Only the field of its kind is set.
type ReadySign struct {
	Kind    SignKind `json:"kind"`
	Pattern string   `json:"pattern,omitempty"` // RE2, ^ and $ at lines
	Port    int      `json:"port,omitempty"`    // 1 to 65535
}

// String is the sign in words.
func (r ReadySign) String() string {
	switch r.Kind {
	case SignFD:
		return "a line on descriptor " + strconv.Itoa(ReadyFD)
	case SignPattern:
		return "output that matches " + r.Pattern
	case SignPort:
		return "a process of it that listens on port " + strconv.Itoa(r.Port)
	}
	return string(r.Kind)
}

// Check refuses, with bad-request, a sign that nothing could give.
func (r ReadySign) Check() error {
	bad := func(why string) error { return fault.New(fault.BadRequest, "readiness: %s", why) }
	switch {
	case r.Kind == SignFD && r.Pattern == "" && r.Port == 0:
		return nil
	case r.Kind == SignPort && r.Pattern == "":
		if r.Port < 1 || r.Port > 65535 {
			return bad("a port is a number from 1 to 65535")
		}
		return nil
	case r.Kind == SignPattern && r.Port == 0:
		_, err := r.Regexp()
		return err
	}
	return bad("it is neither a descriptor nor a pattern nor a port")
}

// Regexp is the compiled pattern of a sign of that kind; bad-request if it is
// none, too long, or matches nothing at all.
func (r ReadySign) Regexp() (*regexp.Regexp, error) {
	bad := func(why string) error { return fault.New(fault.BadRequest, "readiness: the pattern %s", why) }
	if r.Pattern == "" || len(r.Pattern) > MaxPattern {
		return nil, bad("has to have 1 to 256 bytes")
	}
	re, err := regexp.Compile("(?m)" + r.Pattern)
	switch {
	case err != nil:
		return nil, bad("is no regular expression (RE2)")
	case re.MatchString(""):
		return nil, bad("matches where there is nothing, so it would say nothing")
	}
	return re, nil
}

// Readiness says since when a seat is ready, as the seat itself showed it, and
// by which sign.
type Readiness struct {
	Since    time.Time `json:"since"`
	Evidence string    `json:"evidence"` // public text, in words of ours
}

// Sign is what the seat of a plan has to show before it counts as ready; nil:
// that its process runs is enough.
func (p Plan) Sign() *ReadySign {
	if p.Connector == nil {
		return nil
	}
	return p.Connector.Ready
}
