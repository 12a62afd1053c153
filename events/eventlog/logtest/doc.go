// Package logtest is the conformance suite of the log. Every implementation
// runs it whole; what it asserts is what the rest of Berth relies on.
package logtest
