package hosted_test

import (
	"strings"
	"testing"

	"berth/events/fault"
	"berth/providers/hosted"
)

// A specification from the command line: https and nothing in the address that
// must not be there (R44), or a bad request that does not repeat a password.
func FuzzParseSpec(f *testing.F) {
	f.Add("one=https://host:8443,ca=ca.pem,cert=c.pem,key=k.pem")
	f.Add("one=https://user:pw@host,bearer=b")
	f.Add("one=http://host,bearer=b")
	f.Add("=,=,=")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := hosted.ParseSpec(s)
		if err != nil {
			if fault.CodeOf(err) != fault.BadRequest {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if !strings.HasPrefix(strings.ToLower(c.URL), "https://") || strings.ContainsAny(c.URL, "@?#") || c.Name == "" {
			t.Errorf("%q is accepted as %q at %q", s, c.Name, c.URL)
		}
	})
}
