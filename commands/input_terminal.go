package commands

import "unicode/utf8"

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
