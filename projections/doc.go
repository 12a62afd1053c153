// Package projections folds the log for readers: the fleet, slots, goals,
// hosts with their headroom, usage, and what is quarantined. Views is the
// folds as a value, Runner keeps one Views at the tip of a log and publishes
// it safely, and History tells one boundary's story from the log.
//
// Nothing here is a second truth (law 4): everything can be deleted and
// rebuilt, and a rebuild equals what was folded step by step. No fold reads a
// clock: what depends on the time takes it as an argument.
//
// # What is held in memory
//
// A seat that is held keeps its whole aggregate. A lifecycle that has ended
// is packed into a few dozen bytes, from which `ls --all` and usage are
// answered; its story stays in the log. Ended goals are kept up to
// MaxEndedGoals; older ones are answered by loading their boundary.
package projections
