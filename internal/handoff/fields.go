package handoff

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"berth/events"
)

//house:pure

// Each check returns what is wrong, or nothing. None repeats what it was given.

// webURL accepts https, or http where nothing leaves the host: to a literal
// loopback address, 127.0.0.0/8, ::1 or the mapped form (H10). A name may
// resolve to anything, so that http://localhost is refused.
func webURL(s string) string {
	u, why := plainURL(s)
	if why != "" {
		return why
	}
	switch u.Scheme {
	case "https":
		return ""
	case "http":
		if a, err := netip.ParseAddr(u.Hostname()); err != nil || a.Zone() != "" || !a.Unmap().IsLoopback() {
			return "http is only possible to a literal loopback address; use https"
		}
		return ""
	}
	return "it is neither https nor http to a loopback address"
}

// serverURL accepts the URL of a NATS server.
func serverURL(s string, tls bool) string {
	u, why := plainURL(s)
	if why != "" {
		return why
	}
	if !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
		return "it is not the URL of a NATS server"
	}
	if tls && u.Scheme == "ws" {
		return "it can't have the TLS that tlsRequired asks for"
	}
	return ""
}

// plainURL accepts an absolute URL without credentials, query and fragment.
func plainURL(s string) (*url.URL, string) {
	if why := visible(s, 1, MaxURL); why != "" {
		return nil, why
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return nil, "it is not an absolute URL"
	case u.User != nil:
		return nil, "it has credentials in it"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(s, "#"):
		return nil, "it has a query or a fragment"
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, "its port is not one"
		}
	}
	return u, ""
}

// visible accepts one line of ASCII without spaces.
func visible(s string, least, most int) string {
	if len(s) < least || len(s) > most {
		return "it must have " + strconv.Itoa(least) + " to " + strconv.Itoa(most) + " bytes"
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return "it must be visible ASCII"
		}
	}
	return ""
}

func token(s string) string { return visible(s, MinToken, MaxToken) }

func name(s string) string {
	if _, err := events.ParseActor(s); err != nil {
		return "it is not a name: letters, digits, - and _, 1 to 64 of them"
	}
	return ""
}

// text accepts one line of text.
func text(s string, most int) string {
	if s == "" || len(s) > most || !utf8.ValidString(s) {
		return "it must have 1 to " + strconv.Itoa(most) + " bytes of UTF-8"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "it has a control character"
	}
	return ""
}

// sentinel accepts a credentials file: lines of printable ASCII.
func sentinel(s string) string {
	if s == "" || len(s) > MaxSentinel {
		return "it must have 1 to " + strconv.Itoa(MaxSentinel) + " bytes"
	}
	for i := range len(s) {
		if c := s[i]; c > '~' || c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return "it must be lines of ASCII"
		}
	}
	return ""
}

// subjects accepts a list of NATS subjects, with wildcards, none twice.
func subjects(list []string) string {
	if len(list) > MaxSubjects {
		return "it has more than " + strconv.Itoa(MaxSubjects) + " subjects"
	}
	for i, s := range list {
		if visible(s, 1, MaxSubject) != "" || !subject(s) {
			return "entry " + strconv.Itoa(i) + " is not a subject"
		}
		if slices.Contains(list[:i], s) {
			return "entry " + strconv.Itoa(i) + " is there twice"
		}
	}
	return ""
}

func subject(s string) bool {
	tokens := strings.Split(s, ".")
	for i, t := range tokens {
		switch {
		case t == "", strings.ContainsAny(t, "*>") && len(t) > 1, t == ">" && i < len(tokens)-1:
			return false
		}
	}
	return true
}
