// Package handoff is what a delegated seat starts from: the hand-off document
// that goes from a manager into exactly one child, the key under which a
// provider makes that child's resource, and the one-time file that the child
// takes the document from (H1-H20). It parses, checks and compares; it opens
// no connection, and what it refuses names a field and never a value.
package handoff

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"berth/events"
	"berth/events/fault"
)

// Kind is the document's kind. A document of another kind, or with one member
// more, is refused.
const Kind = "berth-managed-handoff/v1"

// Limits of a document, in bytes unless it says otherwise.
const (
	// MaxDocument is also what a pipe holds without a reader, so that a child
	// can be given the document before it exists.
	MaxDocument  = 64 << 10
	MaxURL       = 2048
	MaxText      = 256
	MaxSentinel  = 16 << 10
	MinToken     = 16
	MaxToken     = 4096
	MaxSubjects  = 128 // of one list
	MaxSubject   = events.MaxSubject
	eventsPolicy = "required"
)

// Secret is a text that is shown as [redacted] wherever it is printed. Reveal
// is the one way to the bytes.
type Secret string

// String hides the text.
func (Secret) String() string { return "[redacted]" }

// GoString hides the text.
func (Secret) GoString() string { return "[redacted]" }

// LogValue hides the text.
func (Secret) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// MarshalJSON hides the text; Document.Encode is the one that writes it.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"[redacted]"`), nil }

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// IdP pins the identity provider that the child's exchange trusts.
type IdP struct {
	URL      string `json:"url"`
	Issuer   string `json:"issuer"`
	Audience string `json:"audience"`
}

// Policy is what the child must do beside its work. Events is "required".
type Policy struct {
	Events string `json:"events"`
}

// Document is the whole of what crosses to the child (H4): no path, no signer,
// no credential of a manager. Sentinel and Token are secret.
type Document struct {
	Target
	Server         string // NATS URL, without credentials in it
	TLSRequired    bool
	AuthProvider   string
	IdP            IdP
	ExchangeURL    string // https, or http to a loopback literal (H10)
	Sentinel       Secret // creds that allow the exchange and nothing else
	Token          Secret // this lifecycle's own, made once (H1, H3)
	Subscribe      []string
	AllowSubscribe []string
	AllowPublish   []string
	Policy         *Policy
}

// wire is the document as it is written. Every member but policy must be there.
type wire struct {
	Kind           *string   `json:"kind"`
	Space          *string   `json:"space"`
	Owner          *string   `json:"owner"`
	Actor          *string   `json:"actor"`
	UID            *string   `json:"lifecycleUid"`
	Server         *string   `json:"server"`
	TLSRequired    *bool     `json:"tlsRequired"`
	AuthProvider   *string   `json:"authProvider"`
	IdP            *wireIdP  `json:"idp"`
	ExchangeURL    *string   `json:"exchangeUrl"`
	SentinelCreds  *string   `json:"sentinelCreds"`
	ActorToken     *string   `json:"actorToken"`
	Subscribe      *[]string `json:"subscribe"`
	AllowSubscribe *[]string `json:"allowSubscribe"`
	AllowPublish   *[]string `json:"allowPublish"`
	Policy         *Policy   `json:"policy,omitempty"`
}

type wireIdP struct {
	URL      *string `json:"url"`
	Issuer   *string `json:"issuer"`
	Audience *string `json:"audience"`
}

// Parse reads a document: closed, every field checked, at most MaxDocument
// bytes. It refuses with bad-request.
func Parse(raw []byte) (Document, error) {
	var w wire
	if err := closed("the hand-off", raw, MaxDocument, &w); err != nil {
		return Document{}, err
	}
	if w.Kind == nil || *w.Kind != Kind {
		return Document{}, bad("kind", "it is not "+Kind)
	}
	if w.TLSRequired == nil {
		return Document{}, missing("tlsRequired")
	}
	if w.IdP == nil {
		return Document{}, missing("idp")
	}
	texts := []struct {
		name string
		at   *string
	}{
		{"space", w.Space}, {"owner", w.Owner}, {"actor", w.Actor}, {"lifecycleUid", w.UID}, {"server", w.Server},
		{"authProvider", w.AuthProvider}, {"idp.url", w.IdP.URL}, {"idp.issuer", w.IdP.Issuer}, {"idp.audience", w.IdP.Audience},
		{"exchangeUrl", w.ExchangeURL}, {"sentinelCreds", w.SentinelCreds}, {"actorToken", w.ActorToken},
	}
	for _, t := range texts {
		if t.at == nil {
			return Document{}, missing(t.name)
		}
	}
	lists := []struct {
		name string
		at   *[]string
	}{{"subscribe", w.Subscribe}, {"allowSubscribe", w.AllowSubscribe}, {"allowPublish", w.AllowPublish}}
	for _, l := range lists {
		if l.at == nil || *l.at == nil {
			return Document{}, missing(l.name)
		}
	}
	d := Document{
		Target: Target{Space: events.Space(*w.Space), Owner: events.Owner(*w.Owner), Actor: events.Actor(*w.Actor), UID: events.UID(*w.UID)},
		Server: *w.Server, TLSRequired: *w.TLSRequired, AuthProvider: *w.AuthProvider,
		IdP:         IdP{URL: *w.IdP.URL, Issuer: *w.IdP.Issuer, Audience: *w.IdP.Audience},
		ExchangeURL: *w.ExchangeURL, Sentinel: Secret(*w.SentinelCreds), Token: Secret(*w.ActorToken),
		Subscribe: *w.Subscribe, AllowSubscribe: *w.AllowSubscribe, AllowPublish: *w.AllowPublish, Policy: w.Policy,
	}
	return d, d.Check()
}

