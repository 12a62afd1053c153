package drill

import (
	"encoding/json"
	"testing"

	"berth/events"
)

// The fingerprint of a call without arguments is that of its JSON: journals
// that are on disk were written so.
func TestFingerprintIsThatOfTheJSON(t *testing.T) {
	for _, v := range append(Verbs, `un"known`) {
		for _, id := range []events.EnvironmentID{"01890a5d-ac96-774b-bcce-b302099a8057", `odd"<id>`} {
			for _, a := range []events.Arguments{{}, {MaxBytes: 1}} {
				want, err := json.Marshal(struct {
					V Verb
					E events.EnvironmentID
					A events.Arguments
				}{v, id, a})
				if err != nil {
					t.Fatal(err)
				}
				if got := (Call{Verb: v, Environment: id, Arguments: a}).identity(); string(got) != string(want) {
					t.Errorf("%s is the identity, and the JSON is %s", got, want)
				}
			}
		}
	}
}
