package wire

import "time"

// Limits of the protocol, kept by both sides.
const (
	// MaxCall is the longest request body, in bytes. It has room for the
	// material of a start.
	MaxCall = 8 << 20
	// MaxAnswer is the longest answer that is no stream, in bytes.
	MaxAnswer = 4 << 20
	// MaxHeader is how many bytes of headers are read.
	MaxHeader = 16 << 10
	// MaxQuery is the longest value of a parameter in a URL, in bytes.
	MaxQuery = 2048
	// MaxOperations is how many operations one environment may have in its life.
	MaxOperations = 10_000
	// MaxBearer is the longest bearer, MinBearer the shortest, in bytes.
	MaxBearer = 4096
	MinBearer = 32
)

// Times of the protocol.
const (
	// DefaultDeadline bounds a call that names no deadline; MaxDeadline any call.
	DefaultDeadline = time.Minute
	MaxDeadline     = 10 * time.Minute
	// MaxPoll is how long a question for changes waits for one.
	MaxPoll = 25 * time.Second
	// StallAfter ends a stream of which nothing moved for so long.
	StallAfter = time.Minute
	// ConnectLimit bounds connecting and the TLS handshake.
	ConnectLimit = 10 * time.Second
	// ReadLimit bounds the arrival of a request body.
	ReadLimit = time.Minute
	// KeepIdle is how long a client keeps an idle connection; a server keeps
	// it longer, so that a call does not meet a connection that just closed.
	KeepIdle       = 30 * time.Second
	ServerKeepIdle = 2 * time.Minute
)
