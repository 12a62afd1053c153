package verify

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nkeys"

	"berth/events"
	"berth/events/eventlog"
)

// MaxProblems bounds a report; Report.More counts the rest.
const MaxProblems = 100

// Options says what to check against.
type Options struct {
	// Trusted maps instances to the public keys that the caller knows. An
	// instance that is not in it is checked against the key in the log.
	Trusted map[events.InstanceID]string
	// Limit ends the check after so many records, counted from the first; zero
	// is no limit. Report.Tip says how far it went.
	Limit uint64
}

// errEnough ends a scan at the limit.
var errEnough = errors.New("enough was read")

// upTo stops a scan after the limit.
func (o Options) upTo(fn func(events.Record) error) func(events.Record) error {
	if o.Limit == 0 {
		return fn
	}
	return func(r events.Record) error {
		if r.Sequence > o.Limit {
			return errEnough
		}
		return fn(r)
	}
}

// scan reads a log up to the limit.
func (o Options) scan(ctx context.Context, l eventlog.Log, fn func(events.Record) error) error {
	err := l.Scan(ctx, 0, o.upTo(fn))
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Problem is one thing that does not hold.
type Problem struct {
	Sequence uint64          `json:"sequence"`
	Boundary events.Boundary `json:"boundary"`
	Text     string          `json:"text"`
}

// Report is what was found.
type Report struct {
	Tip        uint64      `json:"tip"`
	Chain      events.Hash `json:"chain"`
	Boundaries int         `json:"boundaries"`
	Events     uint64      `json:"events"`
	// Signatures that hold, and the highest sequence that one of them covers:
	// what was appended after it is proved by the chain alone.
	Signatures int       `json:"signatures"`
	Signed     uint64    `json:"signedThrough"`
	Torn       int       `json:"torn"` // members of incomplete atomic publishes
	Problems   []Problem `json:"problems"`
	More       int       `json:"moreProblems"`
}

// OK says that nothing is wrong.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

func (r *Report) problem(rec events.Record, format string, args ...any) {
	if len(r.Problems) >= MaxProblems {
		r.More++
		return
	}
	r.Problems = append(r.Problems, Problem{rec.Sequence, rec.Boundary, fmt.Sprintf(format, args...)})
}

// Log verifies a log, the whole of it or as far as the limit goes. An error says that it could not be read to the
// end; what is wrong with it is in the report. It reads the log twice, and
// keeps about 150 bytes for each boundary.
func Log(ctx context.Context, l eventlog.Log, o Options) (Report, error) {
	claims, err := collect(ctx, l, o)
	if err != nil {
		return Report{}, err
	}
	w := walker{last: map[events.Boundary]link{}, claims: claims}
	err = o.scan(ctx, l, w.add)
	w.report.Boundaries = len(w.last)
	for through, cs := range w.claims {
		for _, c := range cs {
			w.report.problem(c.record, "the signed checkpoint is of record %d, which is not there", through)
		}
	}
	return w.report, err
}

// claim is one signed checkpoint and the key it is held to.
type claim struct {
	record events.Record
	signed events.ChainSigned
	key    string
}

// collect finds the signed checkpoints by the sequence that they are about.
func collect(ctx context.Context, l eventlog.Log, o Options) (map[uint64][]claim, error) {
	keys := map[events.InstanceID]string{}
	claims := map[uint64][]claim{}
	err := o.scan(ctx, l, func(r events.Record) error {
		for _, e := range r.Events {
			switch e := e.(type) {
			case events.InstanceRegistered:
				keys[e.Instance] = e.PublicKey
			case events.ChainSigned:
				key, ok := o.Trusted[e.Instance]
				if !ok {
					key = keys[e.Instance]
				}
				claims[e.Through] = append(claims[e.Through], claim{r, e, key})
			}
		}
		return nil
	})
	return claims, err
}

type link struct {
	sequence uint64
	hash     events.Hash
}

type walker struct {
	report Report
	last   map[events.Boundary]link
	claims map[uint64][]claim
}

func (w *walker) add(r events.Record) error {
	rep := &w.report
	if r.Sequence != rep.Tip+1 {
		rep.problem(r, "records %d to %d are missing", rep.Tip+1, r.Sequence-1)
	}
	if r.Broken != nil {
		rep.problem(r, "%s", r.Broken)
	}
	if r.Torn {
		rep.Torn++
	}
	prior := w.last[r.Boundary]
	if r.Broken == nil && (r.Previous != prior.sequence || r.Prior != prior.hash) {
		rep.problem(r, "it follows a record %d that is not the one before it (%d)", r.Previous, prior.sequence)
	}
	w.last[r.Boundary] = link{r.Sequence, r.Hash}
	rep.Tip, rep.Chain = r.Sequence, events.ChainNext(rep.Chain, r.Sequence, r.Hash)
	rep.Events += uint64(len(r.Events))
	for _, c := range w.claims[r.Sequence] {
		w.check(c)
	}
	delete(w.claims, r.Sequence)
	return nil
}

// check holds one signed checkpoint against the chain at its sequence.
func (w *walker) check(c claim) {
	rep := &w.report
	switch {
	case c.signed.Through >= c.record.Sequence:
		rep.problem(c.record, "the signed checkpoint is of record %d, which comes after it", c.signed.Through)
	case c.signed.Chain != rep.Chain:
		rep.problem(c.record, "the signed checkpoint of record %d is not that of this log: something before it was changed or removed", c.signed.Through)
	case !holds(c):
		rep.problem(c.record, "the signature of instance %s does not hold", c.signed.Instance)
	default:
		rep.Signatures++
		rep.Signed = max(rep.Signed, c.signed.Through)
	}
}

func holds(c claim) bool {
	key, err := nkeys.FromPublicKey(c.key)
	if err != nil {
		return false
	}
	sig, err := base64.RawURLEncoding.Strict().DecodeString(c.signed.Signature)
	return err == nil && key.Verify(text(c.signed), sig) == nil
}

// text is what is signed.
func text(s events.ChainSigned) []byte {
	return []byte("berth.chain.v1\n" + string(s.Instance) + "\n" + strconv.FormatUint(s.Through, 10) + "\n" + s.Chain.String())
}

// Sign makes the checkpoint event of an instance for the chain up to a
// sequence, to be committed on the instance's boundary.
func Sign(key nkeys.KeyPair, instance events.InstanceID, through uint64, chain events.Hash) (events.ChainSigned, error) {
	s := events.ChainSigned{Instance: instance, Through: through, Chain: chain}
	sig, err := key.Sign(text(s))
	if err != nil {
		return events.ChainSigned{}, err
	}
	s.Signature = base64.RawURLEncoding.EncodeToString(sig)
	return s, nil
}
