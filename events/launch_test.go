package events

import (
	"strings"
	"testing"

	"berth/events/fault"
)

const authority = "https://authority.example"

// R43, R44, R51: two kinds, a URL that is https and nothing but a place, a path
// that a guest can connect to; and no refusal repeats what it was given.
func TestBearerSources(t *testing.T) {
	for text, want := range map[string]BearerSource{
		"socket:/run/authority.sock":          {Kind: BearerSocket, Path: "/run/authority.sock"},
		"https://authority.example:8443/v1/b": {Kind: BearerHTTPS, URL: "https://authority.example:8443/v1/b"},
		"https://[::1]:1":                     {Kind: BearerHTTPS, URL: "https://[::1]:1"},
		authority + "/" + strings.Repeat("p", MaxBearerURL-len(authority)-1): {
			Kind: BearerHTTPS, URL: authority + "/" + strings.Repeat("p", MaxBearerURL-len(authority)-1)},
		"socket:/" + strings.Repeat("s", MaxBearerPath-1): {Kind: BearerSocket, Path: "/" + strings.Repeat("s", MaxBearerPath-1)},
	} {
		if got, err := ParseBearerSource(text); err != nil || got != want {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
	for name, text := range map[string]string{
		"http": "http://hunter2.example", "userinfo": "https://u:hunter2@h", "a user": "https://hunter2@h", "a query": "https://h/?hunter2", "an empty query": "https://h/hunter2?",
		"a fragment": "https://h/#hunter2", "an empty fragment": "https://h/hunter2#", "no host": "https:///hunter2", "a port alone": "https://:443/hunter2", "opaque": "https:hunter2",
		"too long": authority + "/" + strings.Repeat("p", MaxBearerURL-len(authority)), "another kind": "tcp:hunter2", "nothing": "",
		"no path": "socket:", "the root": "socket:/", "relative": "socket:run/hunter2", "unclean": "socket:/run/../hunter2",
		"a long path": "socket:/" + strings.Repeat("s", MaxBearerPath), "a control character": "socket:/run/hunter2\n", "no text": "https://h/\x00hunter2",
	} {
		_, err := ParseBearerSource(text)
		if fault.CodeOf(err) != fault.BadRequest || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, b := range map[string]BearerSource{
		"a third kind (R51)": {Kind: "tcp", URL: authority}, "no kind": {URL: authority}, "both, socket": {Kind: BearerSocket, Path: "/run/s", URL: authority},
		"both, https": {Kind: BearerHTTPS, Path: "/run/s", URL: authority}, "a socket's URL": {Kind: BearerSocket, URL: authority}, "a URL's path": {Kind: BearerHTTPS, Path: "/run/s"},
	} {
		if fault.CodeOf(b.Check()) != fault.BadRequest {
			t.Errorf("%s is taken", name)
		}
	}
}

func aLaunch() LaunchRequest {
	return LaunchRequest{
		Version: LaunchVersion, Environment: "0198c5a0-0000-7000-8000-000000000001", UID: "abcdefghijklmnopqrstuvwxyz", IntentSHA256: strings.Repeat("a", 64), Generation: 1,
		Credential:     CredentialDescriptor{ID: "c1", Holder: "U1", Purpose: PurposeAgentCredential, Lifetime: LifetimeLaunch},
		MaterialSHA256: strings.Repeat("b", 64), Authentication: LaunchAuthentication{BearerSource: &BearerSource{Kind: BearerHTTPS, URL: authority}},
	}
}

// R53, R58: the descriptor of a launch is the agent's own credential, for one
// launch, with null destinations; the request is closed and canonical.
func TestLaunchRequestIsClosed(t *testing.T) {
	good, err := aLaunch().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(good), `"credential":{"envName":null,"holder":"U1","homePath":null,"id":"c1","lifetime":"launch","purpose":"agent-credential"}`) {
		t.Errorf("the descriptor in %s", good)
	}
	r, err := DecodeLaunchRequest(good)
	if err != nil || *r.Authentication.BearerSource != *aLaunch().Authentication.BearerSource || r.Credential != aLaunch().Credential {
		t.Fatalf("%+v %v", r, err)
	}
	where := "/root/.key"
	for name, change := range map[string]func(*LaunchRequest){
		"another version":     func(r *LaunchRequest) { r.Version = "v2" },
		"an API key":          func(r *LaunchRequest) { r.Credential.Purpose = "api-key" },
		"an account's token":  func(r *LaunchRequest) { r.Credential.Purpose = "account-token" },
		"another lifetime":    func(r *LaunchRequest) { r.Credential.Lifetime = "session" },
		"a place in the home": func(r *LaunchRequest) { r.Credential.HomePath = &where },
		"a variable":          func(r *LaunchRequest) { r.Credential.EnvName = &where },
		"an http source":      func(r *LaunchRequest) { r.Authentication.BearerSource.URL = "http://h" },
		"a third kind":        func(r *LaunchRequest) { r.Authentication.BearerSource.Kind = "tcp" },
	} {
		bad := aLaunch()
		change(&bad)
		b, err := bad.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeLaunchRequest(b); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, s := range map[string]string{
		"another field":  strings.Replace(string(good), `{"authentication"`, `{"apiKey":"x","authentication"`, 1),
		"a second field": strings.Replace(string(good), `"generation":1`, `"generation":1,"generation":1`, 1),
		"a missing one":  strings.Replace(string(good), `"homePath":null,`, ``, 1),
		"white space":    string(good) + "\n", "two": string(good) + string(good), "nothing": "", "null": "null",
	} {
		if _, err := DecodeLaunchRequest([]byte(s)); fault.CodeOf(err) != fault.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The plan's digest is of what was asked for and not of a provider's local name.
func TestIntentOfAPlan(t *testing.T) {
	of := func(p Plan) string {
		s, err := IntentSHA256(p)
		if err != nil || len(s) != 64 {
			t.Fatal(s, err)
		}
		return s
	}
	a := of(Plan{Provider: "far", Command: []string{"true"}})
	if of(Plan{Provider: "near", Command: []string{"true"}}) != a || of(Plan{Provider: "far", Command: []string{"false"}}) == a {
		t.Error("the digest is not of what was asked for")
	}
}

func FuzzBearerSource(f *testing.F) {
	for _, s := range []string{"socket:/run/x", "https://h:1/p", "https://u@h", "https://h#", "socket:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseBearerSource(s)
		if err != nil {
			return
		}
		if again, err := ParseBearerSource(map[BearerKind]string{BearerSocket: "socket:" + b.Path, BearerHTTPS: b.URL}[b.Kind]); err != nil || again != b {
			t.Errorf("%q: %+v, read again %+v %v", s, b, again, err)
		}
	})
}

func FuzzLaunchRequest(f *testing.F) {
	good, _ := aLaunch().Encode()
	f.Add(good)
	f.Add([]byte(`{"version":"berth-environment-launch/v1"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeLaunchRequest(b)
		if err != nil {
			return
		}
		if again, err := r.Encode(); err != nil || string(again) != string(b) {
			t.Errorf("%s is read as %s %v", b, again, err)
		}
	})
}
