package process

import "path/filepath"

// doorName is the directory of a manager's door, beside the seats that use it.
const doorName = ".door"

// DoorDir is that directory on the host, below the directory of a driver. It is
// shown to the seats that start while it is there, and must not be replaced
// after that.
func DoorDir(dir string) string { return filepath.Join(dir, doorName) }
