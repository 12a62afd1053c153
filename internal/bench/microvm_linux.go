package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/process/seatdir"
	"berth/providers/qemu"
	"berth/providers/qemu/machine"
)

const (
	vmMemory  = "256MiB"
	vmSamples = 40 // one spawn, pause and resume for so many samples
	vmTries   = 3  // of a bare guest, which sometimes hangs as it boots
)

var vmImage = commands.ImageInput{Kind: "template", Reference: qemu.Template}

// microVMs says why none runs here; nil: they can.
func microVMs() error { return qemu.Available() }

// measureMicroVM measures boots, starts from a golden state and pauses beside
// QEMU alone.
func measureMicroVM(ctx context.Context, o Options) ([]Row, error) {
	if err := microVMs(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.Rounds+o.Samples)*barePatience)
	defer cancel()
	cold, err := coldBoots(ctx, o)
	if err != nil {
		return nil, err
	}
	d, err := openDesk(ctx, o)
	if err != nil {
		return []Row{cold}, err
	}
	defer d.close()
	m := &vmDesk{desk: d, n: max(o.Samples/vmSamples, 1)}
	if m.js, err = rawSide(ctx, d.nc); err != nil {
		return []Row{cold}, err
	}
	golden, err := m.golden(ctx)
	if err != nil {
		return []Row{cold}, err
	}
	pauses, err := m.pauses(ctx)
	return append([]Row{cold, golden}, pauses...), err
}

// coldBoots is the driver's start without a golden state, until the command
// runs, beside the same QEMU until its agent is there.
func coldBoots(ctx context.Context, o Options) (Row, error) {
	o.Progress("microvm: cold boots")
	d, err := qemu.New(qemu.Config{Dir: filepath.Join(o.Dir, "machines")})
	if err != nil {
		return Row{}, err
	}
	defer d.Close()
	var raws, ours []time.Duration
	for range o.Rounds {
		id, took, err := coldStart(ctx, d)
		if err != nil {
			return Row{}, err
		}
		ours = append(ours, took)
		var s machine.Start
		if err := seatdir.In(d.Dir, id).ReadJSON(seatdir.FileStart, &s); err != nil {
			return Row{}, err
		}
		if err := vmDo(ctx, d, id, events.VerbDestroy, nil); err != nil {
			return Row{}, err
		}
		if took, err = bareBoot(ctx, o.Dir, s); err != nil {
			return Row{}, err
		}
		raws = append(raws, took)
	}
	return beside("microvm-cold", millis(median(ours)), "ms", millis(median(raws))).atMost(1.15).
		noted("the driver's start until the command runs; raw is QEMU alone until the guest's agent speaks"), nil
}

func coldStart(ctx context.Context, d *qemu.Driver) (events.EnvironmentID, time.Duration, error) {
	raw, err := uuid.NewV7()
	if err != nil {
		return "", 0, err
	}
	id := events.EnvironmentID(raw.String())
	plan := &events.Plan{Provider: qemu.Name, Image: events.Image{Kind: vmImage.Kind, Reference: vmImage.Reference},
		Options: map[string]string{qemu.OptionGolden: "off"}, Command: []string{"sleep", "3600"}}
	for _, v := range []events.Verb{events.VerbReserve, events.VerbProvision} {
		if err := vmDo(ctx, d, id, v, plan); err != nil {
			return id, 0, err
		}
	}
	start := time.Now()
	err = vmDo(ctx, d, id, events.VerbStart, nil)
	return id, time.Since(start), err
}

func vmDo(ctx context.Context, d *qemu.Driver, id events.EnvironmentID, v events.Verb, plan *events.Plan) error {
	op := providers.Operation{ID: events.OperationID("bench-operation-" + string(v)), Environment: id, Alias: "bench", Verb: v}
	if plan != nil {
		op.Plan = *plan
	}
	if out := d.Do(ctx, op); out.Kind != providers.Done {
		return fault.New(fault.Internal, "%s of a microVM: %s: %v", v, out.Kind, out.Fault)
	}
	return nil
}

// bareBoot boots QEMU alone. One that hangs is begun anew, as ours is; only
// the one that comes is counted.
func bareBoot(ctx context.Context, dir string, s machine.Start) (took time.Duration, err error) {
	for range vmTries {
		start := time.Now()
		if err = withBare(ctx, dir, s, false, func(ctx context.Context, b *bare) error { return b.boots(ctx) }); err == nil {
			return time.Since(start), nil
		}
	}
	return 0, err
}

func withBare(ctx context.Context, dir string, s machine.Start, incoming bool, do func(context.Context, *bare) error) error {
	ctx, cancel := context.WithTimeout(ctx, barePatience/vmTries)
	defer cancel()
	b, err := newBare(ctx, dir, s, incoming)
	if err != nil {
		return err
	}
	defer b.close()
	return do(ctx, b)
}

// vmDesk is a manager with the machines of this host.
type vmDesk struct {
	*desk
	js jetstream.JetStream
	n  int
}

// appended tells how many messages the log took while do ran: what the raw
// side has to publish too.
func (m *vmDesk) appended(ctx context.Context, do func() error) (n int, took time.Duration, err error) {
	before, err := m.last(ctx)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	err = do()
	took = time.Since(start)
	if err != nil {
		return 0, 0, err
	}
	after, err := m.last(ctx)
	return int(after - before), took, err
}

