// Package server puts any driver behind the provider protocol over HTTPS: one
// manager drives another machine.
//
// It keeps a journal of its own on a log, a boundary for each environment. An
// operation is in it, durable, before the driver hears of it (law 1), and
// accepted once by compare-and-append, also where two servers have one log
// (law 3). Its answer is kept as long as the log is, so that the same id gets
// the same answer for ever, and the same id with other arguments a conflict. A
// call goes on when its connection is cut. An operation that a crash left
// without an answer is never run again: the driver's Reconcile and Exclude say
// what became of it. What was fenced before it arrived is refused when it
// arrives.
//
// Deadlines of environments are enforced by the driver, whether the server
// runs or not. Where the driver has none the server does it: it stops what is
// over by an operation of its own, journaled like any, also after a restart.
package server
