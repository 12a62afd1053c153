package providers_test

import (
	"strings"
	"testing"

	"berth/events/fault"
	"berth/providers"
)

// R55: material that a driver repeats in a failure is in no part of it that
// goes on; what is shorter than a secret is left as it is.
func TestMaterialIsNotRepeatedInAFailure(t *testing.T) {
	const secret = "sesame-opens-8"
	m := providers.Material{"credential": []byte(secret), "short": []byte("the")}
	told := fault.New(fault.Unavailable, "the guest refused %s", secret).WithHint("try %s again", secret).WithDetail("x.y", "said", secret, secret, "key")
	got := providers.ScrubFault(told, m)
	texts := []string{got.Message, got.Hint, got.ID}
	for _, d := range got.Details {
		for k, v := range d.Facts {
			texts = append(texts, k, v)
		}
	}
	if all := strings.Join(texts, "\n"); strings.Contains(all, secret) || !strings.Contains(all, "the guest refused [redacted]") {
		t.Errorf("it goes on as %s", all)
	}
	if !strings.Contains(told.Message, secret) {
		t.Error("what the driver answered was changed in place")
	}
}
