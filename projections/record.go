package projections

import (
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/events"
	"berth/events/fault"
)

// RecordVersion is the fixed version of the record (R60).
const RecordVersion = "berth-manager-environment-record/v1"

// ManagedEnvironmentRecord is the closed record of one environment (R60-R75):
// exactly these fields, public, times in epoch milliseconds (R69), a field
// that no source reported absent (R66). It is served and never put on the
// event wire (R75).
type ManagedEnvironmentRecord struct {
	Version  string               `json:"version"`
	ID       events.EnvironmentID `json:"id"`       // never changes (R61)
	Provider string               `json:"provider"` // the driver's name
	// ProviderRef is the provider's own handle; it may change (R63). Absent
	// until the provider's answer has bound one (R92).
	ProviderRef  string                  `json:"providerRef,omitempty"`
	Space        events.Space            `json:"space"`
	Host         string                  `json:"host,omitempty"` // of the host facts (R65), as the next two
	Architecture string                  `json:"arch,omitempty"`
	Engine       string                  `json:"engine,omitempty"`
	VolumeID     string                  `json:"volumeId,omitempty"`
	Image        RecordImage             `json:"image"`
	Owner        events.Owner            `json:"owner"`
	CreatedAt    int64                   `json:"createdAt"`
	State        environment.RecordState `json:"state"`
	StoppedAt    *int64                  `json:"stoppedAt,omitempty"` // only after a proved stop (R67)
	ExpiresAt    *int64                  `json:"expiresAt,omitempty"` // absent: the provider reported none (R68)
	Network      string                  `json:"network,omitempty"`
	Capabilities events.Capabilities     `json:"capabilities"`
	ProbedAt     *int64                  `json:"probedAt,omitempty"`
}

// RecordImage is the image as a record shows it.
type RecordImage struct {
	Kind      string `json:"kind"` // template or oci
	Reference string `json:"ref"`
	Digest    string `json:"digest,omitempty"` // of the content (R20)
}

// RecordOf is the record of a seat's environment in a space.
func RecordOf(s aggregates.Seat, space events.Space) ManagedEnvironmentRecord {
	e := s.Environment
	r := ManagedEnvironmentRecord{
		Version: RecordVersion, ID: e.ID, Provider: e.Plan.Provider, ProviderRef: e.Ref, Space: space,
		Host: e.Host, Architecture: e.Architecture, Engine: e.Engine, VolumeID: e.VolumeID,
		Image: RecordImage{Kind: e.Plan.Image.Kind, Reference: e.Plan.Image.Reference, Digest: e.Image.Digest},
		Owner: s.Owner, CreatedAt: stamp(e.CreatedAt), State: e.Record,
		StoppedAt: millis(e.StoppedAt), ExpiresAt: millis(e.ExpiresAt), Network: e.Network, Capabilities: e.Capabilities,
	}
	if !e.ProbedAt.IsZero() {
		r.ProbedAt = millis(&e.ProbedAt)
	}
	return r
}

// stamp is epoch ms, zero for a time that never was.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func millis(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	n := t.UnixMilli()
	return &n
}

// Validate checks the closed values and that every string is record text
// (R71, R74). The refusal is bad-request and names the field, never its text.
func (r ManagedEnvironmentRecord) Validate() error {
	required := []struct{ field, text string }{
		{"version", r.Version}, {"id", string(r.ID)}, {"provider", r.Provider}, {"space", string(r.Space)},
		{"image.kind", r.Image.Kind}, {"image.ref", r.Image.Reference}, {"owner", string(r.Owner)}, {"state", string(r.State)},
	}
	for _, f := range required {
		if err := events.CheckText("record "+f.field, f.text); err != nil {
			return err
		}
	}
	reported := []struct{ field, text string }{
		{"providerRef", r.ProviderRef}, {"host", r.Host}, {"arch", r.Architecture}, {"engine", r.Engine},
		{"volumeId", r.VolumeID}, {"image.digest", r.Image.Digest}, {"network", r.Network},
	}
	for _, f := range reported {
		if f.text == "" {
			continue
		}
		if err := events.CheckText("record "+f.field, f.text); err != nil {
			return err
		}
	}
	return r.closed()
}

func (r ManagedEnvironmentRecord) closed() error {
	bad := func(field, want string) error {
		return fault.New(fault.BadRequest, "record %s is not valid: %s", field, want)
	}
	if r.Version != RecordVersion {
		return bad("version", RecordVersion)
	}
	switch r.State {
	case environment.Creating, environment.Running, environment.Stopped, environment.Failed:
	default:
		return bad("state", "creating, running, stopped or failed")
	}
	if r.Image.Kind != "template" && r.Image.Kind != "oci" {
		return bad("image.kind", "template or oci")
	}
	if r.ProviderRef == "" && r.State == environment.Running {
		return bad("providerRef", "what runs has a reference")
	}
	times := []struct {
		field string
		at    *int64
	}{{"createdAt", &r.CreatedAt}, {"stoppedAt", r.StoppedAt}, {"expiresAt", r.ExpiresAt}, {"probedAt", r.ProbedAt}}
	for _, t := range times {
		if t.at != nil && (*t.at < 0 || *t.at > events.MaxSafeInteger) {
			return bad(t.field, "epoch milliseconds")
		}
	}
	return nil
}
