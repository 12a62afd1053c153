//go:build !unix

package drill

import (
	"os"

	"berth/events/fault"
)

// lock refuses: without flock a second manager could not be kept out.
func lock(dir string) (*os.File, error) {
	return nil, fault.New(fault.Unimplemented, "the drill provider needs file locks that this system does not have")
}
