package events

// ---- persona.<owner>

// PersonaDefined gives a persona its content, in place of what it had. It is
// content only: nothing is allowed or limited by it.
type PersonaDefined struct {
	Name  Alias  `json:"name"`
	Text  string `json:"text"`
	Model string `json:"model,omitempty"`
}

// PersonaRemoved takes a persona out of the catalog. What was spawned as it
// goes on.
type PersonaRemoved struct {
	Name Alias `json:"name"`
}
