package fly

import (
	"testing"

	"berth/events/fault"
)

// The value of --fly from anywhere.
func FuzzParse(f *testing.F) {
	f.Add("app=seats,token-file=/t,region=fra,slots=4,cpus=2,memory-mib=512")
	f.Add("app=../x,token-file=")
	f.Add("token=secret")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := Parse(s)
		if err != nil {
			if fault.CodeOf(err) != fault.BadRequest {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if !labelRE.MatchString(c.App) || c.TokenFile == "" || c.Slots < 0 || c.Slots > MaxSlots {
			t.Errorf("%q is accepted as %+v", s, c)
		}
	})
}
