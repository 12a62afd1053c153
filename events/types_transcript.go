package events

import "time"

// ---- transcript.<claim>

// TranscriptStaged says that an instance has a transcript, verified by length
// and digest, and gives the one claim on it. Its bytes are in no event.
type TranscriptStaged struct {
	Claim      string     `json:"claim"`
	SHA256     string     `json:"sha256"`
	Size       int64      `json:"size"`       // bytes
	Source     string     `json:"source"`     // the session that it is of; the claim is bound to it
	SourceHost string     `json:"sourceHost"` // where that session was
	Title      string     `json:"title,omitempty"`
	Holder     Caller     `json:"holder"`   // who may use the claim
	Instance   InstanceID `json:"instance"` // where the bytes are
	Expires    time.Time  `json:"expires"`
}

// TranscriptConsumed gives a transcript to one spawn: the claim is used up.
type TranscriptConsumed struct {
	Goal Boundary `json:"goal"`
}

// TranscriptExpired says that nobody used the claim in time; the bytes are
// removed after it.
type TranscriptExpired struct {
	Claim string `json:"claim"`
}
