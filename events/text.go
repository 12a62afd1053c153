package events

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"berth/events/fault"
)

// MaxText is the longest record text, in UTF-8 bytes (R71).
const MaxText = 2048

// What makes text look like a secret (R71, R72). The patterns err on the side
// of refusing: a person can always word a reason differently.
var (
	bearerRE = regexp.MustCompile(`(?i)\bbearer\s+\S+`)
	pemRE    = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|CREDENTIAL|CREDS|SEED|JWT|CERTIFICATE)[A-Z0-9 ]*-----.*?(?:-----END [A-Z0-9 ]*-----|\z)`)
	assignRE = regexp.MustCompile(`(?i)\b[A-Za-z0-9_.-]*(?:token|secret|api[ _-]?key|credentials?|passw(?:or)?d)["']?\s*[:=]\s*(?:"[^"]*"?|'[^']*'?|\S*)`)
	urlRE    = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>]+`)
	queryRE  = regexp.MustCompile(`(?i)(?:token|secret|key|sig|signature|credential|password|passwd|auth)`)
	nkeyRE   = regexp.MustCompile(`\bS[OAUNCXP][A-Z2-7]{56}\b`)
)

// CheckText accepts one line of public record text (R71): 1 to 2048 bytes of
// UTF-8 without control characters and without what looks like a secret. The
// refusal names the field and never repeats the text.
func CheckText(field, s string) error { return checkText(field, s, MaxText, false) }

// CheckTextMulti is CheckText for text of several lines: newline and tab are
// accepted.
func CheckTextMulti(field, s string) error { return checkText(field, s, MaxText, true) }

// CheckDocument is CheckTextMulti for a whole document of at most most bytes.
func CheckDocument(field, s string, most int) error { return checkText(field, s, most, true) }

func checkText(field, s string, most int, lines bool) error {
	refuse := func(why string) error {
		return fault.New(fault.BadRequest, "%s is not acceptable as public text: %s", field, why)
	}
	switch {
	case s == "":
		return refuse("it is empty")
	case len(s) > most:
		return refuse("it is longer than " + strconv.Itoa(most) + " bytes")
	case !utf8.ValidString(s):
		return refuse("it is not UTF-8")
	}
	for _, c := range s {
		if unicode.IsControl(c) && !(lines && (c == '\n' || c == '\t')) {
			return refuse("it has a control character")
		}
	}
	if what := secretIn(s); what != "" {
		return refuse("it looks like it holds " + what).(*fault.Error).
			WithHint("give secrets by file or standard input, never in names, reasons or options")
	}
	return nil
}

func secretIn(s string) string {
	switch {
	case pemRE.MatchString(s):
		return "a PEM block"
	case bearerRE.MatchString(s):
		return "a bearer token"
	case assignRE.MatchString(s):
		return "a token, key, credential or password"
	case nkeyRE.MatchString(s):
		return "an nkey seed"
	}
	for _, u := range urlRE.FindAllString(s, -1) {
		if secretURL(u) {
			return "a URL with a user or a secret"
		}
	}
	return ""
}

// secretURL says that a URL has userinfo or a query key that names a secret
// (R35, R72). What can't be parsed is judged by its characters.
func secretURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return strings.ContainsAny(s, "@?")
	}
	if u.User != nil {
		return true
	}
	for _, part := range strings.FieldsFunc(u.RawQuery+"&"+u.Fragment, func(r rune) bool { return r == '&' || r == ';' || r == '?' }) {
		key, _, _ := strings.Cut(part, "=")
		if k, err := url.QueryUnescape(key); err != nil || queryRE.MatchString(k) {
			return true
		}
	}
	return false
}

// Steers says that a character steers what shows a text, and is not shown itself:
// a control character, a separator of lines or paragraphs, or one that turns the
// direction of what follows around, so that a line reads otherwise than it is.
// The marks that a script from right to left needs (U+200E, U+200F, U+061C) turn
// nothing around.
func Steers(r rune) bool {
	return unicode.IsControl(r) || r >= '\u2028' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// Scrub makes arbitrary text of a provider or store fit to be kept and shown
// (E13): invalid UTF-8 and what steers a terminal become spaces, what looks like a
// secret becomes [redacted], and the rest is cut to 2048 bytes. The result
// always passes CheckText.
func Scrub(s string) string {
	// Twice the limit is looked at, so that a secret that straddles the cut is
	// still seen whole enough to be found.
	if len(s) > 2*MaxText {
		s = s[:2*MaxText]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = pemRE.ReplaceAllString(s, "[redacted]")
	s = strings.Map(func(r rune) rune {
		if Steers(r) {
			return ' '
		}
		return r
	}, s)
	s = bearerRE.ReplaceAllString(s, "[redacted]")
	s = assignRE.ReplaceAllString(s, "[redacted]")
	s = nkeyRE.ReplaceAllString(s, "[redacted]")
	s = urlRE.ReplaceAllStringFunc(s, func(u string) string {
		if secretURL(u) {
			return "[redacted URL]"
		}
		return u
	})
	if strings.TrimSpace(s) == "" {
		return "(no text)"
	}
	if len(s) > MaxText {
		cut := MaxText - len("…")
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	if secretIn(s) != "" { // a cut or a replacement made a new one
		return "[redacted]"
	}
	return s
}
