package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"berth"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/internal/steady"
	"berth/providers"
	"berth/providers/docker"
	"berth/providers/drill"
	"berth/providers/hosted/server"
	"berth/providers/process"
	"berth/providers/qemu"
)

// drillName is the simulated provider's.
const drillName = "drill"

// engineLimit bounds the first question to a Docker Engine.
const engineLimit = 10 * time.Second

// endpointName is the file in which a served provider says where it is.
const endpointName = "endpoint.json"

type serveFlags struct {
	provider, dir, listen, bearer, script, socket, accept, maxBytes string
	tls                                                             server.TLS
}

// served is what a served provider prints and keeps in endpointName.
type served struct {
	URL      string `json:"url"`
	Provider string `json:"provider"`
	PID      int    `json:"pid"`
}

func (a *app) providerServeCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use: "serve", Short: "Serve a provider of this machine over HTTPS until told to end", Args: args(),
		Long: `Serve a provider of this machine over HTTPS until it is told to end; its
environments go on, and end by their own deadlines, whether it runs or not.
Started again with the same directory it takes up what lives. Every operation is
journaled there, on a log as a manager keeps one, before it is carried out, and its
answer is kept: berth verify --data DIR proves the log of a provider that is down.

Clients show a certificate of --client-ca, or the bearer of --bearer-file; with
both they show both. TLS is 1.3. GET /openapi.json is the protocol.`,
		Example: "  berth provider serve --provider process --dir ./provider --listen 0.0.0.0:7443 \\\n    --cert certs/provider.pem --key certs/provider-key.pem --client-ca certs/ca.pem",
		RunE:    func(c *cobra.Command, _ []string) error { return startFailure(a.provide(c.Context(), f)) },
	}
	fl := c.Flags()
	fl.StringVar(&f.provider, "provider", process.Name, "what is served: process, qemu, docker or drill")
	fl.StringVar(&f.dir, "dir", "", "directory of the provider and its journal")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:7443", "where to listen; port 0 picks a free one, which endpoint.json in the directory tells")
	fl.StringVar(&f.tls.CertFile, "cert", "", "certificate of the provider, PEM")
	fl.StringVar(&f.tls.KeyFile, "key", "", "its key, PEM, readable by its owner only")
	fl.StringVar(&f.tls.ClientCAFile, "client-ca", "", "authority of the managers' certificates, PEM")
	fl.StringVar(&f.bearer, "bearer-file", "", "file with the bearer that managers show")
	fl.StringVar(&f.script, "script", "", "script of faults for drill")
	fl.StringVar(&f.socket, "socket", "", "unix socket of the Docker Engine, for docker (default "+docker.DefaultSocket+")")
	fl.StringVar(&f.maxBytes, "max-bytes", "", "the most that the journal takes on disk, such as 10GiB; a full one has room again after a start with more")
	fl.StringVar(&f.accept, "accept-history-loss", "", "go on with a journal that is shorter than remembered, for this reason, which becomes an event")
	for _, name := range []string{"dir", "cert", "key"} {
		_ = c.MarkFlagRequired(name) // only fails for a flag that is not there
	}
	return c
}

// check refuses what can't be right before anything is opened.
func (f serveFlags) check() error {
	switch {
	case f.tls.ClientCAFile == "" && f.bearer == "":
		return usage("nothing would tell who asks").WithHint("give --client-ca or --bearer-file")
	case f.script != "" && f.provider != drillName:
		return usage("--script is for --provider drill")
	case f.socket != "" && f.provider != docker.Name:
		return usage("--socket is for --provider docker")
	case f.accept != "":
		if err := events.CheckText("--accept-history-loss", f.accept); err != nil {
			return err
		}
	}
	_, err := f.tls.Config()
	return err
}

func (a *app) provide(ctx context.Context, f serveFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return usage("--dir: %s", err)
	}
	if err := durable.MakeDir(dir); err != nil {
		return usage("--dir %s can't be made", dir)
	}
	clock := steady.New()
	logger := slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var maxBytes int64
	if f.maxBytes != "" {
		if maxBytes, err = commands.ParseSize("--max-bytes", f.maxBytes, 1<<20, maxLogBytes); err != nil {
			return err
		}
	}
	journal, err := berth.OpenServed(ctx, berth.ServedOptions{Dir: dir, MaxBytes: maxBytes, AcceptHistoryLoss: f.accept, Version: ReadBuild().Version, Clock: clock.Now, Logger: logger})
	if e := fault.From(err); e != nil && fault.ExitOf(e) == fault.ExitLogLost && e.Hint == "" {
		return e.WithHint("nothing was written: bring the journal back. If it is gone for good, say so once: berth provider serve ... --accept-history-loss REASON")
	}
	if err != nil {
		return err
	}
	err = a.provideOn(ctx, f, dir, clock, journal, logger)
	return errors.Join(err, journal.Close())
}

