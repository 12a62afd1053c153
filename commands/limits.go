package commands

import "time"

// Limits of requests and replies. What exceeds one is refused with
// bad-request that names the field, before any effect.
const (
	// MaxRequest is the longest payload of a request, in bytes.
	MaxRequest = 256 << 10
	// MaxReply is the longest result, in bytes: pages are cut to fit it, and it
	// fits the server's default message size with room for the envelope.
	MaxReply = 900 << 10
	// MaxArguments is how many words a seat's command line has.
	MaxArguments = 256
	// MaxCommandLine is how long all words of a command line are, in bytes.
	MaxCommandLine = 32 << 10
	// MaxOptions is how many provider options a plan carries.
	MaxOptions = 64
	// MaxOptionName is the longest name of a provider option, in bytes.
	MaxOptionName = 128
	// MaxOptionBytes is how long all names and values of options are, in bytes.
	MaxOptionBytes = 16 << 10
	// MaxPrompt is the longest prompt of a spawn, in bytes.
	MaxPrompt = 16 << 10
	// MaxReason is the longest reason that a person gives, in bytes.
	MaxReason = 512
	// MaxNames is how many names `slots` is asked about at once.
	MaxNames = 100
	// MaxPage and DefaultPage bound the rows of one page of a list.
	MaxPage     = 500
	DefaultPage = 200
	// MaxText is the longest text that `input` types, in bytes.
	MaxText = 64 << 10
	// MaxChunk and DefaultChunk bound the bytes of one page of a log or a file.
	MaxChunk     = 512 << 10
	DefaultChunk = 256 << 10
	// MaxExport and DefaultExport bound an exported file, in bytes (R37).
	MaxExport     = int64(1) << 44
	DefaultExport = int64(64) << 30
	// MaxCPUs, MaxMemory and MaxDisk bound what one environment asks for; the
	// last two are in bytes.
	MaxCPUs   = "4096"
	MaxMemory = int64(64) << 40
	MaxDisk   = int64(1) << 50
	// MaxRates is how many providers a rate card names.
	MaxRates = 64
)

// Bounds of times.
const (
	MinLifetime     = time.Second
	MaxLifetime     = 366 * 24 * time.Hour
	DefaultLifetime = time.Hour
	MinReady        = time.Second
	MaxReady        = 24 * time.Hour
	// DefaultReady is the readiness deadline of a spawn: what Berth's providers
	// declare instead of the contract's 30 s, since an image may be unpacked.
	DefaultReady = 2 * time.Minute
	MaxGrace     = 10 * time.Minute
	// MaxWait is how long one request waits for something to happen.
	MaxWait = time.Minute
	// DefaultTimeout is the deadline of a call, where the table has none of its own.
	DefaultTimeout = 15 * time.Second
	// MaxTimeout bounds the deadline that a caller may give.
	MaxTimeout = 2 * time.Minute
)

// What a plan has when it does not say.
const (
	DefaultProvider  = "process"
	DefaultBase      = "agent" // of the name, with a number behind it
	DefaultImageKind = "template"
	DefaultImage     = "host"
	DefaultCPUs      = "0.25"
	DefaultMemory    = "128MiB"
)
