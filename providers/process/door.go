package process

import "path/filepath"

// EnvDoor names, in a seat, the directory of the socket at which its manager
// answers it.
const EnvDoor = "BERTH_DOOR"

// doorName is that directory, beside the seats that use it.
const doorName = ".door"

// DoorDir is the directory of that socket on the host, below the directory of a
// driver. It is shown to the seats that start while it is there, and must not be
// replaced after that.
func DoorDir(dir string) string { return filepath.Join(dir, doorName) }
