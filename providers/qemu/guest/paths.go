package guest

// Where the agent finds and puts things in the guest.
const (
	Init        = "/berth/init"    // the program, as the guest's first process
	ModulesDir  = "/berth/modules" // kernel modules, and their order
	OrderFile   = "order"          // one file name a line
	Home        = "/home/seat"
	MaterialDir = "/run/berth/material"
	PortName    = "berth"
)
