// Package seatdir is the directory of one environment, seats/<environment
// id>/: the journal of its operations, the files by which driver and custodian
// agree, and the lock that fences them (decision 16). Whoever changes anything
// holds the lock; every file is replaced whole, synced before it is named.
//
// After a destroy only the journal and the lock file remain: the tombstone.
package seatdir
