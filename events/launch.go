package events

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"path"
	"strings"

	"github.com/gowebpki/jcs"

	"berth/events/fault"
)

// LaunchVersion is the version of LaunchRequest that is written and the only
// one that is read.
const LaunchVersion = "berth-environment-launch/v1"

// Limits of a bearer source, in bytes.
const (
	MaxBearerURL  = 2048 // R44
	MaxBearerPath = 107  // what the kernel takes as the path of a unix socket
)

// BearerKind says how a guest reaches whoever gives it bearers.
type BearerKind string

// The kinds of bearer sources (R43). There is no third, and none stands in for
// the other (R51).
const (
	BearerSocket BearerKind = "socket" // a unix socket that the guest sees
	BearerHTTPS  BearerKind = "https"
)

// BearerSource is where the guest of one launch fetches a fresh bearer: Path
// with socket, URL with https (R43). It is public text.
type BearerSource struct {
	Kind BearerKind `json:"kind"`
	Path string     `json:"path,omitempty"`
	URL  string     `json:"url,omitempty"`
}

// ParseBearerSource reads socket:/PATH or https://HOST[:PORT][/PATH];
// bad-request says what is wrong and never repeats the text, which may hold a
// secret that was put there by mistake.
func ParseBearerSource(s string) (BearerSource, error) {
	b := BearerSource{Kind: BearerHTTPS, URL: s}
	if p, ok := strings.CutPrefix(s, "socket:"); ok {
		b = BearerSource{Kind: BearerSocket, Path: p}
	}
	return b, b.Check()
}

// Check refuses what is no bearer source, with bad-request.
func (b BearerSource) Check() error {
	bad := func(why string) error {
		return fault.New(fault.BadRequest, "bearer source: %s", why).WithHint("socket:/PATH or https://HOST[:PORT][/PATH]")
	}
	switch b.Kind {
	case BearerSocket:
		if b.URL != "" || !path.IsAbs(b.Path) || path.Clean(b.Path) != b.Path || b.Path == "/" || len(b.Path) > MaxBearerPath {
			return bad("a socket is a clean absolute path of at most 107 bytes")
		}
		return CheckText("bearer source", b.Path)
	case BearerHTTPS:
		if b.Path != "" {
			return bad("an https source has no path of a socket")
		}
		return checkAuthorityURL(b.URL, bad)
	}
	return bad("the kind is neither socket nor https (R51)")
}

// checkAuthorityURL is R44.
func checkAuthorityURL(s string, bad func(string) error) error {
	if len(s) > MaxBearerURL {
		return bad("the URL has more than 2048 bytes")
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "https":
		return bad("the URL is not an https one")
	case u.User != nil:
		return bad("the URL has userinfo")
	case u.RawQuery != "" || u.ForceQuery:
		return bad("the URL has a query")
	case strings.Contains(s, "#"):
		return bad("the URL has a fragment")
	case u.Hostname() == "":
		return bad("the URL has no host")
	}
	return CheckText("bearer source", s)
}

// The one descriptor that the credential's place in a launch takes (R53, R58).
const (
	PurposeAgentCredential = "agent-credential"
	LifetimeLaunch         = "launch"
)

// CredentialDescriptor names the credential of a launch (R53). HomePath and
// EnvName are null always: its bytes go where material goes and nowhere else.
type CredentialDescriptor struct {
	ID       CredentialID `json:"id"`
	Holder   string       `json:"holder"` // public nkey: the bytes are the seed of it
	Purpose  string       `json:"purpose"`
	Lifetime string       `json:"lifetime"`
	HomePath *string      `json:"homePath"`
	EnvName  *string      `json:"envName"`
}

// LaunchAuthentication is how the guest gets bearers; a null source says that
// nobody gives any.
type LaunchAuthentication struct {
	BearerSource *BearerSource `json:"bearerSource"`
}

// LaunchRequest is the closed request that is staged beside the credential
// before the guest starts: one canonical text binds environment, plan,
// credential and bearer source (R46). It holds no secret.
type LaunchRequest struct {
	Version        string               `json:"version"`
	Environment    EnvironmentID        `json:"environment"` // what the guest shows as its presence's environment (R62)
	UID            UID                  `json:"uid"`
	IntentSHA256   string               `json:"intentSha256"` // of the plan
	Generation     uint64               `json:"generation"`   // of the gate that admitted the credential
	Credential     CredentialDescriptor `json:"credential"`
	MaterialSHA256 string               `json:"materialSha256"` // of the credential's bytes
	Authentication LaunchAuthentication `json:"authentication"`
}

// IntentSHA256 is the digest of a plan as a launch request has it: of its
// canonical JSON, without the provider's name, which each side of a line to
// another machine chooses for itself.
func IntentSHA256(p Plan) (string, error) {
	p.Provider = ""
	b, err := canonical(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// Encode is the canonical JSON of the request (RFC 8785).
func (r LaunchRequest) Encode() ([]byte, error) { return canonical(r) }

func canonical(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err == nil {
		b, err = jcs.Transform(b)
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "a launch request can't be written: %s", err)
	}
	return b, nil
}

// DecodeLaunchRequest reads the canonical JSON of a request and nothing else:
// unknown and repeated fields, another version, another descriptor than the
// one that is admitted (R53, R58) and a bad source (R43, R44) are bad-request.
func DecodeLaunchRequest(b []byte) (LaunchRequest, error) {
	bad := func(why string) (LaunchRequest, error) {
		return LaunchRequest{}, fault.New(fault.BadRequest, "launch request: %s", why)
	}
	var r LaunchRequest
	if err := json.Unmarshal(b, &r); err != nil {
		return bad("it is no JSON of the kind")
	}
	// Canonical text has one form, so what differs has something that was not read.
	if again, err := r.Encode(); err != nil || string(again) != string(b) {
		return bad("it is not closed and canonical")
	}
	c := r.Credential
	switch {
	case r.Version != LaunchVersion:
		return bad("its version is not " + LaunchVersion)
	case c.Purpose != PurposeAgentCredential || c.Lifetime != LifetimeLaunch:
		return bad("only the agent's own credential, for one launch, has a place in it (R53, R58)")
	case c.HomePath != nil || c.EnvName != nil:
		return bad("a credential goes neither to the home nor to the environment (R53)")
	}
	if s := r.Authentication.BearerSource; s != nil {
		if err := s.Check(); err != nil {
			return LaunchRequest{}, err
		}
	}
	return r, nil
}
