package cli

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"berth"
	"berth/commands"
	"berth/commands/plane"
	"berth/events"
	"berth/events/eventlog/stream"
	"berth/events/eventlog/verify"
	"berth/events/fault"
	"berth/internal/embedded"
	"berth/projections"
	"berth/projections/replay"
)

// Names in a data directory that offline reading needs.
const (
	offlineServer   = "nats"
	offlineSnapshot = "views.snapshot"
)

// offline is the log of a data directory whose manager is down.
type offline struct {
	*stream.Log
	dir *berth.DataDir
}

// identity is how a snapshot names the stream that it is of.
func (o offline) identity() string {
	name, created := o.Identity()
	return name + " " + created.UTC().Format(time.RFC3339Nano)
}

// withLog reads the log of --data: it locks the directory, so that no manager
// starts meanwhile, and runs a server that nobody else can reach. Without --space
// the space is the directory's, which may be a served provider's.
func (a *app) withLog(ctx context.Context, f func(offline) error) error {
	path, err := a.dataDir()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(path, offlineServer)); err != nil {
		return fault.New(fault.NotFound, "there is no log in %s", path)
	}
	dir, err := berth.OpenDataDir(path, events.Space(a.space))
	if err != nil {
		return err
	}
	defer dir.Close()
	srv, err := embedded.Start(ctx, embedded.Options{StoreDir: dir.File(offlineServer), Name: "berth-" + string(dir.Identity.Instance), SyncAlways: true})
	if err != nil {
		return fault.New(fault.Unavailable, "the log of %s can't be opened: %s", path, err).WithOutcome(fault.NotExecuted)
	}
	defer srv.Stop()
	nc, err := srv.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	l, err := stream.Open(ctx, nc, stream.Config{Space: dir.Identity.Space})
	if err != nil {
		return err
	}
	return f(offline{l, dir})
}

// replayOffline compares with the snapshot of the directory: what the next
// start would serve.
func (a *app) replayOffline(ctx context.Context, in commands.ReplayInput) (r commands.ReplayResult, err error) {
	a.say("the manager is down; reading its log ...")
	until, err := in.Until()
	if err != nil {
		return r, err
	}
	err = a.withLog(ctx, func(o offline) error {
		space := o.dir.Identity.Space
		if in.Verify {
			served, err := projections.Load(o.dir.File(offlineSnapshot), o.identity(), space)
			if err == nil {
				r.Verified = true
				r.Report, err = replay.Verify(ctx, o.Log, served)
				return err
			}
			a.say("%s", fault.From(err).Message)
		}
		v, err := replay.At(ctx, o.Log, space, until)
		if err != nil {
			return err
		}
		r = plane.Rebuilt(v)
		return nil
	})
	return r, err
}

func (a *app) verifyOffline(ctx context.Context, opts verify.Options) (r verify.Report, err error) {
	a.say("nobody serves it; reading its log ...")
	err = a.withLog(ctx, func(o offline) error {
		var err error
		r, err = verify.Log(ctx, o.Log, opts)
		return err
	})
	return r, err
}
