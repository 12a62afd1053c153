package events

import (
	"strings"

	"github.com/cockroachdb/apd/v3"

	"berth/events/fault"
)

// Quantity is an exact decimal, at least zero, with at most 9 decimal places
// and 18 integer digits. It compares and prints canonically: 2.50 is "2.5",
// 1e3 is "1000". The zero value is 0.
//
// It stores the canonical text, so that Quantities compare with ==, copy
// freely, and marshal by value (apd.Decimal does none of these).
type Quantity struct{ text string }

// Limits of a Quantity.
const (
	MaxQuantityDigits = 18
	MaxQuantityPlaces = 9
)

// ParseQuantity reads a decimal; NaN, infinities, negatives and what exceeds
// the limits are refused.
func ParseQuantity(s string) (Quantity, error) {
	if isWhole(s) {
		return ofText(s), nil
	}
	refuse := func(why string) (Quantity, error) {
		return Quantity{}, fault.New(fault.BadRequest, "quantity %q is not valid: %s", clip(s), why)
	}
	if s == "" || len(s) > 64 {
		return refuse("a decimal of at most 64 characters")
	}
	d, cond, err := apd.NewFromString(s)
	if err != nil || cond.Any() || d.Form != apd.Finite {
		return refuse("a plain decimal number such as 0.25")
	}
	if d.Negative && !d.IsZero() {
		return refuse("it must not be negative")
	}
	if d.Exponent > MaxQuantityDigits || d.Exponent < -64 {
		return refuse("at most 18 digits before the point and 9 after it")
	}
	d.Reduce(d)
	d.Negative = false
	if int64(d.Exponent)+d.NumDigits() > MaxQuantityDigits || d.Exponent < -MaxQuantityPlaces {
		return refuse("at most 18 digits before the point and 9 after it")
	}
	return quantityOf(d), nil
}

// isWhole says that s is a whole number as it is printed, as nearly all are.
func isWhole(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return 0 < len(s) && len(s) <= MaxQuantityDigits && (s[0] != '0' || s == "0")
}

// ofText is the quantity whose text that is.
func ofText(s string) Quantity {
	if s == "0" {
		return Quantity{}
	}
	return Quantity{s}
}

// MustQuantity is ParseQuantity for constants in code.
func MustQuantity(s string) Quantity {
	q, err := ParseQuantity(s)
	if err != nil {
		panic(err)
	}
	return q
}

func quantityOf(d *apd.Decimal) Quantity {
	return ofText(d.Text('f'))
}

func (q Quantity) decimal() *apd.Decimal {
	d, _, err := apd.NewFromString(q.String())
	if err != nil {
		panic("events: a Quantity holds " + q.text)
	}
	return d
}

// String is the canonical text.
func (q Quantity) String() string {
	if q.text == "" {
		return "0"
	}
	return q.text
}

// IsZero says that q is 0.
func (q Quantity) IsZero() bool { return q.text == "" }

// Cmp is -1, 0 or 1.
func (q Quantity) Cmp(r Quantity) int {
	if q == r {
		return 0
	}
	return q.decimal().Cmp(r.decimal())
}

// Add is q + r, exactly.
func (q Quantity) Add(r Quantity) Quantity {
	if r.IsZero() {
		return q
	}
	d := new(apd.Decimal)
	if _, err := apd.BaseContext.Add(d, q.decimal(), r.decimal()); err != nil {
		panic("events: adding quantities: " + err.Error())
	}
	d.Reduce(d)
	return quantityOf(d)
}

// Sub is q - r, exactly; a result below zero is zero with ok false.
func (q Quantity) Sub(r Quantity) (_ Quantity, ok bool) {
	switch {
	case r.IsZero():
		return q, true
	case q.Cmp(r) < 0:
		return Quantity{}, false
	}
	d := new(apd.Decimal)
	if _, err := apd.BaseContext.Sub(d, q.decimal(), r.decimal()); err != nil {
		panic("events: subtracting quantities: " + err.Error())
	}
	d.Reduce(d)
	return quantityOf(d), true
}

// MarshalText writes the canonical text.
func (q Quantity) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText reads what ParseQuantity accepts.
func (q *Quantity) UnmarshalText(b []byte) error {
	p, err := ParseQuantity(string(b))
	if err != nil {
		return err
	}
	*q = p
	return nil
}

// ExtendLimit is the `extend` capability: false, or an object with the
// largest growth of one call, {"stepMs": n} (R2).
type ExtendLimit struct{ StepMs int64 }

// MarshalJSON writes false or {"stepMs": n}.
func (e ExtendLimit) MarshalJSON() ([]byte, error) {
	if e.StepMs <= 0 {
		return []byte("false"), nil
	}
	return marshalStep(e.StepMs), nil
}

// UnmarshalJSON accepts exactly what MarshalJSON writes, with stepMs a
// positive safe integer.
func (e *ExtendLimit) UnmarshalJSON(b []byte) error {
	s := strings.TrimSpace(string(b))
	if s == "false" {
		*e = ExtendLimit{}
		return nil
	}
	n, err := unmarshalStep(b)
	if err != nil {
		return err
	}
	*e = ExtendLimit{StepMs: n}
	return nil
}
