// Package machine is a microVM under its supervisor: a small process of ours
// that starts QEMU, is the only client of its monitor and of its agent, ends
// it at its deadline, and outlives the manager. A supervisor answers the same
// requests as the custodian of a process, and more.
//
// It is Linux only; elsewhere the package is empty.
package machine
