//go:build linux

package kill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"berth/aggregates/head"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/events/fault"
	"berth/internal/cli"
	"berth/providers/drill"
)

// berth runs the program's client in this process and expects exit code 0.
func (w *world) berth(args ...string) string {
	w.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(w.Context(), cli.Program{Args: append(args, "--data", w.dir), Env: func(string) string { return "" },
		Stdin: bytes.NewReader(nil), Stdout: &out, Stderr: &errs})
	if code != int(fault.ExitOK) {
		w.Errorf("berth %v: exit code %d\n%s%s", args, code, out.String(), errs.String())
	}
	return out.String()
}

// record is what the log says, counted.
type record struct {
	types map[string]int                     // events by type
	verbs map[events.OperationID]events.Verb // dispatched
	ends  map[events.OperationID]string      // how each ended
	of    map[events.OperationID]events.EnvironmentID
}

// read takes the whole log in.
func (w *world) read() record {
	w.Helper()
	r := record{map[string]int{}, map[events.OperationID]events.Verb{}, map[events.OperationID]string{}, map[events.OperationID]events.EnvironmentID{}}
	for from := uint64(1); ; {
		var page commands.EventsResult
		w.do("events", func(ctx context.Context, c *client.Client) (err error) {
			page, err = client.Call(ctx, c, commands.Events, commands.EventsInput{From: from})
			return err
		})
		for _, e := range page.Items {
			r.add(w, e)
		}
		if from = page.Next; from > page.Tip {
			return r
		}
	}
}

func (r record) add(w *world, e commands.CloudEvent) {
	r.types[e.Type]++
	var data struct {
		Environment events.EnvironmentID `json:"environment"`
		Operation   events.OperationID   `json:"operation"`
		Verb        events.Verb          `json:"verb"`
	}
	state := map[string]string{
		cloud(events.TypeOperationConfirmed): "landed", cloud(events.TypeOperationLanded): "landed",
		cloud(events.TypeOperationRefused): "refused", cloud(events.TypeOperationExcluded): "excluded",
	}[e.Type]
	if state == "" && e.Type != cloud(events.TypeOperationDispatched) {
		return
	}
	w.must(json.Unmarshal(e.Data, &data))
	if state == "" {
		if _, twice := r.verbs[data.Operation]; twice {
			w.Errorf("operation %s was dispatched twice", data.Operation)
		}
		r.verbs[data.Operation], r.of[data.Operation] = data.Verb, data.Environment
		return
	}
	if was, twice := r.ends[data.Operation]; twice {
		w.Errorf("operation %s ended twice: %s, then %s", data.Operation, was, state)
	}
	r.ends[data.Operation] = state
}

func cloud(eventType string) string { return "berth." + eventType + ".v1" }

// settled checks the records of one life that has ended (laws 1 to 5).
func (w *world) settled(l life, landed map[events.Verb]int) record {
	w.Helper()
	r := w.read()
	for kind, want := range map[string]int{
		events.TypeUIDReserved: 1, events.TypeSlotClaimed: 1, events.TypeSlotActivated: 1, events.TypeSlotRetired: 1,
		events.TypeHeadRetired: 1, events.TypeGateRetired: 1, events.TypeGoalAccepted: w.goals, events.TypeGoalEnded: w.goals,
		events.TypeEnvironmentWrittenOff: 0,
	} {
		if got := r.types[cloud(kind)]; got != want {
			w.Errorf("the log has %d of %s, want %d", got, kind, want)
		}
	}
	if minted, revoked := r.types[cloud(events.TypeCredentialMinted)], r.types[cloud(events.TypeCredentialRevoked)]; minted == 0 || revoked < minted {
		w.Errorf("%d credentials were minted, %d revoked", minted, revoked)
	}
	got := map[events.Verb]int{}
	for op, verb := range r.verbs {
		switch r.ends[op] {
		case "":
			w.Errorf("%s (%s) has no end", verb, op)
		case "landed":
			got[verb]++
		}
		if r.of[op] != l.spawned.Environment {
			w.Errorf("%s (%s) is on environment %s, the client was told of %s", verb, op, r.of[op], l.spawned.Environment)
		}
	}
	if landed != nil && !maps.Equal(got, landed) {
		w.Errorf("the log says that so many landed: %v, want %v", got, landed)
	}
	w.views(l)
	w.files(l)
	w.berth("replay", "--verify")
	w.berth("verify")
	return r
}

