// Package commands is the contract of the command plane: one table of
// commands with their kinds, targets, modes, capabilities, inputs, outputs,
// refusals and timeouts (Table), the wire types, the subject grammar and the
// strict decoding of requests. JSON Schemas, `describe`, docs/commands.md and
// the help texts of the program are generated from the table.
//
// The rooms below it: package plane has the handlers, package service binds
// them to NATS, package client calls them.
//
// # Wire
//
// A request is one message to the subject of its command (Subject) with a
// Request as payload; the answer is one Reply. The caller is who the subject
// says it is: the broker lets nobody else publish there. A reply comes after
// what it says is durable, and a refusal says whether anything was executed.
package commands
