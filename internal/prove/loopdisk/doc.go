// Package loopdisk gives a test a disk whose power can be cut: an ext4 file
// system in a file, on a loop device, that is shut down without flushing
// (EXT4_IOC_SHUTDOWN with NOLOGFLUSH). What was not synced is gone after that,
// data and metadata alike, as after a loss of power; a disk that lies about
// its cache is not modelled.
//
// It needs root, loop devices and mkfs.ext4; a test is skipped with the reason
// where one is missing. The test runs again in a process with a mount
// namespace of its own: its mounts and loop devices go with it, however it
// ends, and no other process keeps a copy of a mount that was shut down.
package loopdisk
