package house

// module is the path of this module; a room is the first element below it.
const module = "berth"

// Limits on shape, in lines.
const (
	maxFileLines     = 400
	maxTestFileLines = 600
	maxFuncLines     = 80
	maxMapBytes      = 10 << 10 // ARCHITECTURE.md
)

// arrow is what one room may import of the others, and why no more.
type arrow struct {
	may []string // rooms; a room means all of its packages unless a row of narrow says less
	why string
}

// arrows has a row for every room: imports point down only (blueprint section
// 3, decision 20). The root package is the room ".".
var arrows = map[string]arrow{
	"events":      {nil, "the vocabulary is the bottom: a log written today must be readable with nothing else of Berth"},
	"aggregates":  {[]string{"events"}, "decisions are pure functions of folded events; they can't know who asks or who acts"},
	"providers":   {[]string{"events", "internal"}, "a driver speaks to one kind of provider and must be usable without the engine; it gets ids and value types only"},
	"sagas":       {[]string{"events", "aggregates", "providers", "internal"}, "the engine drives any driver through the contract, and must run in a simulation without the wire"},
	"projections": {[]string{"events", "aggregates", "internal"}, "a reader's fold that could reach the engine would become a second truth (law 4)"},
	"terminal":    {[]string{"events", "internal"}, "a custodian outlives the manager and must not depend on it"},
	"authority":   {[]string{"events", "aggregates", "internal"}, "trust is decided from records, never from the handlers it guards"},
	"commands":    {[]string{"events", "aggregates", "providers", "sagas", "projections", "terminal", "authority", "internal"}, "the wire knows the engine; the engine never knows the wire"},
	"web":         {[]string{"events", "projections", "commands", "internal"}, "the dashboard is a client: it reads projections and sends commands"},
	"internal":    {[]string{"events", "internal"}, "what every room may use stands below every room"},
	".":           {[]string{"events", "aggregates", "providers", "sagas", "projections", "terminal", "authority", "commands", "web", "internal"}, "the composition root is the one place that knows everything; nothing but the program stands above it"},
	"cmd":         {[]string{".", "events", "aggregates", "providers", "sagas", "projections", "terminal", "authority", "commands", "web", "internal"}, "arguments in, one call down, output out"},
	"testscripts": {[]string{".", "cmd", "events", "providers", "internal"}, "scenarios drive the program from outside"},
}

// wider lists what single packages may import beyond the row of their room.
var wider = []struct{ pkg, im, why string }{
	{"berth/events/eventlog/checkpoint", "berth/internal/durable", "it is a file of the manager, not of the vocabulary, and there is one way to write a file that survives a power cut"},
}

// narrow lists packages that only some importers may use, by import path with
// everything below it.
var narrow = []struct {
	path string
	by   []string // rooms or package paths
	why  string
}{
	{"berth/providers/", []string{"providers", ".", "cmd", "testscripts"}, "only the composition root chooses drivers; everything else speaks to the contract in package providers (decision 20)"},
	{"berth/events/eventlog/stream", []string{"berth/events/eventlog", ".", "cmd"}, "everything else works on eventlog.Log, so that the memory log can stand in for it"},
	{"berth/events/eventlog/memory", []string{"berth/events/eventlog", ".", "cmd"}, "a log that forgets is for tests, rehearsals and dry runs, which the composition root chooses"},
	{"berth/internal/house", nil, "the house rules are tests and nothing else"},
}

// top lists packages under internal that belong to the program and the
// composition root: they may import what the program may, and only these and
// each other may import them.
var top = map[string]string{
	"berth/internal/embedded": "starts the embedded server",
	"berth/internal/cli":      "is the program's command line",
	"berth/internal/bench":    "measures the assembled manager beside the raw server",
	"berth/internal/doctor":   "looks at everything",
}

// serverImporters may import nats-server outside tests. Everybody else works
// on a connection, so that an embedded and an external server are the same.
var serverImporters = []string{"berth", "berth/internal/embedded", "berth/internal/bench"}

// purePackages are the trees of functions from state to state: the same input
// gives the same output in production, in the simulation and in replay.
var purePackages = []string{"berth/events", "berth/aggregates"}

// notPure are trees below purePackages that are rooms with I/O of their own.
var notPure = []string{"berth/events/eventlog"}

// pureForbidden are imports that a pure package must not have: a path with
// everything below it, and why.
var pureForbidden = map[string]string{
	"context":     "nothing in it waits",
	"crypto/rand": "randomness comes in with the command",
	"math/rand":   "randomness comes in with the command",
	"net":         "no I/O",
	"os":          "no I/O and no environment",
	"syscall":     "no I/O",
	"io/ioutil":   "no I/O",
	"log":         "it returns what there is to say",
	"runtime":     "the same on every host",
	"unsafe":      "the same on every host",
	"testing":     "not for the program",
}

// pureAllowed are packages below a forbidden path that only parse text.
var pureAllowed = []string{"net/url", "net/netip"}

// pureThirdParty are the only libraries that pure packages may import.
var pureThirdParty = map[string]string{
	"github.com/google/uuid":             "parsing and formatting of ids",
	"github.com/cockroachdb/apd/v3":      "exact decimals",
	"github.com/go-json-experiment/json": "decoding events at replay speed",
	"github.com/gowebpki/jcs":            "canonical JSON for fingerprints",
}

// pureMarkedMay are imports that a single file with the line //house:pure may
// have beside: its package has a shell, and types of it are in reach.
var pureMarkedMay = []string{"context", "math/rand/v2"}

// pureCalls are selectors that a pure package must not use, by import path.
var pureCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Local"},
	"github.com/google/uuid": {"New", "NewString", "NewRandom", "NewRandomFromReader", "NewUUID", "NewV6", "NewV7",
		"NewV7FromReader", "NewDCESecurity", "NewDCEGroup", "NewDCEPerson", "SetRand", "EnableRandPool"},
}

// licences accepted in the program, and those accepted in tests only.
var (
	licencesShipped  = []string{"Apache-2.0", "MIT", "BSD", "ISC", "Unlicense"}
	licencesTestOnly = []string{"MPL-2.0"}
)

// conventional are methods whose name says what they do by convention, so
// that a comment on each would only repeat it.
var conventional = map[string]bool{
	"String": true, "Error": true, "GoString": true, "Unwrap": true, "Is": true, "As": true, "LogValue": true,
	"MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true, "AppendText": true,
	"Len": true, "Less": true, "Swap": true, "Push": true, "Pop": true, "EventType": true,
}
