// Package drill is a provider of simulated environments, for rehearsing
// incidents and for tests (decision 19). It keeps the whole contract (fence,
// idempotent operation ids, epochs, bounded extension, expiry of its own) and
// misbehaves exactly where a Script says so.
//
// Machine is the provider as a pure state machine: every call carries the
// time, and late landings and expiry are evaluated from timestamps when the
// next call arrives. It has no clock, no I/O and no goroutine, so that a
// simulation replays exactly.
//
// Driver is the shell around it: a durable journal of the calls under a
// directory of its own, independent of the manager as a remote provider would
// be, and readable by ReadStatus while the manager is down.
package drill
