package wire_test

import (
	"encoding/json"
	"testing"

	"berth/events/fault"
	"berth/providers/hosted/wire"
)

// The body of a request: refused as a bad request, or the same for the driver
// and with the same digest after it was written again.
func FuzzOperation(f *testing.F) {
	f.Add([]byte(`{"id":"operation-00000001","environment":"0198c5a0-0000-7000-8000-000000000001","verb":"reserve","arguments":{},"plan":{},"material":{"seed":"c2VlZA=="}}`))
	f.Add([]byte(`{"id":"../../x","environment":"x","ref":"a\u0000b"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var o wire.Operation
		if json.Unmarshal(b, &o) != nil {
			return
		}
		if err := o.Check(); err != nil {
			if fault.CodeOf(err) != fault.BadRequest {
				t.Errorf("refused with %v", err)
			}
			return
		}
		raw, err := json.Marshal(wire.Of(o.Operation()))
		if err != nil {
			return // such as a time beyond the year 9999
		}
		var again wire.Operation
		if err := json.Unmarshal(raw, &again); err != nil || again.Digest() != o.Digest() {
			t.Errorf("%s: %v", raw, err)
		}
	})
}
