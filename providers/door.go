package providers

// DoorSocket is the door of a seat: the socket, in the directory that
// events.EnvDoor names, at which a program in the seat asks the seat's manager
// for itself, without a network. What passes it is for the manager alone to
// understand.
const DoorSocket = "manager.sock"
