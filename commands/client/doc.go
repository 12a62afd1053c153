// Package client calls the command plane over NATS: typed calls, waits without
// polling, downloads that are verified, and logs and events that are followed.
//
// Every error is a *fault.Error whose outcome is never better than what is
// known: silence after a request was sent is unknown (E8), and a write is sent
// again only on proof that it was not executed (E9).
package client
