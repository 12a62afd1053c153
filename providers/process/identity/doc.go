// Package identity proves which process is which: by boot id, pid, start time
// and pidfd, never by a pid alone. A pid is reused, a zombie still answers
// signal 0, and a machine that was restarted knows none of its old processes.
package identity
