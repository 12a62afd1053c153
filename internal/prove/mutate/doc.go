// Package mutate breaks the program on purpose, one place at a time, and shows
// that a test fails for each: a law that no test defends is found here. The
// mutants are written by hand in the tables below, each with the package whose
// tests must notice.
//
// The tree is never changed: the compiler is given the broken file in place of
// the real one (go test -overlay). `go test` only checks that every mutant
// still fits the code; `make prove-mutate` runs them.
//
// It holds tests only.
package mutate
