// Package stage is the last step before a seat's command: it runs as the
// first process in the seat's namespaces, builds the root filesystem, gives
// every privilege up and executes the command. It is reached by re-executing
// the program as `berth __seat`, with its orders on file descriptor 3 and its
// complaints on 4.
package stage
