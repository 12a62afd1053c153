package providers

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"berth/events"
	"berth/events/fault"
)

// CapabilityKeys is the closed set of R1, in the order of the contract.
var CapabilityKeys = []string{
	"guestBuild", "custody", "sessionHistory", "materialRenewal", "coldCheckpoint",
	"memoryCheckpoint", "nested", "pauseKeepsMemory", "snapshot", "export", "gpu",
	"durableSeatHome", "screen", "exec", "extend",
}

// MaxCapabilityBytes is the longest capability document that is read.
const MaxCapabilityBytes = 4 << 10

// CheckCapabilities reads a capability document of a provider: exactly the 15
// keys, each once (R1), booleans except extend, which is false or
// {"stepMs": n} (R2). Anything else is refused with bad-request that names
// the keys: a missing capability is not a false one.
func CheckCapabilities(raw json.RawMessage) (events.Capabilities, error) {
	var c events.Capabilities
	if len(raw) > MaxCapabilityBytes {
		return c, fault.New(fault.BadRequest, "capabilities: %d bytes, at most %d are read", len(raw), MaxCapabilityBytes)
	}
	keys, err := objectKeys(raw)
	if err != nil {
		return c, err
	}
	var missing, extra []string
	for _, k := range CapabilityKeys {
		if !slices.Contains(keys, k) {
			missing = append(missing, k)
		}
	}
	for i, k := range keys {
		if !slices.Contains(CapabilityKeys, k) || slices.Contains(keys[:i], k) {
			extra = append(extra, events.Scrub(k))
		}
	}
	if len(missing)+len(extra) > 0 {
		return c, fault.New(fault.BadRequest, "capabilities: missing keys [%s], unknown or repeated keys [%s]; a probe answers exactly the 15 keys",
			strings.Join(missing, " "), strings.Join(extra, " "))
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return c, fault.New(fault.BadRequest, "capabilities: not a JSON object")
	}
	for k, v := range values {
		if s := string(v); k != "extend" && s != "true" && s != "false" {
			return c, fault.New(fault.BadRequest, "capabilities: %s must be true or false", k)
		}
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		if e := fault.From(err); e.Code == fault.BadRequest {
			return c, e
		}
		return c, fault.New(fault.BadRequest, "capabilities: extend must be false or {\"stepMs\": a positive safe integer}")
	}
	return c, nil
}

// objectKeys lists the keys of a JSON object with repetitions, which a map
// would hide.
func objectKeys(raw []byte) ([]string, error) {
	bad := fault.New(fault.BadRequest, "capabilities: not a JSON object")
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, bad
	}
	var keys []string
	for d.More() {
		t, err := d.Token()
		k, ok := t.(string)
		if err != nil || !ok {
			return nil, bad
		}
		keys = append(keys, k)
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return nil, bad
		}
	}
	if _, err := d.Token(); err != nil || d.More() {
		return nil, bad
	}
	return keys, nil
}
