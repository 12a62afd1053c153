// Package adapter keeps the driver contract for providers that know nothing of
// it: an API of somebody else has no operation ids, no fence and no memory of
// what was asked. The adapter journals every operation on this host before
// anything is sent, sends it once, and tells three things apart:
//
//   - an id that was never sent, which the journal can exclude for ever
//   - an id that was sent and answered, whose answer is kept
//   - an id that was sent and not answered, which only the backend's
//     observations can prove landed; a list never does (R92)
//
// A call that its caller gives up goes on here, so that an answer which is
// only slow is never lost; the environment stays locked until it is there.
package adapter
