package drill

import (
	"slices"

	"berth/events"
	"berth/events/fault"
)

// Verb is any call that a provider receives: the mutating verbs of the
// contract and the reads beside them.
type Verb string

// The calls that are not mutations of an environment, and the wildcard of a
// rule.
const (
	Inspect       Verb = "inspect"
	Reconcile     Verb = "reconcile"
	Exclude       Verb = "exclude"
	List          Verb = "list"
	Logs          Verb = "logs"
	ReadFile      Verb = "read-file"
	Preflight     Verb = "preflight"
	DescribeImage Verb = "describe-image"

	AnyVerb Verb = "*"
)

// Verbs lists every verb that a rule may name: mutations, then the others.
var Verbs = func() []Verb {
	var vs []Verb
	for _, v := range events.Verbs {
		vs = append(vs, Verb(v))
	}
	return append(vs, Inspect, Reconcile, Exclude, List, Logs, ReadFile, Preflight, DescribeImage)
}()

// observes says that v is no mutation. What nobody knows is treated as a
// mutation, and refused as one (R89).
func (v Verb) observes() bool { return slices.Contains(Verbs[len(events.Verbs):], v) }

// Fault is one way to misbehave.
type Fault string

// The faults. "Accepted" means that the provider has the operation and will
// carry it out, whatever the caller hears.
const (
	// AcceptThenDrop carries the call out (delayMs later) and loses the
	// connection at once.
	AcceptThenDrop Fault = "accept-then-drop"
	// AcceptThenLateAnswer carries the call out delayMs later and answers
	// then, also when the caller's deadline is over. Until then it can be
	// excluded.
	AcceptThenLateAnswer Fault = "accept-then-late-answer"
	// ErrorAfterAccept carries the call out (delayMs later) and answers with
	// an error of which nobody can tell what it left behind.
	ErrorAfterAccept Fault = "error-after-accept"
	// NeverAnswer carries the call out (delayMs later) and stays silent.
	NeverAnswer Fault = "never-answer"
	// Refuse executes nothing and says so.
	Refuse Fault = "refuse"
	// Throttle executes nothing and asks to come back after delayMs.
	Throttle Fault = "throttle"
	// Stuck accepts and does not finish (or only delayMs later); the
	// environment stays in its intermediate state.
	Stuck Fault = "stuck"
	// Unready has a seat that is to show a sign show it only delayMs after its
	// start, or never (delayMs absent). The start itself is answered.
	Unready Fault = "unready"
	// Vanish loses the environment just before the call is handled, or just
	// after a reserve.
	Vanish Fault = "vanish"
	// SwapIncarnation replaces the machine behind the reference, at the same
	// moment as Vanish.
	SwapIncarnation Fault = "swap-incarnation"
	// ListEmpty lists nothing.
	ListEmpty Fault = "list-empty"
	// ListStale lists destroyed environments as running and leaves the newest
	// one out.
	ListStale Fault = "list-stale"
	// ListDuplicate lists every environment twice.
	ListDuplicate Fault = "list-duplicate"
	// SlowStream waits delayMs before each chunk.
	SlowStream Fault = "slow-stream"
	// TruncateStream ends the stream half way, without an error.
	TruncateStream Fault = "truncate-stream"
	// GrowStream sends more bytes than there are.
	GrowStream Fault = "grow-stream"
	// CorruptStream changes one byte in the middle.
	CorruptStream Fault = "corrupt-stream"
	// ClockOffset sets the provider's clock delayMs before or after the real
	// one, from this call on.
	ClockOffset Fault = "clock-offset"
)

// Faults lists every fault.
var Faults = []Fault{AcceptThenDrop, AcceptThenLateAnswer, ErrorAfterAccept, NeverAnswer, Refuse, Throttle, Stuck, Unready, Vanish,
	SwapIncarnation, ListEmpty, ListStale, ListDuplicate, SlowStream, TruncateStream, GrowStream, CorruptStream, ClockOffset}

// kind is what a rule with a fault may say.
type kind struct {
	verbs      []Verb     // nil: all
	code       fault.Code // the default code; empty: the fault has none
	needsDelay bool
	noDelay    bool
}

func (k kind) fits(v Verb) bool { return k.verbs == nil || slices.Contains(k.verbs, v) }
func (k kind) takesDelay() bool { return !k.noDelay }

var (
	mutations = Verbs[:len(events.Verbs)]
	ofOne     = append(slices.Clone(mutations), Inspect, Reconcile, Exclude, Logs, ReadFile)
	streams   = []Verb{ReadFile, Logs, Verb(events.VerbExport)}
)

var faults = map[Fault]kind{
	AcceptThenDrop:       {},
	AcceptThenLateAnswer: {needsDelay: true},
	ErrorAfterAccept:     {code: fault.Unavailable},
	NeverAnswer:          {},
	Refuse:               {code: fault.FailedPrecondition, noDelay: true},
	Throttle:             {code: fault.ResourceExhausted},
	Stuck:                {verbs: mutations},
	Unready:              {verbs: []Verb{Verb(events.VerbStart)}},
	Vanish:               {verbs: ofOne, noDelay: true},
	SwapIncarnation:      {verbs: ofOne, noDelay: true},
	ListEmpty:            {verbs: []Verb{List}, noDelay: true},
	ListStale:            {verbs: []Verb{List}, noDelay: true},
	ListDuplicate:        {verbs: []Verb{List}, noDelay: true},
	SlowStream:           {verbs: []Verb{ReadFile, Logs}, needsDelay: true},
	TruncateStream:       {verbs: streams, noDelay: true},
	GrowStream:           {verbs: streams, noDelay: true},
	CorruptStream:        {verbs: streams, noDelay: true},
	ClockOffset:          {},
}
