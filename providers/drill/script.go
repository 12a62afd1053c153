package drill

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path"
	"slices"

	"berth/events"
	"berth/events/fault"
)

// Limits of a script, each refused with bad-request.
const (
	MaxScriptBytes = 1 << 20
	MaxRules       = 1000
	MaxDelayMs     = 24 * 60 * 60 * 1000 // of a rule, one day
	MaxCount       = 1_000_000_000       // of nth and times
	maxGlob        = 128                 // bytes of an alias pattern
)

// Script says which calls misbehave. The first rule that fits a call decides;
// a call that no rule fits is handled faithfully.
type Script struct {
	Rules []Rule `json:"rules"`
}

// Rule is one misbehaviour. It counts every call of its verb and alias, and
// fires on the nth of them, on the first `times` of them, or, with neither,
// on all.
type Rule struct {
	Verb    Verb       `json:"verb"`              // "*" is every verb that the fault fits
	Alias   string     `json:"alias,omitempty"`   // glob; empty is every name
	Nth     int        `json:"nth,omitempty"`     // from 1
	Times   int        `json:"times,omitempty"`   // the first so many
	Fault   Fault      `json:"fault"`             //
	DelayMs int64      `json:"delayMs,omitempty"` // what it delays depends on the fault; negative only for clock-offset
	Code    fault.Code `json:"code,omitempty"`    // of refuse, throttle, error-after-accept
}

// ParseScript reads a script: {"rules": [...]}, or the bare list of rules.
// Unknown fields, verbs, faults and codes, and combinations that can't mean
// anything, are refused with bad-request that names the rule.
func ParseScript(raw []byte) (Script, error) {
	if len(raw) > MaxScriptBytes {
		return Script{}, fault.New(fault.BadRequest, "drill script: %d bytes, at most %d are read", len(raw), MaxScriptBytes)
	}
	var s Script
	var into any = &s
	if t := bytes.TrimSpace(raw); len(t) > 0 && t[0] == '[' {
		into = &s.Rules
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return Script{}, fault.New(fault.BadRequest, "drill script: %s", events.Scrub(err.Error())).
			WithHint(`a script is {"rules": [{"verb": "provision", "alias": "*", "nth": 1, "fault": "accept-then-drop"}]}`)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Script{}, fault.New(fault.BadRequest, "drill script: something follows the JSON value")
	}
	return s, s.Check()
}

// Check refuses what ParseScript refuses, for scripts that are made in code.
func (s Script) Check() error {
	if len(s.Rules) > MaxRules {
		return fault.New(fault.BadRequest, "drill script: %d rules, at most %d are accepted", len(s.Rules), MaxRules)
	}
	for i, r := range s.Rules {
		if why := r.refusal(); why != "" {
			return fault.New(fault.BadRequest, "drill script, rule %d: %s", i+1, why)
		}
	}
	return nil
}

// refusal is why a rule can't be accepted, and empty for a good one.
func (r Rule) refusal() string {
	quote := func(s string) string { return `"` + events.Scrub(s) + `"` }
	k, known := faults[r.Fault]
	switch {
	case r.Verb == "":
		return "verb is missing"
	case r.Verb != AnyVerb && !slices.Contains(Verbs, r.Verb):
		return "unknown verb " + quote(string(r.Verb))
	case r.Fault == "":
		return "fault is missing"
	case !known:
		return "unknown fault " + quote(string(r.Fault))
	case r.Verb != AnyVerb && !k.fits(r.Verb):
		return "fault " + string(r.Fault) + " has no meaning for verb " + string(r.Verb)
	case len(r.Alias) > maxGlob:
		return "alias is longer than 128 bytes"
	case r.Nth < 0 || r.Times < 0 || r.Nth > MaxCount || r.Times > MaxCount:
		return "nth and times count from 1 to 1000000000"
	case r.Nth > 0 && r.Times > 0:
		return "nth and times exclude each other"
	case r.DelayMs < 0 && r.Fault != ClockOffset:
		return "delayMs is negative; only clock-offset may go back"
	case r.DelayMs > MaxDelayMs || r.DelayMs < -MaxDelayMs:
		return "delayMs is more than a day"
	case r.DelayMs == 0 && k.needsDelay:
		return "fault " + string(r.Fault) + " needs delayMs"
	case r.DelayMs != 0 && !k.takesDelay():
		return "fault " + string(r.Fault) + " takes no delayMs"
	case r.Code != "" && k.code == "":
		return "fault " + string(r.Fault) + " takes no code"
	case r.Code != "" && !knownCode(r.Code):
		return "unknown code " + quote(string(r.Code))
	}
	if _, err := path.Match(r.Alias, "probe"); err != nil {
		return "alias " + quote(r.Alias) + " is not a glob"
	}
	return ""
}

func knownCode(c fault.Code) bool {
	return slices.ContainsFunc(fault.Table, func(r fault.Row) bool { return r.Code == c })
}

// matches says whether the rule counts this call.
func (r Rule) matches(v Verb, alias string) bool {
	if r.Verb != v && (r.Verb != AnyVerb || !faults[r.Fault].fits(v)) {
		return false
	}
	ok, err := path.Match(r.Alias, alias)
	return r.Alias == "" || err == nil && ok
}

// fires says whether the rule applies to its count-th call.
func (r Rule) fires(count int) bool {
	switch {
	case r.Nth > 0:
		return count == r.Nth
	case r.Times > 0:
		return count <= r.Times
	}
	return true
}
