package events

// What a program in a seat finds in its environment, at every provider that has it.
const (
	EnvEnvironment = "BERTH_ENVIRONMENT"       // id of the environment; also the mark by which a host finds its processes
	EnvSeat        = "BERTH_SEAT"              // the name that the seat was started with
	EnvMaterial    = "BERTH_MATERIAL"          // directory of the seat's material
	EnvTranscript  = "BERTH_RESUME_TRANSCRIPT" // file of the transcript that it goes on from
	EnvDoor        = "BERTH_DOOR"              // directory of the socket at which its manager answers it
)

// What it finds in the directory of its material. The first two are public text
// of the plan, and no material: no name of material is like them.
const (
	FilePrompt  = "prompt"         // what the harness is asked first
	FilePersona = "persona"        // what it is told to be
	FileLaunch  = "launch-request" // the canonical LaunchRequest
)
