package commands

import (
	"regexp"

	"berth/events"
	"berth/events/fault"
	"berth/providers"
)

// Limits of a transcript.
const (
	// MaxTranscript is the longest transcript, in bytes.
	MaxTranscript = providers.MaxTranscript
	// MaxSource is the longest name of the session that it is of, and of the
	// host where that was; MaxTitle the longest title; in bytes.
	MaxSource = 128
	MaxTitle  = 256
)

// The states that `transcript-receive` answers with.
const (
	TranscriptUpload = "upload" // put it into the bucket, then ask again
	TranscriptStaged = "staged" // the instance has it, and Claim is good for one spawn
)

var (
	sha256RE = regexp.MustCompile(`^[0-9a-f]{64}$`)
	claimRE  = regexp.MustCompile(`^[a-z2-7]{26}$`)
)

// TranscriptInput says which transcript is brought. Its bytes are in no
// request; what is here is public text.
type TranscriptInput struct {
	SHA256     string `json:"sha256" doc:"digest of the bytes, hexadecimal" pattern:"^[0-9a-f]{64}$"`
	Size       int64  `json:"size" doc:"how many bytes it has" max:"4194304"`
	Source     string `json:"source" doc:"the session that it is of; the claim is bound to it" maxLength:"128"`
	SourceHost string `json:"sourceHost" doc:"where that session was" maxLength:"128"`
	Title      string `json:"title,omitzero" doc:"what a person calls it" maxLength:"256"`
}

// Check implements Input.
func (in TranscriptInput) Check() error {
	switch {
	case !sha256RE.MatchString(in.SHA256):
		return bad("sha256", "it is not 64 digits of 0-9 and a-f")
	case in.Size < 1 || in.Size > MaxTranscript:
		return bad("size", "%d bytes; a transcript has 1 to %d", in.Size, int64(MaxTranscript))
	case in.Source == "":
		return bad("source", "it is empty: name the session that the transcript is of")
	case in.SourceHost == "":
		return bad("sourceHost", "it is empty")
	}
	return first(checkText("source", in.Source, MaxSource), checkText("sourceHost", in.SourceHost, MaxSource), checkText("title", in.Title, MaxTitle))
}

// TranscriptResult is where a transcript is put, or the claim on it.
type TranscriptResult struct {
	State      string            `json:"state"` // upload or staged
	InstanceID events.InstanceID `json:"instanceId"`
	// Bucket and Object are where it is put, in the object store of the space's
	// server; with upload.
	Bucket string `json:"bucket,omitempty"`
	Object string `json:"object,omitempty"`
	// Claim is what a spawn at this instance resumes it with, once, until
	// Expires (RFC 3339); with staged.
	Claim   string `json:"claim,omitempty"`
	Expires string `json:"expires,omitempty"`
	Fetched bool   `json:"fetched"` // it was taken out of the bucket for this answer; false: it was there already
}

// TranscriptReceive brings a transcript to an instance.
var TranscriptReceive = command[TranscriptInput, TranscriptResult](Contract{
	Name: "transcript-receive", Kind: Write, Target: TargetAny, Modes: aboutNobody, Capability: CanAdmin, Timeout: 2 * DefaultTimeout,
	Doc:      "Bring a transcript that a spawn may resume: it says where to put the bytes, and once they are there gives a claim that is good for one spawn, for ten minutes.",
	Example:  `{"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","size":4,"source":"session-7","sourceHost":"laptop"}`,
	Refusals: []fault.Code{fault.Conflict, fault.FailedPrecondition},
})

// checkResume accepts the claim of a spawn, and the session that is meant.
func (in SpawnInput) checkResume() error {
	switch {
	case in.Resume == "" && in.ResumeSource == "":
		return nil
	case !claimRE.MatchString(in.Resume):
		return bad("resume", "it is not a claim: `berth transcript send` prints one")
	case in.Delegated:
		return bad("resume", "a delegated seat takes no transcript: its material is the hand-off alone")
	}
	return checkText("resumeSource", in.ResumeSource, MaxSource)
}
