// Package checkpoint is a manager's memory of how far the log was: a small
// synced file in the data directory. A manager that finds its stream missing,
// replaced or shorter than that refuses to act (decision 6): an empty log is
// never read as an empty world.
package checkpoint
