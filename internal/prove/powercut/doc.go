// Package powercut proves durability of the whole manager: `berth up` runs in
// a process of its own with its data directory on a disk whose power is cut
// (package loopdisk) while clients work, and which stands still from the moment
// before; then the disk comes back and the manager is started again.
//
// After each cut, in the strict and in the group profile, with the log's blocks
// compressed and not: every event and every answer that a client had before the
// cut is there; no call to the provider, whose own state is on another disk,
// lacks the event of its intent; what was open converges; and `berth replay --verify` and `berth verify` find nothing.
//
// It holds tests only. By default each profile gets one cut, one of them
// uncompressed; with BERTH_PROVE=1 (make prove-powercut) all four get twenty, at
// random moments of a random load.
package powercut
