package stream

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"berth/events"
	"berth/events/eventlog"
	"berth/events/fault"
)

// Defaults and fixed settings.
const (
	DefaultTimeout   = 10 * time.Second // of one request to the server
	DuplicatesWindow = 30 * time.Second // each id in it costs memory and start time
	maxMsgSize       = eventlog.MaxCommitBytes + 16<<10
	formatKey        = "berth.format"
)

// Barrier makes acknowledged records durable where the server does not.
type Barrier interface {
	// Wait returns nil once every record up to sequence, which must have been
	// acknowledged or seen, is synced to disk.
	Wait(ctx context.Context, sequence uint64) error
}

// Config says which stream, and how it is made if it is not there.
type Config struct {
	Space events.Space
	// Create makes the stream if it is missing. Without it a missing stream is
	// an error (decision 6): an empty log is never read as an empty world.
	Create bool
	// Replicas is 1, 3 or 5; zero is 1.
	Replicas int
	// MaxBytes is the disk that the log may use; a full log refuses commits.
	// Zero or less is no limit for a new log, and leaves that of another as it is.
	MaxBytes int64
	// Barrier, of the group profile; nil says that an acknowledgement of the
	// server already means synced to disk.
	Barrier Barrier
	// Timeout bounds each request to the server.
	Timeout time.Duration
	// Log is told of incomplete atomic publishes and lost connections.
	Log *slog.Logger
}

// Log implements eventlog.Log.
type Log struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	cfg      Config
	name     string
	prefix   string // of subjects
	created  time.Time
	replicas int
	leader   bool // reads ask the stream's leader
	heads    heads
	gets     *gets
}

var _ eventlog.Log = (*Log)(nil)

// Open opens the stream of a space, or creates it. It refuses a stream that
// could lose events or is not Berth's with failed-precondition, one that lost
// records with the same and detail berth.log-lost, a missing one with not-found
// and that detail, and a newer format with unsupported-version. Close releases what it holds; nc stays open.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Log, error) {
	if _, err := events.ParseSpace(string(cfg.Space)); err != nil {
		return nil, err
	}
	cfg.Replicas = max(cfg.Replicas, 1)
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = -1
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(cfg.Timeout))
	if err != nil {
		return nil, fault.New(fault.Unavailable, "JetStream can't be used: %s", events.Scrub(err.Error()))
	}
	l := &Log{nc: nc, js: js, cfg: cfg, name: events.StreamName(cfg.Space), prefix: events.SubjectPrefix(cfg.Space)}
	s, err := js.Stream(ctx, l.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if !cfg.Create {
			return nil, fault.New(fault.NotFound, "stream %s is missing, or the server can't read its files; if this space is new, start once with --init-space", l.name).
				WithHint(remedy).WithDetail(fault.DetailLogLost, "stream", l.name)
		}
		s, err = js.CreateStream(ctx, l.want())
	}
	if err != nil {
		return nil, fault.New(fault.Unavailable, "stream %s can't be opened: %s", l.name, events.Scrub(err.Error())).WithOutcome(fault.NotExecuted)
	}
	info := s.CachedInfo()
	if err := l.accept(info.Config); err != nil {
		return nil, err
	}
	if err := l.uncut(info.State); err != nil {
		return nil, err
	}
	if changed, what := l.adjust(info.Config); what != "" {
		if _, err := js.UpdateStream(ctx, changed); err != nil {
			return nil, fault.New(fault.Unavailable, "the %s of stream %s can't be changed: %s", what, l.name, events.Scrub(err.Error())).WithOutcome(fault.NotExecuted)
		}
		l.cfg.Log.Info("a setting of the log was changed", "stream", l.name, "setting", what)
	}
	l.created, l.replicas = info.Created, max(info.Config.Replicas, 1)
	l.leader = l.replicas > 1
	if l.gets, err = newGets(nc, l.name); err != nil {
		return nil, fault.New(fault.Unavailable, "subscribing for reads: %s", events.Scrub(err.Error())).WithOutcome(fault.NotExecuted)
	}
	return l, nil
}

