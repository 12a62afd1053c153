// Package service binds the command plane to NATS: one micro endpoint for
// every command and target, bounded handlers, and replies that go only where a
// client waits for them.
package service
