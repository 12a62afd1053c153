package commands

import (
	"strings"
	"testing"

	"berth/events/fault"
)

// TestAPersonasNameIsRefusedByItsField: the field is named once, and it is
// the one that the caller filled in.
func TestAPersonasNameIsRefusedByItsField(t *testing.T) {
	for _, field := range []string{"name", "persona"} {
		for _, name := range []string{"../x", "", "SUAHNY7WGVOXVPT46ELV26LBNZP4HCF6ZOLQSA3X5VWPR5PFFHU4I5TJUM"} {
			err := checkPersona(field, name)
			if err == nil {
				t.Fatalf("%q is accepted", name)
			}
			if m := fault.From(err).Message; !strings.HasPrefix(m, field+": ") || strings.Contains(m, ": name: ") || strings.Contains(m, "name: name: ") {
				t.Errorf("%q as %s: %s", name, field, m)
			}
		}
	}
}
