// Package parsers finds every function of the program that takes bytes or text
// apart, and fails for one that no fuzz target exercises.
//
// It holds tests only.
package parsers
