// Package scenario holds the table that says which test shows each of the
// scenarios in docs/scenarios.md, and the stories that no other package shows.
// A scenario that loses a test fails here, and the table in the docs is
// generated from the one in the code.
//
// It holds tests only. The stories run in virtual time on the memory log and
// the drill provider.
package scenario
