package events

import (
	"strings"
	"testing"
	"unicode/utf8"

	"berth/events/fault"
)

func TestCheckTextR71(t *testing.T) {
	for _, ok := range []string{
		"a", "ready in 3 s", "smoke: works", "öffnen ✓", strings.Repeat("x", MaxText), "https://example.org/a?b=c#d", "the token bucket is empty",
		"monkey = fine", "bearer", "a keyboard: loud", "sha256:0123", "tokenize the input", "token", "docker.io/library/alpine:3",
	} {
		if err := CheckText("detail", ok); err != nil {
			t.Errorf("%.40q: %v", ok, err)
		}
	}
	for name, bad := range refusedTexts() {
		err := CheckText("detail", bad)
		if fault.CodeOf(err) != fault.BadRequest || !strings.HasPrefix(fault.From(err).Message, "detail ") {
			t.Errorf("%s: %v", name, err)
		}
		if len(bad) > 8 && err != nil && strings.Contains(err.Error(), bad) {
			t.Errorf("%s: the refusal repeats the text", name)
		}
	}
	if err := CheckText("detail", "a\nb"); err == nil {
		t.Error("a newline passes for one line")
	}
	if err := CheckTextMulti("detail", "a\n\tb"); err != nil {
		t.Error(err)
	}
	if err := CheckTextMulti("detail", "a\rb"); err == nil {
		t.Error("a carriage return passes")
	}
}

func refusedTexts() map[string]string {
	return map[string]string{
		"empty": "", "too long": strings.Repeat("x", MaxText+1), "not UTF-8": "a\xffb", "control": "a\x1b[31mb", "DEL": "a\x7f", "C1": "a\u0085b",
		"bearer": "sent Bearer abcdef", "bearer case": "authorization: bearer abc.def",
		"PEM":   "-----BEGIN RSA PRIVATE KEY----- MIIB -----END RSA PRIVATE KEY-----",
		"creds": "-----BEGIN NATS USER JWT-----", "seed block": "-----BEGIN USER NKEY SEED-----",
		"token": "token=abc", "secret": "my secret: abc", "api key": "API key = abc", "api_key": "api_key:abc", "apikey": "apikey=1",
		"credential": "credential: abc", "credentials": "credentials=abc", "password": "password: hunter2", "passwd": "passwd=1",
		"env": "AWS_SECRET=abc", "json": `{"access_token":"abc"}`, "empty value": "password=",
		"userinfo": "see https://user:pw@example.org/", "user only": "nats://tok@example.org", "query": "https://example.org/?X-Amz-Signature=1",
		"query 2": "https://example.org/a?b=1&access_key=2", "fragment": "https://example.org/#auth=1",
		"nkey": "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY",
	}
}

func TestScrubE13(t *testing.T) {
	for name, bad := range refusedTexts() {
		got := Scrub(bad)
		if err := CheckText("text", got); err != nil {
			t.Errorf("%s: %q: %v", name, got, err)
		}
	}
	for in, want := range map[string]string{
		"plain":                               "plain",
		"dial tcp: refused\n":                 "dial tcp: refused ",
		"login token=abc failed":              "login [redacted] failed",
		"password: 'a b c' x":                 "[redacted] x",
		"GET https://u:p@h/ says no":          "GET [redacted URL] says no",
		"got Bearer abc from x":               "got [redacted] from x",
		"\x00\x01":                            "(no text)",
		"ok \u202edeliaf\u202c \u2066x\u2069": "ok  deliaf   x ",
		strings.Repeat("a", 3*MaxText):        strings.Repeat("a", MaxText-3) + "…",
		"-----BEGIN PRIVATE KEY-----\nabc\n":  "[redacted]",
	} {
		if got := Scrub(in); got != want {
			t.Errorf("%.40q became %.60q, want %.60q", in, got, want)
		}
	}
}

func FuzzCheckText(f *testing.F) {
	for _, s := range refusedTexts() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clean := Scrub(s)
		if err := CheckText("x", clean); err != nil {
			t.Fatalf("Scrub(%q) = %q: %v", s, clean, err)
		}
		if CheckText("x", s) == nil && Scrub(s) != s && strings.TrimSpace(s) != "" {
			t.Fatalf("Scrub changes the acceptable %q to %q", s, clean)
		}
		if CheckText("x", s) == nil && CheckTextMulti("x", s) != nil {
			t.Fatalf("%q is one good line and no good lines", s)
		}
		if !utf8.ValidString(clean) || len(clean) > MaxText {
			t.Fatal(clean)
		}
	})
}
