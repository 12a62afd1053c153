// Package hosted is the driver of a provider on another machine: the client
// of the provider protocol over HTTPS, which package wire describes and
// package server answers.
//
// A mutation is sent once. Only a typed answer with the operation's own id
// decides anything; every other end of a call (a cut, a timeout, a status that
// is not 2xx, a body that can't be read) is unknown, and the same id is
// reconciled (R32, R86). Nothing is repeated by the transport, no redirect is
// followed (R49), and the bearer and the key are in no error.
//
// What it can't do: export to a host path, which would be a path of the other
// machine; adopt, which the other side does after its own restart.
package hosted
