//go:build !unix

package handoff

import "berth/events/fault"

// Take is refused with unimplemented: only Unix can open without following a
// link and remove what is open.
func Take(string) ([]byte, error) {
	return nil, fault.New(fault.Unimplemented, "a hand-off can't be taken on this system").WithOutcome(fault.NotExecuted)
}
