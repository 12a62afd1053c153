//go:build linux

package qemu

import (
	"os"

	"berth/providers/qemu/guest"
	"berth/providers/qemu/machine"
)

// Main runs the program's hidden roles: the agent, where the program is the
// first process of a guest, and the supervisor of a machine. args are the
// arguments without the program's name; handled says that this was a role.
func Main(args []string) (handled bool, code int) {
	switch {
	case guest.IsInit(os.Args[0]):
		return true, guest.Main()
	case len(args) == 2 && args[0] == machine.Role:
		return true, machine.Main(args[1])
	case len(args) == 2 && args[0] == machine.TrialRole:
		return true, machine.TrialMain(args[1])
	}
	return false, 0
}
