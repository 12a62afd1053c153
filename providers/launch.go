package providers

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/nats-io/nkeys"

	"berth/events"
	"berth/events/fault"
)

// The pieces of material of a launch, by name. There are no others (R58); a
// transcript comes with a plan that resumes one, and only then.
const (
	MaterialCredential = events.PurposeAgentCredential // the seed of the agent's own nkey
	MaterialLaunch     = events.FileLaunch             // the canonical events.LaunchRequest
	MaterialTranscript = "resume-transcript"           // the transcript that the plan binds by digest
)

// MaxTranscript is the longest transcript, in bytes: one call to a provider
// carries it.
const MaxTranscript = 4 << 20

// TranscriptTaker is implemented by drivers that stage the material
// MaterialTranscript of a start as a file that the seat reads, and name it in
// events.EnvTranscript. Others can't begin a seat that resumes.
type TranscriptTaker interface {
	// TakesTranscript is the longest transcript that is taken, in bytes.
	TakesTranscript() int64
}

// TakesTranscript refuses a transcript that the provider would not give to its
// seat, before any effect: unimplemented if it takes none at all,
// resource-exhausted if it is too long.
func (e Entry) TakesTranscript(size int64) error { return takesTranscript(e.Driver, e.Name, size) }

func takesTranscript(d Driver, name string, size int64) error {
	t, ok := Raw(d).(TranscriptTaker)
	switch {
	case !ok:
		return fault.New(fault.Unimplemented, "provider %s gives no transcript to its seats", name).WithOutcome(fault.NotExecuted)
	case size > t.TakesTranscript():
		return fault.New(fault.ResourceExhausted, "the transcript has %d bytes, and provider %s gives at most %d to a seat", size, name, t.TakesTranscript()).WithOutcome(fault.NotExecuted)
	}
	return nil
}

// BearerExposer is implemented by drivers whose guests can reach a bearer
// source. One that does not implement it exposes none.
type BearerExposer interface {
	// ExposeBearer refuses a source that a guest of this plan could not reach,
	// with failed-precondition. It changes nothing. There is no other source
	// that is taken in its place (R51).
	ExposeBearer(plan events.Plan, source events.BearerSource) error
}

// ExposeBearer asks a driver whether guests of the plan reach the source.
func ExposeBearer(d Driver, plan events.Plan, source events.BearerSource) error {
	if err := source.Check(); err != nil {
		return err
	}
	x, ok := Raw(d).(BearerExposer)
	if !ok {
		return CannotExpose(d.Name(), source.Kind)
	}
	return x.ExposeBearer(plan, source)
}

// CannotExpose is the refusal of a kind of source (R51).
func CannotExpose(driver string, kind events.BearerKind) *fault.Error {
	return fault.New(fault.FailedPrecondition, "provider %s can't show its guests a bearer source of kind %s, and none is taken in its place (R51)", driver, kind).
		WithOutcome(fault.NotExecuted)
}

// Launch is the material of one launch: the credential's bytes, and beside
// them the request that binds them to the environment, its plan and the bearer
// source (R46). Version, intent, digest and the fixed fields of the descriptor
// are filled in here. The transcript of a plan that resumes is put beside it.
func Launch(plan events.Plan, r events.LaunchRequest, seed []byte) (Material, error) {
	intent, err := events.IntentSHA256(plan)
	if err != nil {
		return nil, err
	}
	r.Version, r.IntentSHA256, r.MaterialSHA256 = events.LaunchVersion, intent, digestOf(seed)
	r.Credential.Purpose, r.Credential.Lifetime = events.PurposeAgentCredential, events.LifetimeLaunch
	b, err := r.Encode()
	if err != nil {
		return nil, err
	}
	return Material{MaterialCredential: seed, MaterialLaunch: b}, nil
}

// LaunchOf reads the request out of material; bad-request if it has none.
func LaunchOf(m Material) (events.LaunchRequest, error) {
	b, ok := m[MaterialLaunch]
	if !ok {
		return events.LaunchRequest{}, fault.New(fault.BadRequest, "material comes with the launch request that binds it (R46)")
	}
	return events.DecodeLaunchRequest(b)
}

// checkLaunch refuses material before the driver sees it: another piece than
// the one credential and its request, other bytes than the ones that were
// bound, what is no agent's credential (an API key, the key of an account, a
// signed URL), a request of another environment or plan (R46, R47, R58), and a
// source that the guest would not reach (R51). No error repeats any of it.
func checkLaunch(d Driver, op Operation) error {
	if len(op.Material) == 0 {
		return nil
	}
	if op.Plan.Delegated {
		return checkHandoff(d, op)
	}
	bad := func(why string) error {
		return fault.New(fault.BadRequest, "the launch of environment %s is refused: %s", op.Environment, why)
	}
	r, err := LaunchOf(op.Material)
	if err != nil {
		return err
	}
	seed, ok := op.Material[MaterialCredential]
	pieces := 2
	if op.Plan.Resume != nil {
		pieces++
		if err := checkTranscript(d, op); err != nil {
			return err
		}
	}
	if !ok || len(op.Material) != pieces {
		return bad("its material is not the one credential and its request (R58)")
	}
	intent, err := events.IntentSHA256(op.Plan)
	if err != nil {
		return err
	}
	switch {
	case r.Environment != op.Environment || r.IntentSHA256 != intent:
		return bad("its request is of another environment or plan (R46)")
	case r.MaterialSHA256 != digestOf(seed):
		return bad("its request binds other bytes (R46)")
	case !isSeedOf(seed, r.Credential.Holder):
		return bad("what it brings is not the agent's own credential (R58)")
	}
	if s := r.Authentication.BearerSource; s != nil {
		return ExposeBearer(d, op.Plan, *s)
	}
	return nil
}

// checkTranscript refuses a transcript that is not the one of the plan, whose
// digest the launch request binds, and a driver that takes none.
func checkTranscript(d Driver, op Operation) error {
	b, ok := op.Material[MaterialTranscript]
	if !ok || int64(len(b)) != op.Plan.Resume.Size || digestOf(b) != op.Plan.Resume.SHA256 {
		return fault.New(fault.BadRequest, "the launch of environment %s is refused: it does not bring the transcript that its plan resumes", op.Environment)
	}
	return takesTranscript(d, d.Name(), int64(len(b)))
}

func isSeedOf(seed []byte, holder string) bool {
	kp, err := nkeys.FromSeed(seed)
	if err != nil {
		return false
	}
	defer kp.Wipe()
	public, err := kp.PublicKey()
	return err == nil && nkeys.IsValidPublicUserKey(public) && public == holder
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
