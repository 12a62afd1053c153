// Package attach is the manager's end of terminal sessions: it lets a holder
// redeem an offer once, and carries frames between the session's subjects and
// the seat's terminal.
package attach
