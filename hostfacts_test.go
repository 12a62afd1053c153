package berth

import (
	"strconv"
	"strings"
	"testing"

	"berth/events/fault"
)

// R71: labels are few, short and public text.
func TestLabelsAreChecked(t *testing.T) {
	full := map[string]string{}
	for i := range MaxLabels {
		full["l"+strconv.Itoa(i)] = strings.Repeat("v", MaxLabel)
	}
	if err := checkLabels(full); err != nil {
		t.Error(err)
	}
	over := map[string]string{"one": "more"}
	for k, v := range full {
		over[k] = v
	}
	for name, bad := range map[string]map[string]string{
		"too many": over, "long": {"a": strings.Repeat("v", MaxLabel+1)}, "empty": {"a": ""}, "a secret": {"token": "abc"}, "control": {"a": "b\n"},
	} {
		if err := checkLabels(bad); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}
