package wire

import (
	_ "embed" // the document

	"berth/events"
)

// Protocol is the version that the paths begin with.
const Protocol = "v1"

// Document is the OpenAPI 3.1 description, served at PathDocument.
//
//go:embed openapi.json
var Document []byte

// The paths. What changes something, and every question about it, is a POST
// with a body that is sent once; streams are GET, so that they can be ranged.
const (
	PathDocument  = "/openapi.json"
	PathProvider  = "/v1/provider"
	PathHost      = "/v1/host"
	PathImage     = "/v1/image"
	PathPreflight = "/v1/preflight"
	PathOperation = "/v1/operations/{verb}"
	PathReconcile = "/v1/reconcile"
	PathExclude   = "/v1/exclude"
	PathInspect   = "/v1/inspect"
	PathList      = "/v1/list"
	PathChanges   = "/v1/changes"
	PathLogs      = "/v1/environments/{environment}/logs"
	PathFile      = "/v1/environments/{environment}/files/{file}"
	PathScreen    = "/v1/environments/{environment}/screen"
	PathInput     = "/v1/input"
	PathResize    = "/v1/resize"
)

// Headers of the protocol.
const (
	HeaderTimeout = "Berth-Timeout-Ms" // what is left of the operation's deadline (R85)
	TrailerNext   = "Berth-Next"       // logs: the next offset
	TrailerFault  = "Berth-Fault"      // logs: the failure that ended them, as JSON
)

// Route is one line of the server's table and of the document.
type Route struct{ Method, Path string }

// Routes lists every route.
var Routes = []Route{
	{"GET", PathDocument}, {"POST", PathProvider}, {"POST", PathHost}, {"POST", PathImage}, {"POST", PathPreflight},
	{"POST", PathOperation}, {"POST", PathReconcile}, {"POST", PathExclude}, {"POST", PathInspect}, {"POST", PathList},
	{"POST", PathChanges}, {"GET", PathLogs}, {"GET", PathFile},
	{"GET", PathScreen}, {"POST", PathInput}, {"POST", PathResize},
}

// ChangesAfter asks for what changed after a cursor; WaitMs bounds the wait.
type ChangesAfter struct {
	After  string `json:"after,omitempty"`
	WaitMs int64  `json:"waitMs,omitempty"`
}

// OperationPath is the path of a verb.
func OperationPath(v events.Verb) string { return "/v1/operations/" + string(v) }
