// Package boot makes what a microVM boots: the host's kernel, unpacked once,
// and an initramfs with the agent, the kernel modules that it needs, and the
// basic programs of this host. All of it is packed here, from files that are
// there; nothing is downloaded.
package boot
