package berth

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"berth/aggregates/instance"
	"berth/events"
	"berth/events/eventlog/stream"
	"berth/events/fault"
	"berth/internal/durable"
	"berth/internal/embedded"
	"berth/internal/ids"
	"berth/sagas"
)

// ServedSpace is the space of a served provider's own log. A manager has
// another one, so neither takes up the other's directory.
const ServedSpace events.Space = "provider"

// filesDir is where journals of files were kept before they were on the log.
const filesDir = "journal"

// ServedOptions says how to open the log of a served provider. Only Dir is
// required.
type ServedOptions struct {
	// Dir is the provider's directory; made if it is not there.
	Dir string
	// AcceptHistoryLoss is an operator's reason to go on with a log that is
	// shorter than the checkpoint that the directory remembers.
	AcceptHistoryLoss string
	// MaxBytes is the most that the log takes on disk; a full one has room again
	// after a start with more. Zero is no limit, or leaves it as it is.
	MaxBytes int64
	// MinFree overrides MinFreeBytes; a negative value turns the guard off.
	MinFree int64
	// Version is told in the registration.
	Version string
	// Clock is the wall clock; nil is the system's.
	Clock func() time.Time
	// Logger takes what goes wrong; nil throws it away.
	Logger *slog.Logger
}

// Served is the log of a served provider, in a directory that it has alone:
// an embedded server in the strict profile that nobody else can reach, a
// registered epoch, a checkpoint that tells a missing log from a new one, and a
// signed chain.
type Served struct {
	Log    *stream.Log
	Writer events.Writer
	Caller events.Caller // of the records that the provider appends

	opts       ServedOptions
	dir        *DataDir
	srv        *embedded.Server
	nc         *nats.Conn
	ids        events.IDs
	shelf      *sagas.Shelf
	chain      *chain
	guard      *diskGuard
	stop       context.CancelFunc
	background sync.WaitGroup
}

// OpenServed opens the log of a served provider. It refuses as a manager does:
// a directory in use, a log that is not the one that the directory remembers
// (exit code 12), and a journal of files of an earlier program.
func OpenServed(ctx context.Context, o ServedOptions) (_ *Served, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.MinFree == 0 {
		o.MinFree = MinFreeBytes
	}
	s := &Served{opts: o, ids: ids.New(), guard: newDiskGuard(o.Dir, o.MinFree)}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	for _, step := range []func(context.Context) error{s.openDir, s.openServer, s.openLog, s.follow, s.register} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	work, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.background.Go(func() { s.keep(work) })
	return s, nil
}

func (s *Served) openDir(context.Context) (err error) {
	s.dir, err = OpenDataDir(s.opts.Dir, ServedSpace)
	if fault.CodeOf(err) == fault.Conflict {
		return fault.New(fault.Conflict, "%s is in use by another process", s.opts.Dir).
			WithHint("end it, or give this provider a directory of its own with --dir").WithDetail(fault.DetailDataInUse)
	}
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(s.dir.File(filesDir), "*", "*.jsonl"))
	if err == nil && len(old) > 0 {
		return badConfig("%s holds a journal of files, such as %s, which this program does not read", s.dir.File(filesDir), filepath.Base(old[0])).
			WithHint("retire what this provider holds with the program that wrote them, or serve from an empty directory; nothing was changed")
	}
	return err
}

func (s *Served) openServer(ctx context.Context) (err error) {
	if err := durable.MakeDir(s.dir.File(natsDir)); err != nil {
		return badConfig("%s can't be written: %s", s.dir.Path, err)
	}
	s.srv, err = embedded.Start(ctx, embedded.Options{
		StoreDir: s.dir.File(natsDir), Name: serverName(s.dir.Identity.Instance), SyncAlways: true, Logger: serverLog{s.opts.Logger},
	})
	if err != nil {
		return fault.New(fault.Unavailable, "the embedded server did not start: %s", err).WithOutcome(fault.NotExecuted)
	}
	s.nc, err = s.srv.Connect(nats.Name("berth provider"))
	return err
}

