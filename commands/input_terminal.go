package commands

import (
	"unicode/utf8"

	"github.com/nats-io/nkeys"
)

// InputInput is a text to type into a seat's terminal. It may be a secret: it
// enters no event, no log and no error.
type InputInput struct {
	Named
	Text    string `json:"text" doc:"1 to 65536 bytes, typed as they are" max:"65536"`
	NoEnter bool   `json:"noEnter,omitzero" doc:"do not press Enter after it"`
}

// Check implements Input.
func (in InputInput) Check() error {
	if err := in.Named.Check(); err != nil {
		return err
	}
	switch {
	case in.Text == "":
		return bad("text", "there is nothing to type")
	case len(in.Text) > MaxText:
		return bad("text", "it has %d bytes; at most %d are typed at a time", len(in.Text), MaxText)
	case !utf8.ValidString(in.Text):
		return bad("text", "it is not valid UTF-8")
	}
	return nil
}

// Bytes is what is typed.
func (in InputInput) Bytes() []byte {
	b := []byte(in.Text)
	if !in.NoEnter {
		b = append(b, '\r')
	}
	return b
}

// AttachInput asks for an offer of a terminal session.
type AttachInput struct {
	Named
	Holder   string `json:"holder" doc:"public user nkey of who will redeem it" pattern:"^U[A-Z2-7]{55}$"`
	ReadOnly bool   `json:"readOnly,omitzero" doc:"look, and do not type"`
}

// Check implements Input.
func (in AttachInput) Check() error {
	if err := in.Named.Check(); err != nil {
		return err
	}
	if !nkeys.IsValidPublicUserKey(in.Holder) {
		return bad("holder", "it is not the public key of a user nkey")
	}
	return nil
}
