package events

import (
	"bytes"
	"time"
)

// usualEvents is how many events a commit has at most, as a rule.
const usualEvents = 2

// scanEnvelope reads a body as Encode writes it: these members, in this order,
// without white space or escapes. It is the fast way for what this program
// wrote itself; anything else, right or wrong, is left to the JSON library
// (ok false), so it only ever has to be sure of what it accepts.
func scanEnvelope(body []byte) (env envelope, ok bool) {
	s := scanner{b: body}
	s.lit(`{"v":`)
	env.V = int(s.uint())
	s.lit(`,"id":`)
	env.ID = EventID(s.str())
	s.lit(`,"time":`)
	env.Time = s.time()
	s.lit(`,"caller":{"owner":`)
	env.Caller.Owner = Owner(s.shared())
	s.lit(`,"actor":`)
	env.Caller.Actor = Actor(s.shared())
	s.lit(`,"uid":`)
	env.Caller.UID = UID(s.shared())
	s.lit(`},"writer":{"instance":`)
	env.Writer.Instance = InstanceID(s.shared())
	s.lit(`,"epoch":`)
	env.Writer.Epoch = s.uint()
	s.lit(`}`)
	if s.maybe(`,"command":`) {
		env.Command = CommandID(s.str())
	}
	if s.maybe(`,"fingerprint":`) {
		env.Fingerprint = s.str()
	}
	if s.maybe(`,"operation":`) {
		env.Operation = OperationID(s.shared())
	}
	if s.maybe(`,"trace":`) {
		env.Trace = s.str()
	}
	s.lit(`,"previous":`)
	env.Previous = s.uint()
	if s.maybe(`,"prior":"`) {
		s.hash(&env.Prior)
	}
	s.lit(`,"events":[`)
	env.Events = make([]stored, 0, usualEvents)
	for !s.bad {
		var e stored
		s.lit(`{"type":`)
		e.Type = s.shared()
		s.lit(`,"data":`)
		e.Data = s.object()
		s.lit(`}`)
		env.Events = append(env.Events, e)
		if !s.maybe(`,`) {
			break
		}
	}
	s.lit(`],"hash":"`)
	var stated Hash
	s.hash(&stated)
	s.lit(`}`)
	return env, !s.bad && len(s.b) == 0
}

// scanner consumes b from the front; after the first surprise it is bad and
// every method answers zero.
type scanner struct {
	b   []byte
	bad bool
}

func (s *scanner) lit(want string) {
	if s.bad || len(s.b) < len(want) || string(s.b[:len(want)]) != want {
		s.bad = true
		return
	}
	s.b = s.b[len(want):]
}

func (s *scanner) maybe(want string) bool {
	if s.bad || len(s.b) < len(want) || string(s.b[:len(want)]) != want {
		return false
	}
	s.b = s.b[len(want):]
	return true
}

// raw is the inside of a string of printable ASCII without escapes.
func (s *scanner) raw() []byte {
	if s.bad || len(s.b) == 0 || s.b[0] != '"' {
		s.bad = true
		return nil
	}
	n := bytes.IndexByte(s.b[1:], '"')
	if n < 0 {
		s.bad = true
		return nil
	}
	in := s.b[1 : 1+n]
	for _, c := range in {
		if unusual[c]&unread != 0 {
			s.bad = true
			return nil
		}
	}
	s.b = s.b[n+2:]
	return in
}

func (s *scanner) str() string { return string(s.raw()) }

// uint is a number without sign, fraction or leading zero, below 10^18.
func (s *scanner) uint() (v uint64) {
	n := 0
	for n < len(s.b) && n < 19 && s.b[n] >= '0' && s.b[n] <= '9' {
		v = v*10 + uint64(s.b[n]-'0')
		n++
	}
	if s.bad || n == 0 || n > 18 || n > 1 && s.b[0] == '0' {
		s.bad = true
		return 0
	}
	s.b = s.b[n:]
	return v
}

// time is a UTC time such as time.Time marshals to.
func (s *scanner) time() time.Time {
	var t time.Time
	in := s.raw()
	if s.bad || len(in) == 0 || in[len(in)-1] != 'Z' || t.UnmarshalText(in) != nil {
		s.bad = true
		return time.Time{}
	}
	return t
}

func (s *scanner) hash(h *Hash) {
	if s.bad || len(s.b) < hashText+1 || s.b[hashText] != '"' || h.UnmarshalText(s.b[:hashText]) != nil {
		s.bad = true
		return
	}
	s.b = s.b[hashText+1:]
}

// object is the bytes of one object, by counting braces outside of strings.
// Whether it is valid JSON is for its reader to say.
func (s *scanner) object() []byte {
	if s.bad || len(s.b) == 0 || s.b[0] != '{' {
		s.bad = true
		return nil
	}
	depth, quoted := 0, false
	for i := 0; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				out := s.b[:i+1]
				s.b = s.b[i+1:]
				return out
			}
		}
	}
	s.bad = true
	return nil
}
