//go:build !unix

package cli

import "berth/events/fault"

// become is refused: only Unix can replace a process.
func become([]string, []byte) error {
	return fault.New(fault.Unimplemented, "a delegated seat can't begin on this system").WithOutcome(fault.NotExecuted)
}
