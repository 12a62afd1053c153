// Package verify proves that nothing of a log was changed, removed or put in
// between: it computes every hash again, follows the chain of each boundary
// and of the whole stream, and checks the checkpoints that managers signed.
//
// The chain alone shows changes by somebody who did not compute it again; the
// signatures show changes by anybody who does not have a manager's key. The
// public keys are in the log too, so whoever wants proof against a rewritten
// log brings the keys that he knows (Options.Trusted).
package verify
