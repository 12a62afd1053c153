package drill

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// Call is one request as the provider receives it. It is journaled whole, so
// it never holds material.
type Call struct {
	Verb        Verb                 `json:"verb"`
	Operation   events.OperationID   `json:"operationId,omitempty"`
	Environment events.EnvironmentID `json:"environment,omitempty"`
	Alias       events.Alias         `json:"alias,omitempty"`
	Target      events.Verb          `json:"target,omitempty"` // reconcile, exclude: the operation's own verb
	Arguments   events.Arguments     `json:"arguments,omitzero"`
	Network     *string              `json:"network,omitempty"`
	Ref         string               `json:"ref,omitempty"`
	Writer      events.Writer        `json:"writer,omitzero"`
	Expires     *time.Time           `json:"expires,omitempty"`
	Sign        *events.ReadySign    `json:"sign,omitempty"`   // start: what the seat shows when it is ready
	Plan        *events.Plan         `json:"plan,omitempty"`   // preflight
	Image       *events.Image        `json:"image,omitempty"`  // describe-image
	File        string               `json:"file,omitempty"`   // read-file
	Offset      int64                `json:"offset,omitempty"` // read-file, logs

	unready *time.Duration // by the rule that fired on a start; zero: never
}

// CallOf is the call that a mutation makes.
func CallOf(op providers.Operation) Call {
	c := Call{Verb: Verb(op.Verb), Operation: op.ID, Environment: op.Environment, Alias: op.Alias, Arguments: op.Arguments,
		Network: op.Plan.Network, Ref: op.Ref, Writer: op.Writer, Expires: op.Expires}
	if op.Verb == events.VerbStart {
		c.Sign = op.Plan.Sign()
	}
	return c
}

// ReconcileCall and ExcludeCall ask about op.
func ReconcileCall(op providers.Operation) Call { return askAbout(Reconcile, op) }

// ExcludeCall asks that op can never land.
func ExcludeCall(op providers.Operation) Call { return askAbout(Exclude, op) }

func askAbout(v Verb, op providers.Operation) Call {
	c := CallOf(op)
	c.Verb, c.Target = v, op.Verb
	return c
}

// fingerprint is equal for equal operations: verb, environment and arguments.
func (c Call) fingerprint() string {
	sum := sha256.Sum256(c.identity())
	return hex.EncodeToString(sum[:8])
}

// identity is what must be equal, as JSON: most calls have no arguments, and a
// known verb and an id of ours need no library.
func (c Call) identity() []byte {
	if _, err := events.ParseEnvironmentID(string(c.Environment)); err == nil && c.Arguments == (events.Arguments{}) && slices.Contains(Verbs, c.Verb) {
		return []byte(`{"V":"` + string(c.Verb) + `","E":"` + string(c.Environment) + `","A":{}}`)
	}
	b, err := json.Marshal(struct {
		V Verb
		E events.EnvironmentID
		A events.Arguments
	}{c.Verb, c.Environment, c.Arguments})
	if err != nil {
		panic("drill: arguments that do not marshal: " + err.Error())
	}
	return b
}

// Delivery is what becomes of the answer.
type Delivery string

// The deliveries.
const (
	Answered Delivery = "answered" // the caller hears it After the call
	Dropped  Delivery = "dropped"  // the connection is lost at once
	Late     Delivery = "late"     // a mutation's answer comes After the call: ask Settle then
	Never    Delivery = "never"    // the caller waits in vain
)

// Answer is what the caller hears. Which fields are set depends on the verb;
// for a delivery that is not Answered they say what a caller that gave up has
// to believe: unknown, open, an error.
type Answer struct {
	Delivery Delivery
	After    time.Duration // of Answered and Late
	Fault    Fault         // that hit this call; empty for a faithful one

	Outcome   providers.Outcome       // mutations
	Finding   providers.Finding       // reconcile, exclude
	Facts     events.Facts            // inspect
	Listed    []providers.Listed      // list
	Image     events.ImageDescription // describe-image
	Preflight providers.Preflight     // preflight
	Stream    []byte                  // logs, read-file: from the offset on
	Pause     time.Duration           // before each chunk of Stream
	Err       *fault.Error            // reads: nil if answered
	HostFile  *HostFile               // export to a host path: what to write where
}

// HostFile is the file that an export puts on the provider's host (R34).
type HostFile struct {
	Path  string
	Bytes []byte
}
