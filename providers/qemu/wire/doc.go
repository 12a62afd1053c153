// Package wire is what a microVM's supervisor and the agent inside of the
// guest say to each other over a virtio port: frames of JSON, each after its
// length. Requests are numbered by the supervisor and answered by number, so
// that an answer from before a restore is never taken for another one.
//
// It imports nothing of Berth: the agent must stay small.
package wire
