package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"berth/events/fault"
)

// Format is the major version of the stored body (decision 7).
const Format = 1

// timeLayout keeps exactly milliseconds, so that every record is as long as it says.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Encode writes a commit's body with its hash. prior is the hash of the
// boundary's commit at c.Expect, zero for the first. batch is nil outside an
// atomic publish. An unregistered event or one that JSON can't hold is refused
// with bad-request.
func Encode(c Commit, prior Hash, batch *Batch) ([]byte, Hash, error) {
	scratch := bodies.Get().(*[]byte)
	defer bodies.Put(scratch)
	b := append((*scratch)[:0], `{"v":`...)
	b = strconv.AppendInt(b, Format, 10)
	b = member(b, "id", string(c.Meta.ID))
	b = append(b, `,"time":"`...)
	b = MillisUTC(c.Meta.Time).AppendFormat(b, timeLayout)
	b = append(b, `","caller":{"owner":`...)
	b = quote(b, string(c.Meta.Caller.Owner))
	b = member(b, "actor", string(c.Meta.Caller.Actor))
	b = member(b, "uid", string(c.Meta.Caller.UID))
	b = append(b, `},"writer":{"instance":`...)
	b = quote(b, string(c.Meta.Writer.Instance))
	b = append(b, `,"epoch":`...)
	b = strconv.AppendUint(b, c.Meta.Writer.Epoch, 10)
	b = append(b, '}')
	b = optional(b, "command", string(c.Meta.Command))
	b = optional(b, "fingerprint", c.Meta.Fingerprint)
	b = optional(b, "operation", string(c.Meta.Operation))
	b = optional(b, "trace", c.Meta.Trace)
	b = append(b, `,"previous":`...)
	b = strconv.AppendUint(b, c.Expect, 10)
	if !prior.IsZero() {
		b = append(prior.append(append(b, `,"prior":"`...)), '"')
	}
	if batch != nil {
		t, err := json.Marshal(batch)
		if err != nil {
			return nil, Hash{}, fault.New(fault.BadRequest, "the batch can't be written as JSON: %s", err)
		}
		b = append(append(b, `,"batch":`...), t...)
	}
	b, err := appendEvents(b, c.Events)
	if err != nil {
		return nil, Hash{}, err
	}
	h := hashContent(c.Boundary, b)
	b = append(h.append(append(b, hashMember...)), '"', '}')
	*scratch = b
	return slices.Clone(b), h, nil
}

// bodies are buffers to write in: what is kept of one is as large as it has to
// be, and none grows for each commit anew.
var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

func appendEvents(b []byte, es []Event) ([]byte, error) {
	b = append(b, `,"events":[`...)
	for i, e := range es {
		typ, err := VersionedType(e)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":`...)
		b = quote(b, typ)
		b = append(b, `,"data":`...)
		if fast, ok := writeEvent(b, e); ok {
			b = append(fast, '}')
			continue
		}
		data, err := json.Marshal(e)
		if err != nil {
			return nil, fault.New(fault.BadRequest, "event %s can't be written as JSON: %s", typ, Scrub(err.Error()))
		}
		b = append(append(b, data...), '}')
	}
	return append(b, ']'), nil
}

func optional(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return member(b, name, value)
}

func member(b []byte, name, value string) []byte {
	b = append(append(append(b, ',', '"'), name...), '"', ':')
	return quote(b, value)
}

// quote writes s as a JSON string; only unusual text costs a call of the library.
func quote(b []byte, s string) []byte {
	for i := range len(s) {
		if unusual[s[i]]&escaped != 0 {
			t, _ := json.Marshal(s) // a string can always be written
			return append(b, t...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// What is unusual in a string: bytes that the library writes otherwise, or of
// which only it is sure, and bytes that are not themselves when they are read.
const (
	escaped = 1 << iota
	unread
)

var unusual = func() (t [256]byte) {
	for c := range t {
		if c < ' ' || c >= 0x7f || c == '\\' {
			t[c] = escaped | unread
		}
	}
	for _, c := range `"<>&` {
		t[c] |= escaped
	}
	return t
}()

// envelope is a body as any JSON reader sees it.
type envelope struct {
	V           int         `json:"v"`
	ID          EventID     `json:"id"`
	Time        time.Time   `json:"time"`
	Caller      Caller      `json:"caller"`
	Writer      Writer      `json:"writer"`
	Command     CommandID   `json:"command"`
	Fingerprint string      `json:"fingerprint"`
	Operation   OperationID `json:"operation"`
	Trace       string      `json:"trace"`
	Previous    uint64      `json:"previous"`
	Prior       Hash        `json:"prior"`
	Batch       *Batch      `json:"batch"`
	Events      []stored    `json:"events"`
}

type stored struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// ParseRecord reads a stored body. It never fails: what can't be read is told
// in Broken, a *fault.Error that names boundary, sequence and type; Hash is
// computed from the bytes whatever they are. It keeps nothing of body.
func ParseRecord(b Boundary, sequence uint64, body []byte) Record {
	h, matches := HashOf(b, body)
	return reread(b, sequence, body, h, matches)
}

// Reread is ParseRecord of a body that Encode has just made on that boundary,
// with the hash that it made: that one is not computed again.
func Reread(b Boundary, sequence uint64, body []byte, made Hash) Record {
	return reread(b, sequence, body, made, true)
}

func reread(b Boundary, sequence uint64, body []byte, h Hash, matches bool) Record {
	r := Record{Sequence: sequence, Boundary: b, Hash: h}
	env, ok := scanEnvelope(body)
	if !ok {
		env = envelope{}
		if err := unmarshal(body, &env); err != nil {
			r.Broken = broken(r, fault.Internal, "its body is not a commit: %s", Scrub(err.Error()))
			return r
		}
	}
	r.Meta = Meta{ID: env.ID, Time: env.Time, Caller: env.Caller, Writer: env.Writer, Command: env.Command,
		Fingerprint: env.Fingerprint, Operation: env.Operation, Trace: env.Trace}
	r.Previous, r.Prior, r.Batch = env.Previous, env.Prior, env.Batch
	switch {
	case env.V > Format:
		r.Broken = broken(r, fault.UnsupportedVersion, "its format %d is newer than %d; use a newer berth", env.V, Format)
		return r
	case env.V < 1 || len(env.Events) == 0 || env.ID == "":
		r.Broken = broken(r, fault.Internal, "its body is not a commit: v, id or events are missing")
		return r
	case !matches:
		r.Broken = broken(r, fault.Internal, "its hash is not that of its bytes: it was damaged or changed")
		return r
	}
	r.Events = make([]Event, 0, len(env.Events))
	for _, s := range env.Events {
		e, err := Decode(s.Type, s.Data)
		if err != nil {
			f := fault.From(err)
			r.Broken = broken(r, f.Code, "%s", f.Message)
			return r
		}
		r.Events = append(r.Events, e)
	}
	return r
}

// IsBroken says that err is that of an unreadable record.
func IsBroken(err error) bool {
	var f *fault.Error
	if !errors.As(err, &f) {
		return false
	}
	for _, d := range f.Details {
		if d.Kind == "berth.record-broken" {
			return true
		}
	}
	return false
}

func broken(r Record, code fault.Code, format string, args ...any) error {
	return fault.New(code, "record %d of %s can't be read: %s", r.Sequence, clip(string(r.Boundary)), fmt.Sprintf(format, args...)).
		WithOutcome(fault.NotExecuted).
		WithDetail("berth.record-broken", "sequence", strconv.FormatUint(r.Sequence, 10), "boundary", string(r.Boundary))
}