func (s *Served) openLog(ctx context.Context) (err error) {
	accepted := s.opts.AcceptHistoryLoss != ""
	if s.chain, err = recall(s.dir, accepted); err != nil {
		return err
	}
	if s.Log, err = stream.Open(ctx, s.nc, stream.Config{Space: ServedSpace, Create: s.chain.fresh() || accepted, MaxBytes: s.opts.MaxBytes, Log: s.opts.Logger}); err != nil {
		return err
	}
	return s.chain.begin(ctx, s.Log, accepted)
}

// follow reads the whole log once before anything is written to it: one that
// lost a record from its middle is refused as a manager refuses it.
func (s *Served) follow(ctx context.Context) error {
	return s.Log.Scan(ctx, 0, func(events.Record) error { return nil })
}

// register begins the next epoch of this provider, and writes down an accepted
// loss of history.
func (s *Served) register(ctx context.Context) error {
	key, err := s.dir.Key.PublicKey()
	if err != nil {
		return err
	}
	id := s.dir.Identity.Instance
	s.Writer, s.Caller, s.shelf = events.Writer{Instance: id}, s.dir.Identity.Caller, sagas.NewShelf(s.Log)
	name, _ := os.Hostname()
	host := events.HostFacts{Host: orElse(name, "unknown"), Architecture: runtime.GOARCH, OS: runtime.GOOS, ObservedAt: events.MillisUTC(s.opts.Clock())}
	var epoch uint64
	_, _, err = s.shelf.DecideInstance(ctx, id, s.meta(), func(i instance.State) ([]events.Event, error) {
		epoch = i.Epoch + 1
		return i.Register(id, host, key, orElse(s.opts.Version, "dev")), nil
	})
	if err != nil {
		return err
	}
	s.Writer.Epoch = epoch
	return s.chain.admitLoss(ctx, ServedSpace, s.meta(), s.opts.AcceptHistoryLoss)
}

func (s *Served) meta() events.Meta {
	return events.Meta{ID: events.EventID(s.ids.UUID()), Time: events.MillisUTC(s.opts.Clock()), Caller: s.Caller, Writer: s.Writer}
}

// Unwritable is closed when the log met a write error, such as a full disk: it
// takes no more writes until the next start.
func (s *Served) Unwritable() <-chan struct{} { return s.srv.Unwritable() }

// Admit is nil, or why the provider takes no new work: its disk is nearly full.
func (s *Served) Admit() error { return s.guard.Check() }

// keep writes checkpoints and signs the chain until ctx ends.
func (s *Served) keep(ctx context.Context) {
	tick := time.NewTicker(checkpointEvery)
	defer tick.Stop()
	signed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.checkpoint(ctx)
		if err == nil && time.Since(signed) >= signEvery {
			signed = time.Now()
			err = s.record(ctx, s.chain.sign)
		}
		if err != nil && ctx.Err() == nil {
			s.opts.Logger.Error("the checkpoint of the journal was not kept", "error", err)
		}
	}
}

// checkpoint follows the chain to the tip and writes where it is.
func (s *Served) checkpoint(ctx context.Context) error {
	if err := s.chain.catchUp(ctx); err != nil {
		return err
	}
	return s.chain.write()
}

func (s *Served) record(ctx context.Context, f func(instance.State) ([]events.Event, error)) error {
	_, _, err := s.shelf.DecideInstance(ctx, s.Writer.Instance, s.meta(), f)
	return err
}

// Close signs the chain, records the end of the epoch and releases the
// directory. Whoever uses Log has ended before.
func (s *Served) Close() error {
	s.stop()
	s.background.Wait()
	defer s.release()
	select {
	case <-s.Unwritable():
		return fault.New(fault.ResourceExhausted, "the log in %s met a write error and takes no more writes until the next start", s.dir.Path).
			WithHint("see that the disk has space and can be written, then start again; environments go on, and nothing is lost")
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	err := s.checkpoint(ctx)
	if err == nil {
		err = s.record(ctx, s.chain.end(s.Writer.Epoch))
	}
	if err == nil {
		err = s.checkpoint(ctx)
	}
	return err
}

// release gives back what is held, newest first. What fails in it loses
// nothing: everything is durable.
func (s *Served) release() {
	if s.Log != nil {
		_ = s.Log.Close()
	}
	if s.nc != nil {
		s.nc.Close()
	}
	if s.srv != nil {
		s.srv.Stop()
	}
	if s.dir != nil {
		_ = s.dir.Close()
	}
}
