package guest

// Where the agent finds and puts things in the guest.
const (
	Init        = "/berth/init"    // the program, as the guest's first process
	ModulesDir  = "/berth/modules" // kernel modules, and their order
	OrderFile   = "order"          // one file name a line
	NetworkFile = "order.network"  // the same, of the network card
	Home        = "/home/seat"
	MaterialDir = "/run/berth/material"
	DoorDir     = "/run/berth/door" // of the socket of the seat's manager
	PortName    = "berth"
)

// The network of a guest, which QEMU itself plays: addresses are translated on
// the way out, and nothing comes in.
const (
	NetworkFlag = "berth.network=user" // on the kernel's command line
	Address     = "10.0.2.15"          // of the guest, in a network of 255.255.255.0
	Gateway     = "10.0.2.2"           // the host, also its loopback
	Nameserver  = "10.0.2.3"
)
