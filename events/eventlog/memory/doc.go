// Package memory is the log in memory: the same promises as the stream, for
// tests and for the seeded simulation, with hooks that make an append fail
// before or after it is stored. Every commit goes through the codec, so that
// what can't be stored fails here too.
package memory