// Close releases the subscriptions of the log. The connection stays open.
func (l *Log) Close() error { return l.gets.close() }

// Identity is the stream's name and when it was created: what a checkpoint
// recognizes it by.
func (l *Log) Identity() (name string, created time.Time) { return l.name, l.created }

func (l *Log) want() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: l.name, Subjects: []string{l.prefix + ">"},
		Description: "Berth's event log of space " + string(l.cfg.Space),
		Storage:     jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew,
		Replicas: l.cfg.Replicas, MaxBytes: l.cfg.MaxBytes, MaxMsgs: -1, MaxMsgsPerSubject: -1, MaxConsumers: -1,
		MaxMsgSize: maxMsgSize, Duplicates: DuplicatesWindow, Compression: compression(l.cfg.Replicas),
		DenyDelete: true, DenyPurge: true, AllowAtomicPublish: true, AllowDirect: l.cfg.Replicas == 1,
		Metadata: map[string]string{formatKey: strconv.Itoa(events.Format)},
	}
}

// compression of the log's blocks: none with replicas. A replica that syncs
// always and did not stop in order cuts its log back to its last snapshot. Server
// 2.15 may compress the block that it then goes on writing to, and cuts a block
// that is compressed already at an offset of the plain text: either way the
// replica can't read its log any more. A log without replicas is never cut back.
func compression(replicas int) jetstream.StoreCompression {
	if replicas > 1 {
		return jetstream.NoCompression
	}
	return jetstream.S2Compression
}

// adjust gives the settings that the stream is to have, and names what it
// changes; nothing if it is as it should be. It turns compression off and never
// on: an operator may keep any log uncompressed.
func (l *Log) adjust(c jetstream.StreamConfig) (changed jetstream.StreamConfig, what string) {
	if c.Replicas > 1 && c.Compression != jetstream.NoCompression {
		c.Compression, what = jetstream.NoCompression, "compression"
	}
	if l.cfg.MaxBytes > 0 && l.cfg.MaxBytes != c.MaxBytes {
		c.MaxBytes = l.cfg.MaxBytes
		what = strings.TrimPrefix(what+" and size limit", " and ")
	}
	return c, what
}

// accept refuses a stream that breaks a promise of the log.
func (l *Log) accept(c jetstream.StreamConfig) error {
	format, err := strconv.Atoi(c.Metadata[formatKey])
	if err != nil || format < 1 {
		return fault.New(fault.FailedPrecondition, "stream %s exists but is not a log of Berth: it has no %s", l.name, formatKey).WithDetail(fault.DetailBadConfig)
	}
	if format > events.Format {
		return fault.New(fault.UnsupportedVersion, "stream %s has format %d; this program reads up to %d; use a newer berth", l.name, format, events.Format).
			WithDetail(fault.DetailNewerFormat)
	}
	wrong := ""
	switch {
	case len(c.Subjects) != 1 || c.Subjects[0] != l.prefix+">":
		wrong = "its subjects are not " + l.prefix + ">"
	case c.Storage != jetstream.FileStorage || c.PersistMode == jetstream.AsyncPersistMode:
		wrong = "it is not kept in files before it answers"
	case c.Retention != jetstream.LimitsPolicy || c.Discard != jetstream.DiscardNew:
		wrong = "it discards old messages"
	case c.MaxAge != 0 || c.MaxMsgsPerSubject > 0:
		wrong = "it drops messages by age or number"
	case !c.DenyDelete || !c.DenyPurge:
		wrong = "messages can be deleted or purged"
	case !c.AllowAtomicPublish:
		wrong = "it does not allow atomic publishes"
	case c.Replicas > 1 && c.AllowDirect:
		wrong = "direct gets may answer with an older state"
	case c.Sealed || c.Mirror != nil || len(c.Sources) > 0:
		wrong = "it is sealed, a mirror or fed by other streams"
	default:
		return nil
	}
	return fault.New(fault.FailedPrecondition, "stream %s can't be used as the log: %s; restore its settings", l.name, wrong).WithDetail(fault.DetailBadConfig)
}
