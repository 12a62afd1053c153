// Package sim runs the kernel of the sagas through seeded histories in one
// goroutine: a log in memory, a provider that misbehaves, managers that die,
// stall and come back with clocks that were set, and clients that ask for
// anything at any time. After every history the world must converge: nothing
// that nobody owns, nothing owned twice, every reservation released, every
// goal ended and true.
//
// A seed always gives the same history, byte for byte; a failing one prints
// it. The engine's shell (goroutines, locks, files) is not here: package
// sagastest tries that out in virtual time.
package sim