func (m *vmDesk) last(ctx context.Context) (uint64, error) {
	s, err := m.js.Stream(ctx, events.StreamName(space))
	if err != nil {
		return 0, err
	}
	return s.CachedInfo().State.LastSeq, nil
}

// publishes is how long n durable publishes take.
func (m *vmDesk) publishes(ctx context.Context, n int) (time.Duration, error) {
	body := []byte(strings.Repeat("x", 400))
	start := time.Now()
	for range n {
		if _, err := m.js.Publish(ctx, rawSubject, body); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

func (m *vmDesk) spawn(ctx context.Context, name string) error {
	return spawnOne(ctx, m.c, commands.SpawnInput{Name: name, Provider: qemu.Name, Image: &vmImage, CPUs: "1", Memory: vmMemory, Ready: "5m", Command: []string{"sleep", "3600"}})
}

// start reads what a machine was started with.
func (m *vmDesk) start(ctx context.Context, name string) (s machine.Start, err error) {
	r, err := client.Call(ctx, m.c, commands.Inspect, commands.Named{Name: name})
	if err != nil {
		return s, err
	}
	b, err := os.ReadFile(filepath.Join(m.Dir, "data", "machines", string(r.Environment.ID), seatdir.FileStart))
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	return s, err
}

// golden is a spawn that loads a golden state, from the command to ready.
func (m *vmDesk) golden(ctx context.Context) (Row, error) {
	m.Progress("microvm: starts from a golden state")
	if err := m.spawn(ctx, "first"); err != nil { // leaves the state
		return Row{}, err
	}
	s, err := m.start(ctx, "first")
	if err != nil {
		return Row{}, err
	}
	if err := m.retire(ctx, "first"); err != nil {
		return Row{}, err
	}
	state := machine.GoldenFile(s.Golden, s.Hardware, machine.StateExt)
	var raws, ours []time.Duration
	wrote := 0
	for i := range m.n {
		name := fmt.Sprintf("golden-%d", i)
		n, took, err := m.appended(ctx, func() error { return m.spawn(ctx, name) })
		if err != nil {
			return Row{}, err
		}
		ours, wrote = append(ours, took), n
		if err := m.retire(ctx, name); err != nil {
			return Row{}, err
		}
		start := time.Now()
		if err := withBare(ctx, m.Dir, s, true, func(ctx context.Context, b *bare) error { return b.restores(ctx, state) }); err != nil {
			return Row{}, err
		}
		took = time.Since(start)
		more, err := m.publishes(ctx, n)
		if err != nil {
			return Row{}, err
		}
		raws = append(raws, took+more)
	}
	return beside("microvm-golden", millis(median(ours)), "ms", millis(median(raws))).atMost(1.3).
		noted("a spawn to ready; raw is QEMU alone that loads the same state, and %d durable publishes", wrote), nil
}

// pauses are pause and resume, from the command to the status, beside the
// monitor's commands.
func (m *vmDesk) pauses(ctx context.Context) ([]Row, error) {
	m.Progress("microvm: pause and resume")
	if err := m.spawn(ctx, "paused"); err != nil {
		return nil, err
	}
	s, err := m.start(ctx, "paused")
	if err != nil {
		return nil, err
	}
	verbs := []struct {
		row, monitor string
		command      commands.Command[commands.SeatInput, commands.WriteResult]
		status       aggregates.Status
		ours, raws   []time.Duration
		wrote        int
	}{
		{row: "microvm-pause", monitor: "stop", command: commands.Pause, status: aggregates.StatusPaused},
		{row: "microvm-resume", monitor: "cont", command: commands.Resume, status: aggregates.StatusRunning},
	}
	state := machine.GoldenFile(s.Golden, s.Hardware, machine.StateExt)
	err = withBare(ctx, m.Dir, s, true, func(ctx context.Context, b *bare) error {
		if err := b.restores(ctx, state); err != nil {
			return err
		}
		for range m.n {
			for i := range verbs {
				v := &verbs[i]
				n, took, err := m.appended(ctx, func() error { return m.until(ctx, v.command, "paused", v.status) })
				if err != nil {
					return err
				}
				start := time.Now()
				if err := b.mon.Do(ctx, v.monitor, nil, nil); err != nil {
					return err
				}
				raw := time.Since(start)
				more, err := m.publishes(ctx, n)
				if err != nil {
					return err
				}
				v.ours, v.raws, v.wrote = append(v.ours, took), append(v.raws, raw+more), n
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, v := range verbs {
		rows = append(rows, beside(v.row, millis(median(v.ours)), "ms", millis(median(v.raws))).atMost(1.3).
			noted("from the command to the status; raw is the monitor's %s and %d durable publishes", v.monitor, v.wrote))
	}
	return rows, m.retire(ctx, "paused")
}

// until gives a command and waits for the status that it leads to.
func (m *vmDesk) until(ctx context.Context, c commands.Command[commands.SeatInput, commands.WriteResult], name string, status aggregates.Status) error {
	if _, err := client.Call(ctx, m.c, c, commands.SeatInput{Named: commands.Named{Name: name}}); err != nil {
		return err
	}
	_, err := m.c.WaitStatus(ctx, events.Alias(name), "", 0, status)
	return err
}
