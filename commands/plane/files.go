package plane

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"berth/aggregates/goal"
	"berth/commands"
	"berth/events"
	"berth/events/fault"
)

func chunkSize(limit int) int {
	if limit == 0 {
		return commands.DefaultChunk
	}
	return min(limit, commands.MaxChunk)
}

// elsewhere refuses what only the holder can answer, and says who that is.
func (p *Plane) elsewhere(what string, holder events.InstanceID) error {
	return fault.New(fault.FailedPrecondition, "%s is held by instance %s, and this is %s", what, holder, p.Self.Instance).
		WithDetail(commands.DetailBindRefused, "boundTo", string(holder), "servedBy", string(p.Self.Instance))
}

// exportRead reads a chunk of a file that was accepted: its length and digest
// were verified when it was copied, and the client verifies them again (R37).
func (p *Plane) exportRead(ctx context.Context, c *call, in commands.ExportReadInput) (commands.ExportReadResult, error) {
	id := events.GoalID(in.Goal)
	g, _, err := p.Shelf.Goal(ctx, events.GoalBoundary(c.Caller, id))
	if err != nil {
		return commands.ExportReadResult{}, err
	}
	file, err := p.exported(id, g)
	if err != nil {
		return commands.ExportReadResult{}, err
	}
	out := commands.ExportReadResult{Offset: in.Offset, ByteLength: file.ByteLength, SHA256: file.SHA256}
	if in.Offset > file.ByteLength {
		return out, fault.New(fault.BadRequest, "offset: %d is beyond the end of the file, %d", in.Offset, file.ByteLength).WithDetail(commands.DetailField, "field", "offset")
	}
	out.Data, err = readAt(filepath.Join(p.ExportsDir, string(g.Allocated.Operation)), in.Offset, min(int64(chunkSize(in.Limit)), file.ByteLength-in.Offset))
	if err != nil {
		return out, fault.New(fault.Expired, "the file of goal %s is no longer kept as it was accepted", id).WithHint("export again; the checkpoint is still there as long as its environment is")
	}
	out.Next = out.Offset + int64(len(out.Data))
	out.EOF = out.Next == file.ByteLength
	return out, nil
}

// exported is the file of an export goal that is known to have succeeded.
func (p *Plane) exported(id events.GoalID, g goal.State) (events.File, error) {
	var file events.File
	result, state := g.Result, g.State
	if g.Settled != nil {
		result, state = g.Settled.Result, g.Settled.State
	}
	switch {
	case g.State == goal.None:
		return file, noGoal(id)
	case g.Command != string(events.VerbExport):
		return file, fault.New(fault.FailedPrecondition, "goal %s is a %s: only an export has a file", id, g.Command)
	case state != events.GoalSucceeded:
		return file, fault.New(fault.FailedPrecondition, "goal %s is %s: it has no accepted file", id, state).WithHint("`berth goal %s` shows why", id)
	case g.Holder != p.Self.Instance:
		return file, p.elsewhere("the file of goal "+string(id), g.Holder)
	}
	if err := json.Unmarshal(result, &file); err != nil {
		return file, fault.New(fault.Internal, "the result of goal %s is not a file", id)
	}
	return file, nil
}

// readAt reads exactly n bytes: less is a file that is not what was accepted.
func readAt(path string, offset, n int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if s, err := f.Stat(); err != nil || !s.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	b := make([]byte, n)
	_, err = io.ReadFull(io.NewSectionReader(f, offset, n), b)
	return b, err
}

// errEnough ends the writing of a log once the page is full, or once there is
// something to answer with.
var errEnough = errors.New("enough was read")

// page collects at most most bytes; greedy waits for a full page.
type page struct {
	b      []byte
	most   int
	greedy bool
}

// Write implements io.Writer.
func (w *page) Write(b []byte) (int, error) {
	n := min(len(b), w.most-len(w.b))
	w.b = append(w.b, b[:n]...)
	if len(w.b) == w.most || !w.greedy {
		return n, errEnough
	}
	return n, nil
}

// logs answers with the output from an offset: what is there, or, with wait,
// the first that comes.
func (p *Plane) logs(ctx context.Context, c *call, in commands.LogsInput) (commands.LogsResult, error) {
	wait, err := in.WaitFor()
	if err != nil {
		return commands.LogsResult{}, err
	}
	seat, err := p.Shelf.Seat(ctx, c.owner(), events.Alias(in.Name))
	if err != nil {
		return commands.LogsResult{}, err
	}
	e := seat.Environment
	switch {
	case !seat.Slot.Held() && seat.Quarantine == nil:
		return commands.LogsResult{}, seat.Nobody()
	case in.UID != "" && seat.Slot.UID != events.UID(in.UID):
		return commands.LogsResult{}, seat.Slot.Is(events.UID(in.UID))
	case seat.Slot.Holder != p.Self.Instance:
		return commands.LogsResult{}, p.elsewhere(in.Name, seat.Slot.Holder)
	case e.Ref == "":
		return commands.LogsResult{From: in.From, Next: in.From}, nil // nothing runs yet
	}
	entry, err := p.Providers.Get(e.Plan.Provider)
	if err != nil {
		return commands.LogsResult{}, err
	}
	read := func(follow bool, within time.Duration) (commands.LogsResult, bool, error) {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		w := &page{most: chunkSize(in.Limit), greedy: !follow}
		next, err := entry.Driver.Logs(ctx, e.ID, e.Ref, in.From, follow, w)
		over := err == nil && follow // it returned by itself: the seat has ended
		if err != nil && (errors.Is(err, errEnough) || len(w.b) > 0 || (follow && ctx.Err() != nil)) {
			err = nil
		}
		return logPage(in.From, next, w.b), over, err
	}
	out, _, err := read(false, commands.DefaultTimeout)
	ended := e.StoppedAt != nil || e.Gone
	if err == nil && len(out.Data) == 0 && wait > 0 && !ended {
		out, ended, err = read(true, wait)
	}
	if err != nil {
		return commands.LogsResult{}, err
	}
	out.Ended = ended && len(out.Data) == 0
	return out, nil
}

// logPage says where the bytes are. A provider keeps a bounded tail: what it
// gave may begin later than was asked for, and it is told by where it ended.
func logPage(from, next int64, b []byte) commands.LogsResult {
	start := max(next-int64(len(b)), from)
	return commands.LogsResult{Data: b, From: start, Next: start + int64(len(b)), Dropped: start - from}
}
