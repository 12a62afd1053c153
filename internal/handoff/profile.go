package handoff

import (
	"path/filepath"
	"strings"

	"berth/events"
	"berth/events/fault"
)

// The environment of a delegated seat.
const (
	// EnvFile names the hand-off file; the child drops it before anything else.
	EnvFile = "BERTH_MANAGED_HANDOFF_FILE"
	// EnvInstance is the id of the manager that launched the seat.
	EnvInstance = "BERTH_MANAGER_INSTANCE"
	// EnvFD tells the seat's command on which descriptor the document is.
	EnvFD = "BERTH_HANDOFF_FD"
)

// Purpose is the name under which a driver gets the document as material.
const Purpose = "handoff"

// ProfileKind is the kind of a manager's delegation profile.
const ProfileKind = "berth-delegation/v1"

// Limits of a profile, in bytes.
const (
	MaxProfile = 64 << 10
	MaxPath    = 4096
)

// DefaultProgram is what begins a delegated seat inside of its environment.
const DefaultProgram = "berth"

// Profile is what every hand-off of one manager has in common. It holds no
// token: that is the lifecycle's own.
type Profile struct {
	Space          events.Space `json:"-"` // the manager's
	Kind           string       `json:"kind"`
	Program        string       `json:"program,omitempty"` // `berth` as the environment finds it; a path or a name on its PATH
	Server         string       `json:"server"`
	TLSRequired    bool         `json:"tlsRequired"`
	AuthProvider   string       `json:"authProvider"`
	IdP            IdP          `json:"idp"`
	ExchangeURL    string       `json:"exchangeUrl"`
	SentinelFile   string       `json:"sentinelFile"` // absolute; readable by its owner only
	Sentinel       Secret       `json:"-"`            // what is in it
	Subscribe      []string     `json:"subscribe"`
	AllowSubscribe []string     `json:"allowSubscribe"`
	AllowPublish   []string     `json:"allowPublish"`
	Policy         *Policy      `json:"policy,omitempty"`
}

// ParseProfile reads a manager's delegation profile, without its sentinel;
// every field is checked as a document's is. Refusals are bad-request.
func ParseProfile(raw []byte) (Profile, error) {
	var p Profile
	if err := closed("the delegation profile", raw, MaxProfile, &p); err != nil {
		return Profile{}, err
	}
	switch {
	case p.Kind != ProfileKind:
		return Profile{}, bad("kind", "it is not "+ProfileKind)
	case !filepath.IsAbs(p.SentinelFile) || len(p.SentinelFile) > MaxPath:
		return Profile{}, bad("sentinelFile", "it is not an absolute path")
	case p.Subscribe == nil:
		return Profile{}, missing("subscribe")
	case p.AllowSubscribe == nil:
		return Profile{}, missing("allowSubscribe")
	case p.AllowPublish == nil:
		return Profile{}, missing("allowPublish")
	}
	if p.Program == "" {
		p.Program = DefaultProgram
	}
	if strings.HasPrefix(p.Program, "-") || text(p.Program, MaxText) != "" {
		return Profile{}, bad("program", "it is not the path or name of a program")
	}
	return p, p.check("sentinel")
}

// WithSentinel completes the profile with what is in its sentinel file, and
// the manager's space.
func (p Profile) WithSentinel(creds string, space events.Space) (Profile, error) {
	p.Sentinel, p.Space = Secret(creds), space
	return p, p.check(creds)
}

// check checks the common fields as those of a document that has the rest.
func (p Profile) check(sentinel string) error {
	p.Sentinel = Secret(sentinel)
	probe := Target{Space: "default", Owner: "local", Actor: "probe", UID: "aaaaaaaaaaaaaaaaaaaaaaaaaa"}
	return p.document(probe, Secret(strings.Repeat("x", MinToken))).Check()
}

// For is the hand-off of one lifecycle, which differs from others in its
// target and its token (H1).
func (p Profile) For(owner events.Owner, actor events.Actor, uid events.UID, token Secret) Document {
	return p.document(p.target(owner, actor, uid), token)
}

func (p Profile) target(owner events.Owner, actor events.Actor, uid events.UID) Target {
	return Target{Space: p.Space, Owner: owner, Actor: actor, UID: uid}
}

func (p Profile) document(t Target, token Secret) Document {
	return Document{
		Target: t, Server: p.Server, TLSRequired: p.TLSRequired, AuthProvider: p.AuthProvider, IdP: p.IdP, ExchangeURL: p.ExchangeURL,
		Sentinel: p.Sentinel, Token: token, Subscribe: p.Subscribe, AllowSubscribe: p.AllowSubscribe, AllowPublish: p.AllowPublish, Policy: p.Policy,
	}
}

// Command is the command line of a delegated seat: the bootstrap, what it must
// expect, and then the seat's own command. All of it is public (H7).
func (p Profile) Command(owner events.Owner, actor events.Actor, uid events.UID, command []string) []string {
	return append([]string{p.Program, "seat", "--expect-space", string(p.Space), "--expect-owner", string(owner),
		"--expect-actor", string(actor), "--expect-uid", string(uid), "--"}, command...)
}

// Refused is the refusal of a delegated seat where nothing was executed yet
// (H5).
func Refused(code fault.Code, why string) error {
	return fault.New(code, "a delegated seat can't start here: %s", why).WithOutcome(fault.NotExecuted).
		WithDetail("berth.delegation-refused", "reason", why)
}
