// Package qemu is the provider of local microVMs: each seat is a command in a
// virtual machine of its own, under a supervisor process that outlives the
// manager. It needs QEMU and a kernel of this host, and nothing else: the
// program itself is the agent inside of the guest. Whoever embeds this driver
// calls Main first, before flags are read.
//
// Machines run under emulation (TCG). What a guest writes is in its memory: a
// checkpoint keeps it, the end of the machine does not.
package qemu
