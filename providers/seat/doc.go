// Package seat is what the drivers of this host's own seats have in common,
// whether a seat is a process in namespaces or a virtual machine: one
// directory for each environment with its lock and its journal, operations
// that are settled by their id (found, refused, excluded), a holder process
// that outlives the manager, observation and adoption by proved identity, the
// end and its proof, captured files. A driver embeds Base and passes in a Kind
// with what differs: how a seat is provisioned, started and captured.
package seat
