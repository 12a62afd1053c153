package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"berth"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/internal/connector"
	"berth/providers/docker"
)

// maxLogBytes bounds --max-bytes.
const maxLogBytes = int64(1) << 50

type upFlags struct {
	listen, http, durability, nats, drill, docker, fly, delegation, accept, maxBytes, level string
	hosted, bearers, labels, connectors                                                     []string
	initSpace                                                                               bool
	maxSeats                                                                                int
}

func (a *app) upCommand() *cobra.Command {
	var f upFlags
	c := &cobra.Command{
		Use: "up", Short: "Run a manager, by default with its own JetStream server on loopback", Args: args(),
		Long: `Run a manager until it is told to end. It makes its data directory on the first
start. SIGTERM, an interrupt or ` + "`berth stop`" + ` drains it and leaves the environments running;
a second signal ends it at once. Started again, it takes up what it finds.`,
		Example: "  berth up\n  berth up --data ./data --listen 127.0.0.1:0 --http 127.0.0.1:0\n  berth up --drill faults.json",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := a.upOptions(f)
			if err != nil {
				return startFailure(err)
			}
			return startFailure(a.up(c.Context(), o))
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.listen, "listen", "", "where the NATS server listens, on loopback; port 0 picks a free one (default 127.0.0.1:4222)")
	fl.StringVar(&f.http, "http", "", "where /livez, /readyz and /metrics are served, on loopback; port 0 picks a free one (default 127.0.0.1:8222)")
	fl.StringVar(&f.durability, "durability", "strict", "strict: every commit is synced by itself; group: commits that wait share one sync")
	fl.StringVar(&f.nats, "nats", "", "use the NATS server at this URL in place of the embedded one (with --creds)")
	fl.StringVar(&f.drill, "drill", "", "also register the drill provider, with this script of faults")
	fl.StringVar(&f.delegation, "delegation", "", "file with what the hand-offs of delegated seats have in common")
	fl.StringVar(&f.docker, "docker", "", "also register the Docker Engine on this unix socket")
	fl.Lookup("docker").NoOptDefVal = docker.DefaultSocket
	fl.StringVar(&f.fly, "fly", "", "also register a Fly app: app=NAME,token-file=PATH and optionally region, slots, cpus, memory-mib")
	fl.StringArrayVar(&f.hosted, "hosted", nil, "also register a provider on another machine: name=https://HOST:PORT,ca=FILE,cert=FILE,key=FILE or ...,bearer=FILE; may be repeated")
	fl.StringArrayVar(&f.bearers, "bearer-source", nil, "where the seats of a provider fetch bearers: PROVIDER=socket:/PATH or PROVIDER=https://HOST[:PORT][/PATH]; may be repeated")
	fl.StringSliceVar(&f.connectors, "connectors", nil, "the connectors that this instance offers, such as exec,shell (default all: "+strings.Join(connector.Names(), ",")+")")
	fl.StringArrayVar(&f.labels, "host-label", nil, "NAME=VALUE that a spawn may ask for with --needs-label; may be repeated")
	fl.StringVar(&f.maxBytes, "max-bytes", "", "the most that the log takes on disk, such as 10GiB; a full log has room again after a start with more")
	fl.IntVar(&f.maxSeats, "max-seats", 0, "the most names that this instance holds at a time; no limit of its own if absent")
	fl.StringVar(&f.level, "log-level", "warn", "what is logged to standard error: debug, info, warn or error")
	fl.BoolVar(&f.initSpace, "init-space", false, "begin a new log although the data directory is not empty, or on an external server")
	fl.StringVar(&f.accept, "accept-history-loss", "", "go on with a log that is shorter than remembered, for this reason, which becomes an event")
	return c
}

