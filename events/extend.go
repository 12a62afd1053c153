package events

import (
	"bytes"
	"encoding/json"
	"strconv"

	"berth/events/fault"
)

// MaxSafeInteger is the largest integer that every JSON reader keeps exactly.
const MaxSafeInteger = 1<<53 - 1

func marshalStep(n int64) []byte {
	return []byte(`{"stepMs":` + strconv.FormatInt(n, 10) + `}`)
}

func unmarshalStep(b []byte) (int64, error) {
	var v struct {
		StepMs int64 `json:"stepMs"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil || v.StepMs < 1 || v.StepMs > MaxSafeInteger {
		return 0, fault.New(fault.BadRequest, "capability extend must be false or {\"stepMs\": a positive safe integer}")
	}
	return v.StepMs, nil
}
