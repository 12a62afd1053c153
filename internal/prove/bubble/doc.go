// Package bubble proves what depends on time against the real JetStream: the
// whole manager but its HTTP listener (server, log, projections, engine, command
// plane, service, client) runs inside a bubble of testing/synctest, where time
// is virtual. Deadlines of minutes and lifetimes of hours cost milliseconds,
// and nothing depends on how busy the machine is.
//
// It holds tests only. Four rules keep a bubble whole: every connection is in
// process; the server's process-wide clock is held by TestMain so that it
// belongs to no bubble; the process-wide pools of timers are emptied before
// each bubble; and whatever was started has ended before the bubble does,
// which synctest itself checks.
package bubble