// provideOn serves a driver whose journal is open, until ctx ends or the
// journal takes no more writes.
func (a *app) provideOn(ctx context.Context, f serveFlags, dir string, clock *steady.Clock, journal *berth.Served, logger *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-journal.Unwritable():
			cancel()
		case <-ctx.Done():
		}
	}()
	driver, err := openServed(ctx, f, dir, clock)
	if err != nil {
		return err
	}
	defer driver.Close()
	s, err := server.New(server.Config{Driver: driver, Log: journal.Log, Writer: journal.Writer, Caller: journal.Caller,
		Admit: journal.Admit, BearerFile: f.bearer, Clock: clock.Now, Logger: logger})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		_ = s.Close() // the listener's failure is the one to tell
		return fault.New(fault.FailedPrecondition, "--listen %s can't be used: it is taken, or not an address of this machine", f.listen).WithHint("port 0 picks a free one, which endpoint.json in the directory tells").
			WithDetail(fault.DetailPortInUse)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, f.tls) }()
	e := served{URL: "https://" + l.Addr().String(), Provider: driver.Name(), PID: os.Getpid()}
	if err := a.tellServed(dir, e, f.shown()); err != nil {
		_ = l.Close()
		<-ended
		return err
	}
	return <-ended
}

// shown is what a manager has to show to this provider, as --hosted wants it.
func (f serveFlags) shown() string {
	files := ""
	if f.tls.ClientCAFile != "" {
		files += ",cert=FILE,key=FILE"
	}
	if f.bearer != "" {
		files += ",bearer=FILE"
	}
	return files
}

// tellServed says where the provider is: on standard output, and in a file.
// shown is what a manager shows to it.
func (a *app) tellServed(dir string, e served, shown string) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(dir, endpointName), append(raw, '\n'), 0o600); err != nil {
		return fault.New(fault.FailedPrecondition, "%s can't be written", filepath.Join(dir, endpointName))
	}
	return a.show(e, func(w io.Writer) {
		fmt.Fprintf(w, "serving %s at %s\nnext, where the manager runs: berth up --hosted NAME=%s,ca=FILE%s\n", e.Provider, e.URL, e.URL, shown)
	})
}

// openServed opens the driver that is served; failed-precondition says what
// this machine lacks for it.
func openServed(ctx context.Context, f serveFlags, dir string, clock *steady.Clock) (providers.Driver, error) {
	switch f.provider {
	case process.Name:
		return process.New(process.Config{Dir: filepath.Join(dir, "seats"), Clock: clock.Now, Hide: []string{dir}})
	case qemu.Name:
		if err := qemu.Available(); err != nil {
			return nil, badSpec("--provider qemu", err)
		}
		return qemu.New(qemu.Config{Dir: filepath.Join(dir, "machines"), Clock: clock.Now})
	case docker.Name:
		return openEngine(ctx, f, dir, clock)
	case drillName:
		var script drill.Script
		if f.script != "" {
			raw, err := readInput(f.script, drill.MaxScriptBytes)
			if err != nil {
				return nil, err
			}
			if script, err = drill.ParseScript(raw); err != nil {
				return nil, badSpec("--script", err)
			}
		}
		return drill.Open(drill.Config{Dir: filepath.Join(dir, "drill"), Script: script, Clock: clock.Now})
	}
	return nil, usage("--provider %q is not valid: process, qemu, docker or drill", clip(f.provider))
}

// openEngine serves containers only where an engine answers: a provider that
// can do nothing would be found out by its managers, one refusal at a time.
func openEngine(ctx context.Context, f serveFlags, dir string, clock *steady.Clock) (providers.Driver, error) {
	d, err := docker.Open(docker.Config{Dir: filepath.Join(dir, "docker"), Socket: f.socket, Clock: clock.Now})
	if err != nil {
		return nil, badSpec("--provider docker", err)
	}
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if _, err := d.HostFacts(ctx); err != nil {
		_ = d.Close() // it did nothing yet; the engine's failure is the one to tell
		return nil, fault.New(fault.FailedPrecondition, "--provider docker: no engine answers: %s", fault.From(err).Message).
			WithHint("start the Docker Engine, or name its socket with --socket")
	}
	return d, nil
}
