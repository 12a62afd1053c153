// Package process is the embedded provider: each seat is a process in its own
// namespaces and root filesystem, under a custodian process that outlives the
// manager. Nothing but the program itself has to be installed: it re-executes
// itself as custodian and as stage, so that whoever embeds this driver calls
// Main first, before flags are read.
//
// What the host does not offer is a failed check of the preflight (R8). A plan
// may choose less by name, with the options isolation=none and limits=none;
// nothing is ever downgraded silently.
package process