func (a *app) upOptions(f upFlags) (berth.Options, error) {
	dir, err := a.dataDir()
	if err != nil {
		return berth.Options{}, err
	}
	o := berth.Options{
		DataDir: dir, Listen: f.listen, HTTP: f.http, Durability: berth.Durability(f.durability), NATS: f.nats,
		Credentials: a.creds, Drill: f.drill, Docker: f.docker, Delegation: f.delegation, Fly: f.fly, Hosted: f.hosted, BearerSources: f.bearers, InitSpace: f.initSpace, AcceptHistoryLoss: f.accept, Version: ReadBuild().Version, Hook: a.Hook,
	}
	if o.Labels, err = pairs("--host-label", f.labels); err != nil {
		return o, err
	}
	o.Connectors = f.connectors
	if a.space != "" {
		if o.Space, err = events.ParseSpace(a.space); err != nil {
			return o, err
		}
	}
	if o.Durability != berth.Strict && o.Durability != berth.Group {
		return o, usage("--durability %q is not valid: strict or group", f.durability)
	}
	if f.maxSeats < 0 {
		return o, usage("--max-seats %d is below zero", f.maxSeats)
	}
	o.MaxSeats = f.maxSeats
	if f.maxBytes != "" {
		if o.MaxBytes, err = commands.ParseSize("--max-bytes", f.maxBytes, 1<<20, maxLogBytes); err != nil {
			return o, err
		}
	}
	if f.accept != "" {
		if err := events.CheckText("--accept-history-loss", f.accept); err != nil {
			return o, err
		}
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return o, usage("--log-level %q is not valid: debug, info, warn or error", f.level)
	}
	o.Logger = slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: level}))
	return o, nil
}

// up runs a manager and says when it is ready.
func (a *app) up(ctx context.Context, o berth.Options) error {
	a.say("starting a manager in %s ...", o.DataDir)
	m, err := berth.New(ctx, o)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-m.Ready():
	}
	e := m.Endpoint()
	if err := a.show(e, func(w io.Writer) { a.welcome(w, o, e, m.Profile()) }); err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		a.say("draining; environments go on running (once more ends at once)")
	}()
	return <-ended
}

// welcome says what to type next.
func (a *app) welcome(w io.Writer, o berth.Options, e berth.Endpoint, profile string) {
	fmt.Fprintln(w, "berth is ready.")
	facts(w, "  data", o.DataDir, "  nats", e.NATS, "  http", e.HTTP, "  instance", string(e.Instance), "  space", string(e.Space), "  durability", profile)
	client := "berth"
	if usual, err := (&app{Program: Program{Env: a.Env}}).dataDir(); err != nil || usual != o.DataDir {
		client = "berth --data " + quote(o.DataDir)
	}
	provider := ""
	if o.Drill != "" {
		provider = "--provider drill "
	}
	fmt.Fprintf(w, "\nIn another terminal, type:\n\n  %s spawn demo %s--ttl 1h -- sh -c 'while :; do date; sleep 1; done'\n", client, provider)
	for _, next := range []string{"ls", "inspect demo", "logs demo -f", "attach demo", "retire demo"} {
		fmt.Fprintf(w, "  %s %s\n", client, next)
	}
	fmt.Fprintf(w, "\nAn interrupt (Ctrl-C) ends the manager and leaves the environments running.\n")
}

func quoteAll(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quote(w)
	}
	return strings.Join(out, " ")
}

func quote(s string) string {
	if s == "" || strings.ContainsAny(s, " \t'\"\\$`&|;<>()*?[]#~!") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// startFailure gives a refusal of the configuration its own exit code.
func startFailure(err error) error {
	e := fault.From(err)
	if e != nil && e.Code == fault.BadRequest && fault.ExitOf(e) == fault.ExitUsage {
		return e.WithDetail(fault.DetailBadConfig)
	}
	switch {
	case e == nil:
		return nil
	case fault.ExitOf(e) == fault.ExitLogLost && e.Hint == "":
		return e.WithHint("nothing was written: bring the log back. If it is gone for good, say so once: berth up --init-space --accept-history-loss REASON")
	}
	return e
}