// views checks what readers are shown at the end.
func (w *world) views(l life) {
	w.Helper()
	w.do("the views", func(ctx context.Context, c *client.Client) error {
		slots, err := client.Call(ctx, c, commands.Slots, commands.SlotsInput{Names: []string{name}, IncludeRetired: true})
		if err != nil {
			return err
		}
		if len(slots.Items) != 1 || slots.Items[0].UID != l.spawned.UID || slots.Items[0].Head.State != head.Retired ||
			slots.Items[0].Head.Gate != head.GateRetired || slots.Items[0].Head.Credentials != 0 {
			w.Errorf("the slot at the end: %+v", slots.Items)
		}
		goals, err := client.Call(ctx, c, commands.Goals, commands.GoalsInput{})
		if err != nil {
			return err
		}
		if len(goals.Items) != 0 {
			w.Errorf("open goals at the end: %+v", goals.Items)
		}
		hosts, err := client.Call(ctx, c, commands.Hosts, commands.Empty{})
		if err != nil {
			return err
		}
		for p, facts := range hosts.Providers {
			free, all := hosts.Headroom[p], facts.Allocatable
			free.DiskGiB, all.DiskGiB = 0, 0 // of this machine's disk
			if !reflect.DeepEqual(free, all) {
				w.Errorf("quota of %s leaked: %+v is free of %+v", p, free, all)
			}
		}
		// The name is free: asking for it would be accepted.
		_, err = client.DryRun(ctx, c, commands.Spawn, commands.SpawnInput{Name: name, Provider: "process", Command: []string{"true"}})
		return err
	})
}

// files checks what is left on this host: no credential, and the export whole.
func (w *world) files(l life) {
	w.Helper()
	if left, err := os.ReadDir(filepath.Join(w.dir, "material")); err != nil || len(left) != 0 {
		w.Errorf("material at the end: %v, %v", left, err)
	}
	if l.file.SHA256 == "" {
		return
	}
	files, err := os.ReadDir(filepath.Join(w.dir, "exports"))
	if err != nil || len(files) != 1 {
		w.Fatalf("exported files: %v, %v", files, err)
	}
	b, err := os.ReadFile(filepath.Join(w.dir, "exports", files[0].Name()))
	w.must(err)
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != l.file.SHA256 || int64(len(b)) != l.file.ByteLength {
		w.Errorf("the exported file is not what the goal answered: %+v", l.file)
	}
}

// drilled lays the log beside what the drill provider really did.
func (w *world) drilled(l life, r record) {
	w.Helper()
	s, err := drill.ReadStatus(filepath.Join(w.dir, "drill"), time.Now())
	w.must(err)
	if len(s.Environments) != 0 {
		w.Errorf("the provider still holds %+v", s.Environments)
	}
	// One machine of the start, and one of the restore.
	if len(s.Tombstones) != 1 || s.Tombstones[0].ID != l.spawned.Environment || s.Tombstones[0].State != "destroyed" || s.Tombstones[0].Incarnation != 2 {
		w.Fatalf("the provider had %+v; the client was told of %s", s.Tombstones, l.spawned.Environment)
	}
	truth := map[events.OperationID]string{}
	for _, o := range s.Tombstones[0].Operations {
		truth[o.ID] = o.State
		if _, known := r.verbs[o.ID]; !known {
			w.Errorf("the provider was asked for %s (%s), of which the log knows nothing (law 1)", o.Verb, o.ID)
		}
	}
	for op, verb := range r.verbs {
		if end, did := r.ends[op], truth[op]; end != did && !(did == "" && slices.Contains([]string{"refused", "excluded"}, end)) {
			w.Errorf("%s (%s): the log says %s, the provider did %q", verb, op, end, did)
		}
	}
}
