// Package wire is the provider protocol over HTTPS, as both sides speak it:
// the bodies, the paths, the limits, and the OpenAPI document that says the
// same to everybody else. It has no client and no server in it.
package wire
