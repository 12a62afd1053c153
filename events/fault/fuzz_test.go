package fault_test

import (
	"encoding/json"
	"testing"

	"berth/events/fault"
)

// An error from the wire always has an outcome (E4), whatever else it says.
func FuzzUnmarshalError(f *testing.F) {
	f.Add([]byte(`{"code":"unavailable","message":"m","outcome":"not-executed","details":[{"kind":"k","facts":{"a":"b"}}]}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"outcome":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e fault.Error
		if json.Unmarshal(b, &e) != nil {
			return
		}
		if string(b) != "null" && e.Outcome == "" && json.Valid(b) && b[0] == '{' {
			t.Errorf("%q has no outcome", b)
		}
		_ = fault.ExitOf(&e)
		_ = e.Error()
	})
}
