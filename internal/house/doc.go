// Package house holds the rules of the house as tests: which room may import
// which and why, what a pure package must not touch, that everything exported
// says what it is, how long a file may get, and which licences the project
// accepts. It has no code of its own for the program: `go test` on it fails
// with the rule, its reason and the place.
//
// A new room, library or exception is one line in rules.go, with its reason.
package house
