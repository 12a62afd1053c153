// Package events is the vocabulary of Berth: ids and boundaries, the event
// types, and the codec between a commit and the bytes that are stored. It is
// pure: no clock, no randomness, no I/O.
//
// # What is stored
//
// One commit is one message: the events of one decision on one boundary. Its
// body is a JSON object with members in this order (those marked ? may be
// absent):
//
//	v            format major, 1
//	id           UUIDv7 of the commit; event i has id.At(i)
//	time         writer's clock, UTC, milliseconds
//	caller       {owner, actor, uid}
//	writer       {instance, epoch}
//	command?     id of the request, fingerprint? of its input
//	operation?   the provider operation it is about
//	trace?       W3C traceparent
//	previous     sequence of the boundary's commit before this one, 0 for the first
//	prior?       hash of that commit, base64url
//	batch?       {id, index, count, boundaries} of an atomic publish
//	events       [{"type": "environment.operation-uncertain.v1", "data": {...}}, ...]
//	hash         of this commit, base64url, always the last member
//
// # What is hashed
//
// hash = SHA-256("berth.commit.v1\n" boundary "\n" content), where content is
// the stored bytes from the first brace up to, and without, `,"hash":"…"}`.
// The bytes are hashed as they are stored, never parsed and written again, so
// a later program computes the same. A body without that ending (written by a
// stranger) hashes whole. The chain of a whole stream runs over sequence and
// hash: see ChainNext.
//
// # Types and versions
//
// Every event type is one row of the registry (registry.go) with a name and a
// version. A reader takes older versions through upcasters and refuses newer
// ones; what it can't read is told in Record.Broken with its sequence. A
// member that is not known is ignored.
package events
