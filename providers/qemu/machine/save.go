//go:build linux

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"berth/events"
	"berth/events/fault"
	"berth/providers/kept"
	"berth/providers/process/seatdir"
	"berth/providers/qemu/guest"
	"berth/providers/qemu/wire"
)

// AskSave makes a checkpoint; the request's Data is a Save in JSON.
const AskSave = "save"

// MaxSave bounds one checkpoint in bytes; savePatience, how long it may take.
const (
	MaxSave      = 16 << 30
	savePatience = 5 * time.Minute
)

// Save says which checkpoint is to be made.
type Save struct {
	Operation events.OperationID `json:"operation"`
	ID        string             `json:"id"`
	Kind      string             `json:"kind"` // memory or cold
}

// Kept is the manifest of a checkpoint.
type Kept struct {
	seatdir.Kept
	Hardware *Hardware `json:"hardware,omitempty"` // which a memory checkpoint needs
}

// StateExt ends the names of captured files.
const StateExt = ".state"

// StateFile is the name of checkpoint id's content.
func StateFile(id string) string { return seatdir.DirCaptures + "/" + id + StateExt }

// save makes a checkpoint of the running or paused machine, which afterwards
// is as it was. It needs s.act.
func (s *supervisor) save(data []byte) error {
	var want Save
	if err := json.Unmarshal(data, &want); err != nil {
		return fault.New(fault.BadRequest, "not a checkpoint request: %s", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), savePatience)
	defer cancel()
	at := events.MillisUTC(time.Now())
	k := Kept{Kept: seatdir.Kept{Operation: want.Operation}}
	if want.Kind == "memory" {
		k.Hardware = &s.start.Hardware
	}
	n, sum, err := kept.Write(s.Dir.File(StateFile(want.ID)), MaxSave, func(w io.Writer) error {
		if want.Kind == "memory" {
			return s.saveMemory(ctx, w)
		}
		return s.saveHome(ctx, w)
	})
	if err != nil {
		return err
	}
	k.Checkpoint = &events.Checkpoint{ID: want.ID, Kind: want.Kind, ByteLength: n, SHA256: sum, CapturedAt: at}
	return s.Dir.WriteJSON(seatdir.ManifestFile(want.ID), k)
}

// saveHome archives the seat's home. The agent has to run for it.
func (s *supervisor) saveHome(ctx context.Context, w io.Writer) error {
	if s.Frozen {
		return fault.New(fault.FailedPrecondition, "a cold checkpoint of a paused machine would have to let it run: resume it first, or choose checkpoint=memory")
	}
	return s.peer.call(ctx, wire.Frame{Do: wire.DoGet, Path: guest.Home}, nil, func(b []byte) error {
		_, err := w.Write(b)
		return err
	})
}

// saveMemory streams the stopped machine's state to us, hashed on the way.
func (s *supervisor) saveMemory(ctx context.Context, w io.Writer) error {
	was := s.Frozen
	if err := s.freeze(ctx); err != nil {
		return err
	}
	err := s.migrate(ctx, w)
	if err != nil {
		_ = s.mon.Do(ctx, "migrate_cancel", nil, nil)
	}
	if !was {
		err = errors.Join(err, s.thaw(ctx))
	}
	return err
}

func (s *supervisor) migrate(ctx context.Context, w io.Writer) error {
	// The default would cap the rate at a fraction of what a disk takes.
	if err := s.mon.Do(ctx, "migrate-set-parameters", map[string]int64{"max-bandwidth": 10 << 30}, nil); err != nil {
		return err
	}
	name := s.start.name(FileMigration)
	_ = os.Remove(name)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return err
	}
	defer ln.Close()
	stop := context.AfterFunc(ctx, func() { _ = ln.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := s.mon.Do(ctx, "migrate", map[string]string{"uri": "unix:" + name}, nil); err != nil {
		return err
	}
	c, err := ln.AcceptUnix()
	if err != nil {
		return fmt.Errorf("QEMU did not connect to give its state: %w", err)
	}
	defer c.Close()
	stop = context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.Copy(w, c); err != nil {
		return err
	}
	for {
		status, err := s.mon.Migration(ctx)
		switch {
		case err != nil:
			return err
		case status == "completed":
			return nil
		case status == "failed" || status == "cancelled":
			return fmt.Errorf("QEMU says that its state was not given whole: %s", status)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