// Encode writes the document, secrets and all, as Parse reads it. What Parse
// would refuse is refused here too.
func (d Document) Encode() ([]byte, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	p := func(s string) *string { return &s }
	l := func(s []string) *[]string {
		s = append([]string{}, s...) // an empty list is written as one
		return &s
	}
	raw, err := json.Marshal(wire{
		Kind: p(Kind), Space: p(string(d.Space)), Owner: p(string(d.Owner)), Actor: p(string(d.Actor)), UID: p(string(d.UID)),
		Server: p(d.Server), TLSRequired: &d.TLSRequired, AuthProvider: p(d.AuthProvider),
		IdP:         &wireIdP{URL: p(d.IdP.URL), Issuer: p(d.IdP.Issuer), Audience: p(d.IdP.Audience)},
		ExchangeURL: p(d.ExchangeURL), SentinelCreds: p(d.Sentinel.Reveal()), ActorToken: p(d.Token.Reveal()),
		Subscribe: l(d.Subscribe), AllowSubscribe: l(d.AllowSubscribe), AllowPublish: l(d.AllowPublish), Policy: d.Policy,
	})
	if err != nil {
		return nil, fault.New(fault.Internal, "the hand-off can't be written")
	}
	if len(raw) > MaxDocument {
		return nil, fault.New(fault.BadRequest, "the hand-off has %d bytes: at most %d", len(raw), MaxDocument)
	}
	return raw, nil
}

// Check refuses, with bad-request, a document that no child may be given.
func (d Document) Check() error {
	if err := d.Target.Check(); err != nil {
		return err
	}
	for _, c := range []struct {
		field string
		why   string
	}{
		{"server", serverURL(d.Server, d.TLSRequired)},
		{"authProvider", name(d.AuthProvider)},
		{"idp.url", webURL(d.IdP.URL)},
		{"idp.issuer", text(d.IdP.Issuer, MaxURL)},
		{"idp.audience", text(d.IdP.Audience, MaxText)},
		{"exchangeUrl", webURL(d.ExchangeURL)},
		{"sentinelCreds", sentinel(d.Sentinel.Reveal())},
		{"actorToken", token(d.Token.Reveal())},
		{"subscribe", subjects(d.Subscribe)},
		{"allowSubscribe", subjects(d.AllowSubscribe)},
		{"allowPublish", subjects(d.AllowPublish)},
	} {
		if c.why != "" {
			return bad(c.field, c.why)
		}
	}
	if d.Policy != nil && d.Policy.Events != eventsPolicy {
		return bad("policy.events", "it is not "+eventsPolicy)
	}
	return nil
}

// closed decodes one closed JSON object. Its refusals repeat nothing of what
// was read, which may be secret.
func closed(what string, raw []byte, most int, into any) error {
	if len(raw) > most {
		return fault.New(fault.BadRequest, "%s has %d bytes: at most %d", what, len(raw), most)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return fault.New(fault.BadRequest, "%s is empty", what)
	}
	if err := jsonv2.Unmarshal(raw, into, jsonv2.RejectUnknownMembers(true)); err != nil {
		return fault.New(fault.BadRequest, "%s is not what it should be: JSON that can't be read, a member of the wrong type, twice, or one that it does not have", what)
	}
	return nil
}

func bad(field, why string) error {
	return fault.New(fault.BadRequest, "field %s: %s", field, strings.TrimSuffix(why, "."))
}

func missing(field string) error { return bad(field, "it is missing") }
