package berth

import (
	"encoding/json"
	"testing"
)

// FuzzIdentity: an identity file that is accepted is whole, and says the same
// when it is written again.
func FuzzIdentity(f *testing.F) {
	f.Add([]byte(`{"instanceId":"abcdefghijklmnopqrstuvwxyz","space":"main","host":"h","path":"/d","caller":{"owner":"local","actor":"operator","uid":"abcdefghijklmnopqrstuvwxyz"}}`))
	f.Add([]byte(`{"instanceId":"abc"}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var one, two Identity
		if one.parse(raw) != nil {
			return
		}
		if one.Instance == "" || one.Caller.Owner == "" || one.Caller.UID == "" {
			t.Fatalf("%q was taken for a whole identity", raw)
		}
		b, err := json.Marshal(one)
		if err != nil || two.parse(b) != nil || one != two {
			t.Fatalf("%q was read as %+v and then as %+v, %v", raw, one, two, err)
		}
	})
}
