package providers

// The door of a seat: a socket at which a program in the seat asks the seat's
// manager for itself, without a network. What passes it is for the manager
// alone to understand.
const (
	EnvDoor    = "BERTH_DOOR"   // names, in a seat, the directory of the socket
	DoorSocket = "manager.sock" // in that directory
)
