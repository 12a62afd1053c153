package berth

import (
	"log/slog"

	"berth/events"
	"berth/sagas"
)

// Limits of a manager.
const (
	MaxClients = 1024 // connections to the embedded server
	// MinFreeBytes is the disk that must stay free under the data directory:
	// below it commits are refused with resource-exhausted, and nothing is lost.
	MinFreeBytes = 64 << 20
)

// Options says how to run a manager. Only DataDir is required.
type Options struct {
	// DataDir holds everything that the manager keeps.
	DataDir string
	// Space is the tenant; empty is "default".
	Space events.Space
	// Listen is where the embedded server listens, a loopback HOST:PORT; empty
	// is 127.0.0.1:4222. Port 0 picks a free one.
	Listen string
	// HTTP is where health and metrics are served, a loopback HOST:PORT; empty
	// is 127.0.0.1:8222.
	HTTP string
	// Durability is the profile of the embedded server; empty is Strict.
	Durability Durability
	// NATS is the URL of an external server; empty runs the embedded one.
	// Credentials is its credentials file.
	NATS        string
	Credentials string
	// Drill is the script of the drill provider; empty does not register it.
	Drill string
	// Docker is the unix socket of a Docker Engine; empty does not register it.
	Docker string
	// Fly is app=NAME,token-file=PATH with further keys of fly.Parse; empty
	// does not register the adapter.
	Fly string
	// Hosted are providers on other machines, each as hosted.ParseSpec reads it:
	// name=https://HOST:PORT,ca=FILE,cert=FILE,key=FILE or ...,bearer=FILE.
	Hosted []string
	// BearerSources say where the guests of a provider fetch bearers, each as
	// PROVIDER=socket:/PATH or PROVIDER=https://HOST[:PORT][/PATH], one for a
	// provider (R43). The source is bound with the credential of each launch.
	BearerSources []string
	// Delegation is a file with what the hand-offs of delegated seats have in
	// common (handoff.ParseProfile); empty refuses such seats.
	Delegation string
	// Connectors are the names of the connectors that the instance offers; nil
	// is all that there are. Without a usable one it takes only spawns that are
	// sent to it by its id.
	Connectors []string
	// Labels are the operator's words on this instance, which a spawn may ask
	// for; at most MaxLabels.
	Labels map[string]string
	// InitSpace allows a data directory that is not empty, or an external
	// server, to begin a new log (decision 6).
	InitSpace bool
	// AcceptHistoryLoss is an operator's reason to go on with a log that is
	// shorter than the checkpoint that this directory remembers.
	AcceptHistoryLoss string
	// MaxBytes bounds the log on disk; zero is no limit of its own.
	MaxBytes int64
	// MaxSeats is how many names this instance holds at most; zero is no limit
	// of its own.
	MaxSeats int
	// MinFree overrides MinFreeBytes; a negative value turns the guard off.
	MinFree int64
	// Self is the program that custodians are started from; empty is this one.
	Self string
	// Version is told in status and in the registration.
	Version string
	// Logger takes the manager's log; nil throws it away.
	Logger *slog.Logger
	// Hook is called around every append and every call to a driver; tests of
	// crashes use it. Its points are those of the engine and CommitPoint's. Nil
	// does nothing.
	Hook sagas.Hook
}

func (o Options) withDefaults() Options {
	o.Space = orElse(o.Space, "default")
	o.Listen = orElse(o.Listen, "127.0.0.1:4222")
	o.HTTP = orElse(o.HTTP, "127.0.0.1:8222")
	o.Durability = orElse(o.Durability, Strict)
	o.Version = orElse(o.Version, "dev")
	if o.MinFree == 0 {
		o.MinFree = MinFreeBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func orElse[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}
