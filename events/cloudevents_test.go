package events

import (
	"encoding/json"
	"regexp"
	"testing"
)

func TestCloudEvents(t *testing.T) {
	c := testCommit()
	body, _, err := Encode(c, Hash{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := ParseRecord(c.Boundary, 42, body)
	name := regexp.MustCompile(`^[a-z0-9]+$`)
	got := CloudEvents(r, "prod")
	if len(got) != len(c.Events) {
		t.Fatalf("%d objects for %d events", len(got), len(c.Events))
	}
	for i, b := range got {
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		for k := range m {
			if !name.MatchString(k) {
				t.Errorf("attribute %q is not lower case letters and digits", k)
			}
		}
		typ, _ := VersionedType(c.Events[i])
		for k, want := range map[string]any{
			"specversion": "1.0", "id": string(testID.At(i)), "type": "berth." + typ, "source": "/berth/prod", "subject": "seat.local.web",
			"time": "2023-11-14T22:13:20.123Z", "sequence": "42", "lifecycleuid": "abcdefghijklmnopqrstuvwxyz", "epoch": "7", "operation": "op-0123456789abcdef",
		} {
			if m[k] != want {
				t.Errorf("%s is %v, want %v", k, m[k], want)
			}
		}
	}
	r = ParseRecord(c.Boundary, 43, []byte("x"))
	if got := CloudEvents(r, "prod"); len(got) != 1 || !json.Valid(got[0]) || !regexp.MustCompile(CloudTypeBroken).Match(got[0]) {
		t.Fatalf("%s", got)
	}
}
