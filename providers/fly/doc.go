// Package fly is an adapter to the Fly Machines API. It translates the driver
// contract as far as that API can keep it, sends every change once, and says
// which outcomes stay uncertain: docs/fly.md is its list of what it can't
// prove.
package fly
