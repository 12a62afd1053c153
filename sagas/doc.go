// Package sagas drives uncertain provider operations to a proved end.
//
// A saga is a pure function from the state of the records to the next action
// (Next), declared as an ordered table of rows (Steps). A restarted engine has
// nothing to restore but the records: it folds, asks every unfinished seat
// "what next?", and goes on. The Engine is the thin runner around the kernel:
// it owns goroutines, the log, the drivers and the clock.
//
// The order of every step is the same: the event that says what will be done
// is durable (law 1), then the driver is called once under that operation id,
// then the answer is appended. A lost answer makes the operation uncertain
// (law 2), and only a proof ends that: the late answer, the provider's word on
// that id, or its word that the id can never land.
package sagas
