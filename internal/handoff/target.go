package handoff

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"berth/events"
	"berth/events/fault"
)

//house:pure

// Target names one lifecycle in one space: what a hand-off is for.
type Target struct {
	Space events.Space
	Owner events.Owner
	Actor events.Actor
	UID   events.UID
}

// Check refuses, with bad-request, a target with a name that is not one.
func (t Target) Check() error {
	_, space := events.ParseSpace(string(t.Space))
	_, owner := events.ParseOwner(string(t.Owner))
	_, actor := events.ParseActor(string(t.Actor))
	_, uid := events.ParseUID(string(t.UID))
	for _, c := range []struct {
		field string
		err   error
	}{{"space", space}, {"owner", owner}, {"actor", actor}, {"lifecycleUid", uid}} {
		if c.err != nil {
			return bad(c.field, "it is not a valid one")
		}
	}
	return nil
}

// KeyPrefix begins every launch key.
const KeyPrefix = "berth-"

// keyDigits is how many hexadecimal digits of the digest a key has.
const keyDigits = 32

// Digest is the first 32 hexadecimal digits of the SHA-256 of the compact JSON
// array [space,owner,actor,uid].
func (t Target) Digest() string {
	raw, _ := json.Marshal([]string{string(t.Space), string(t.Owner), string(t.Actor), string(t.UID)}) // strings can always be written
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:keyDigits]
}

// Key is the launch key: the one name under which a provider makes, finds and
// closes the resource of this lifecycle (H14, H15).
func (t Target) Key() string { return KeyPrefix + t.Digest() }

// Expected is what a child was told about itself, by its command line and its
// environment, before it read anything.
type Expected struct {
	Target
	Instance events.InstanceID // empty: any
}

// Match compares a document, and the manager instance that the environment
// names, with what was expected. A difference is refused with
// permission-denied; it names the field and never a value (H9).
func (e Expected) Match(d Target, instance events.InstanceID) error {
	for _, c := range []struct {
		field string
		same  bool
	}{
		{"space", d.Space == e.Space}, {"owner", d.Owner == e.Owner}, {"actor", d.Actor == e.Actor},
		{"lifecycleUid", d.UID == e.UID}, {"managerInstanceId", e.Instance == "" || instance == e.Instance},
	} {
		if !c.same {
			return fault.New(fault.PermissionDenied, "the hand-off is not for this seat: field %s is not what was expected", c.field).
				WithOutcome(fault.NotExecuted).WithDetail("berth.handoff-mismatch", "field", c.field)
		}
	}
	return nil
}
