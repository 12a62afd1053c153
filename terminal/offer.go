package terminal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/gowebpki/jcs"
	"github.com/nats-io/nkeys"

	"berth/events"
	"berth/events/fault"
)

// Version of the protocol; another one is refused.
const Version = 1

// Limits of sessions.
const (
	// MaxOffer is the longest offer or redemption that is read, in bytes.
	MaxOffer = 16 << 10
	// RedeemWithin is how long an offer may be redeemed.
	RedeemWithin = time.Minute
	// MaxSession is how long a session lives; then the holder asks for another.
	MaxSession = 24 * time.Hour
	// Window is how many frames with output may be on their way unacknowledged.
	Window = 64
	// MaxFrame bounds the bytes of output or input in one frame.
	MaxFrame = 32 << 10
)

// The ends of the subjects of a session.
const (
	Redeem = "redeem" // request: the holder begins
	In     = "in"     // from the holder
	Out    = "out"    // to the holder
)

// Subject is one of a session:
// berth.<space>.terminal.<instance>.<session>.<redeem|in|out>.
func Subject(s events.Space, instance, session, end string) string {
	return "berth." + string(s) + ".terminal." + instance + "." + session + "." + end
}

// Offer is a manager's word that one holder may begin one session. It is no
// secret: only who has the holder's private key can redeem it, once.
type Offer struct {
	Version     int                  `json:"v"`
	Session     string               `json:"session"` // 52 random characters
	Space       events.Space         `json:"space"`
	Instance    events.InstanceID    `json:"instance"`
	Epoch       uint64               `json:"epoch"` // of the instance: another start refuses
	Caller      events.Caller        `json:"caller"`
	Holder      string               `json:"holder"` // public user nkey
	Owner       events.Owner         `json:"owner"`
	Name        events.Alias         `json:"name"`
	UID         events.UID           `json:"uid"`
	Environment events.EnvironmentID `json:"environment"`
	ReadOnly    bool                 `json:"readOnly"`
	Window      int                  `json:"window"`
	IssuedAt    int64                `json:"iat"`      // ms since 1970
	RedeemBy    int64                `json:"redeemBy"` // ms since 1970
	Expires     int64                `json:"exp"`      // of the session, ms since 1970
	Issuer      string               `json:"issuer"`   // public nkey of the instance
	Digest      string               `json:"digest"`   // hex SHA-256 of all above, RFC 8785
	Signature   string               `json:"sig"`      // of the digest, base64
}

// digest is of everything but itself and the signature.
func (o Offer) digest() (string, error) {
	o.Digest, o.Signature = "", ""
	b, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	canonical, err := jcs.Transform(b)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// Sign completes an offer with the key of the instance.
func (o Offer) Sign(key nkeys.KeyPair) (_ Offer, err error) {
	if o.Issuer, err = key.PublicKey(); err != nil {
		return o, err
	}
	if o.Digest, err = o.digest(); err != nil {
		return o, err
	}
	sig, err := key.Sign([]byte("berth-offer:" + o.Digest))
	o.Signature = base64.StdEncoding.EncodeToString(sig)
	return o, err
}

// Check says whether the offer is whole, signed by issuer and of this version.
func (o Offer) Check(issuer string) error {
	bad := func(why string) error {
		return fault.New(fault.PermissionDenied, "the session offer is refused: %s", why).WithOutcome(fault.NotExecuted)
	}
	if o.Version != Version {
		return fault.New(fault.UnsupportedVersion, "session offers of version %d are not known here", o.Version).WithOutcome(fault.NotExecuted)
	}
	digest, err := o.digest()
	if err != nil || digest != o.Digest {
		return bad("it was changed")
	}
	if o.Issuer != issuer || !verified(issuer, "berth-offer:"+digest, o.Signature) {
		return bad("it is not signed by this instance")
	}
	return nil
}

// Redemption is what a holder sends to begin: the offer, and the proof that it
// is its own.
type Redemption struct {
	Offer Offer  `json:"offer"`
	Proof string `json:"proof"` // signature of the holder, base64
	Rows  uint16 `json:"rows"`  // of the holder's terminal; 0 leaves the seat's as it is
	Cols  uint16 `json:"cols"`
	// Take makes the holder the writer though another session is.
	Take bool `json:"take,omitempty"`
}

// Prove signs a redemption with the holder's key.
func Prove(o Offer, holder nkeys.KeyPair) (string, error) {
	sig, err := holder.Sign([]byte("berth-redeem:" + o.Digest))
	return base64.StdEncoding.EncodeToString(sig), err
}

// CheckProof says whether the holder of the offer made the redemption.
func (r Redemption) CheckProof() error {
	if !strings.HasPrefix(r.Offer.Holder, "U") || !verified(r.Offer.Holder, "berth-redeem:"+r.Offer.Digest, r.Proof) {
		return fault.New(fault.PermissionDenied, "the session offer belongs to another holder").WithOutcome(fault.NotExecuted)
	}
	return nil
}

func verified(public, text, signature string) bool {
	key, err := nkeys.FromPublicKey(public)
	if err != nil {
		return false
	}
	sig, err := base64.StdEncoding.DecodeString(signature)
	return err == nil && key.Verify([]byte(text), sig) == nil
}
