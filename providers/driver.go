// Package providers is the driver contract: what Berth asks of anything that
// can run environments, with typed outcomes, a closed capability set found by
// probing, and a registry. The rules R1-R92 are kept here and shown by the
// conformance suite in package providertest.
//
// It knows package events for ids and value types and nothing else of Berth.
package providers

import (
	"context"
	"io"
	"time"

	"berth/events"
	"berth/events/fault"
)

// Operation is one logical provider mutation as it was journaled. Its id is
// the idempotency key: the same id with the same verb and arguments is the
// same operation, for as long as the environment's tombstone is kept.
type Operation struct {
	ID          events.OperationID
	Environment events.EnvironmentID
	Alias       events.Alias // a label for people, never an authority
	Verb        events.Verb
	Arguments   events.Arguments
	Plan        events.Plan
	Ref         string        // the provider's reference, once bound
	Writer      events.Writer // (instance, epoch): a driver that can refuses lower epochs
	Deadline    time.Time     // of the call; the context ends then too (R85)
	Expires     *time.Time    // absolute end of the environment, enforced by whatever holds it
	Material    Material      // provision and start: secret bytes by name, never in a log (R54, R55)
}

// Material is what is staged for a guest: purpose to bytes. It formats as
// [redacted] so that it cannot be printed by accident.
type Material map[string][]byte

// String hides the bytes.
func (Material) String() string { return "[redacted]" }

// GoString hides the bytes.
func (Material) GoString() string { return "[redacted]" }

// MarshalJSON hides the bytes.
func (Material) MarshalJSON() ([]byte, error) { return []byte(`"[redacted]"`), nil }

// Kind is what became of a call.
type Kind string

// The kinds of outcome. Unknown is never turned into another by guessing.
const (
	Done    Kind = "done"    // with Facts
	Refused Kind = "refused" // nothing was executed, and nothing will be under this id; with Fault
	Unknown Kind = "unknown" // the answer was lost; with Fault
)

// Outcome is the typed answer of a mutation.
type Outcome struct {
	Kind  Kind
	Facts events.Facts
	Fault *fault.Error
}

// DoneWith, RefusedWith and UnknownWith make outcomes.
func DoneWith(f events.Facts) Outcome { return Outcome{Kind: Done, Facts: f} }

// RefusedWith says that nothing was executed.
func RefusedWith(e *fault.Error) Outcome {
	return Outcome{Kind: Refused, Fault: e.WithOutcome(fault.NotExecuted)}
}

// UnknownWith says that the answer was lost.
func UnknownWith(e *fault.Error) Outcome {
	return Outcome{Kind: Unknown, Fault: e.WithOutcome(fault.Unknown)}
}

// Verdict is what reconciliation of one operation id found.
type Verdict string

// The verdicts. Landed and Excluded are proofs; a negative list is neither.
const (
	Landed   Verdict = "landed"
	Excluded Verdict = "excluded"
	Open     Verdict = "unknown"
)

// Finding is a verdict with its evidence (public text).
type Finding struct {
	Verdict  Verdict
	Facts    events.Facts // with Landed
	Evidence string
	Fault    *fault.Error // with Open: why it is still unknown
}

// Preflight is the answer of one probe of one plan (R1-R12).
type Preflight struct {
	Checks       []events.Check
	Capabilities events.Capabilities
	Network      string // resolved (R23)
	ProbedAt     time.Time
}

// Failed returns the first failed check (R8).
func (p Preflight) Failed() (events.Check, bool) {
	for _, c := range p.Checks {
		if !c.OK {
			return c, true
		}
	}
	return events.Check{}, false
}

// Driver is the contract. Every method returns by ctx's end. Implementations
// are safe for concurrent use by many environments; the caller never runs two
// mutations of one environment at a time.
type Driver interface {
	// Name is the registered name, such as process or drill.
	Name() string

	// HostFacts probes the host behind the driver. A failed probe is an error,
	// never zeros (R82).
	HostFacts(ctx context.Context) (events.HostFacts, error)

	// DescribeImage is read-only and returns the reference unchanged (R16, R17).
	DescribeImage(ctx context.Context, image events.Image) (events.ImageDescription, error)

	// Preflight probes what this plan would get here. It executes nothing.
	Preflight(ctx context.Context, plan events.Plan) (Preflight, error)

	// Do runs one mutation. Reserve binds Ref; it is valid only from this
	// answer or from Reconcile of the same id (R92). An id seen before with
	// other arguments is refused with conflict.
	Do(ctx context.Context, op Operation) Outcome

	// Reconcile observes what became of op, by its id. It repairs nothing.
	Reconcile(ctx context.Context, op Operation) Finding

	// Exclude asks that op's id can never land, and answers Excluded only when
	// that is true; Landed if it already has; Open with unimplemented if the
	// driver has no fence. Idempotent, and part of the same operation.
	Exclude(ctx context.Context, op Operation) Finding

	// Inspect observes the environment at ref (R64). Not finding it is an
	// error unless the driver can vouch for its absence.
	Inspect(ctx context.Context, id events.EnvironmentID, ref string) (events.Facts, error)

	// Logs writes the seat's output kept so far, from byte offset; it returns
	// the next offset. follow keeps writing until ctx ends or the seat does.
	Logs(ctx context.Context, id events.EnvironmentID, ref string, from int64, follow bool, w io.Writer) (next int64, err error)

	// ReadFile streams an exported provider-file from offset (R36). The length
	// and digest are those of the export's answer; the caller verifies (R37).
	ReadFile(ctx context.Context, id events.EnvironmentID, ref, file string, offset int64) (io.ReadCloser, error)

	// List is evidence for a person, never proof (R92).
	List(ctx context.Context) ([]Listed, error)

	// Close releases what the driver holds; environments go on.
	Close() error
}

// Listed is one environment that a provider lists.
type Listed struct {
	Environment events.EnvironmentID
	Ref         string
	State       events.ProviderState
}

// Watcher is implemented by drivers that can tell of spontaneous changes (an
// exit, an expiry). Others are polled by Inspect.
type Watcher interface {
	// Watch calls fn whenever an environment of this driver changed by itself,
	// until ctx ends. It may call spuriously and must not block on fn.
	Watch(ctx context.Context, fn func(events.EnvironmentID)) error
}

// Adopter is implemented by drivers whose environments are bound to this host
// and must be taken up again after a restart, by proved identity.
type Adopter interface {
	// Adopt proves that the environment of the record is still the same and
	// takes it up; facts say what it found.
	Adopt(ctx context.Context, id events.EnvironmentID, ref string, custody *events.Custody) (events.Facts, error)
}
