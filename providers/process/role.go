//go:build linux

package process

import (
	"berth/providers/process/custodian"
	"berth/providers/process/stage"
)

// Main runs the program's hidden roles. args are the arguments without the
// program's name; handled says that this was a role, and code is its exit code.
func Main(args []string) (handled bool, code int) {
	switch {
	case len(args) == 2 && args[0] == custodian.Role:
		return true, custodian.Main(args[1])
	case len(args) == 2 && args[0] == stage.TrialRole:
		return true, stage.TrialMain(args[1])
	case len(args) == 1 && args[0] == stage.Role:
		return true, stage.Main()
	}
	return false, 0
}
