// Package guest is the agent inside of a microVM: the first process of the
// guest, which is the program itself in another role. It loads the kernel's
// modules, opens the virtio port, and does what the machine's supervisor asks.
//
// It runs on Linux only; elsewhere the package has the names of its paths.
package guest
