package powercut

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"berth"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/internal/embedded"
	"berth/internal/prove/loopdisk"
	"berth/providers/drill"
)

// Law 1 and decision 4: what was acknowledged is synced, and an intent is
// synced before its effect (scenario 67).
func TestTheWholeManagerLosesItsPower(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, durability is not shown here: cutting the power takes seconds")
	}
	if !loopdisk.Privately(t) {
		return
	}
	disks, cuts := 1, 1
	if os.Getenv("BERTH_PROVE") != "" {
		disks, cuts = 4, 5
	}
	total := 0
	for _, c := range cases() {
		for d := range disks {
			t.Run(fmt.Sprintf("%s/%s/disk%d", c.profile, c.blocks, d), func(t *testing.T) {
				p := newPlace(t, "--durability", c.profile)
				u := p.start()
				if c.blocks != jetstream.S2Compression {
					u.kill()
					p.keep(c.blocks)
					u = p.start()
				}
				for round := range cuts {
					least := 150
					if cuts > 1 {
						least = 20 + rand.IntN(600)
					}
					u = p.cut(u, round, u.tip()+least)
					total++
				}
				p.doctor(c.profile)
			})
		}
	}
	t.Logf("%d power cuts, after each of which everything acknowledged was there", total)
}

// space is the one that a manager has if it is told of none.
const space events.Space = "default"

// kept is a way to keep the log.
type kept struct {
	profile string
	blocks  jetstream.StoreCompression
}

// cases are both profiles with the log's blocks compressed and not. `go test`
// takes two of them, which have each profile and each kind of block once.
func cases() []kept {
	two := []kept{{"strict", jetstream.S2Compression}, {"group", jetstream.NoCompression}}
	if os.Getenv("BERTH_PROVE") == "" {
		return two
	}
	return append(two, kept{"strict", jetstream.NoCompression}, kept{"group", jetstream.S2Compression})
}

// keep makes the log keep its blocks compressed or not, with a server of its
// own while no manager runs: a log is opened with either, and only new blocks
// follow the change.
func (p *place) keep(blocks jetstream.StoreCompression) {
	p.Helper()
	d, err := berth.OpenDataDir(p.data, space)
	p.must(err)
	defer d.Close()
	srv, err := embedded.Start(p.Context(), embedded.Options{StoreDir: d.File("nats"), Name: "berth-" + string(d.Identity.Instance), SyncAlways: true})
	p.must(err)
	defer srv.Stop()
	nc, err := srv.Connect()
	p.must(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	p.must(err)
	s, err := js.Stream(p.Context(), events.StreamName(space))
	p.must(err)
	c := s.CachedInfo().Config
	c.Compression = blocks
	s, err = js.UpdateStream(p.Context(), c)
	p.must(err)
	if got := s.CachedInfo().Config.Compression; got != blocks {
		p.Fatalf("the log keeps its blocks as %s, not as %s", got, blocks)
	}
}

// tip is how many events there are, about.
func (u *up) tip() int {
	u.p.Helper()
	st, err := client.Call(u.p.Context(), u.client, commands.Status, commands.Empty{})
	u.p.must(err)
	return int(st.Tip)
}

// cut cuts the power once least events were seen, starts again and compares.
func (p *place) cut(u *up, round, least int) *up {
	p.Helper()
	a := u.load(round)
	a.enough(p, least)
	u.freeze()
	p.disk.Cut()
	u.kill()
	a.end()
	truth, err := drill.ReadStatus(p.truth, time.Now())
	p.must(err)
	p.disk.Remount()

	u = p.start()
	u.nothingIsLost(a)
	u.converges()
	log := u.log()
	for at, id := range a.events {
		if log.ids[at] != id {
			p.Errorf("event %s was seen at %s before the cut; there is %q now", id, at, log.ids[at])
		}
	}
	effects := 0
	for _, c := range truth.Calls {
		if c.Operation == "" || !slices.Contains(events.Verbs, events.Verb(c.Verb)) {
			continue
		}
		effects++
		if !log.dispatched[c.Operation] {
			p.Errorf("the provider was asked to %s %s by operation %s, of which the log knows nothing", c.Verb, c.Alias, c.Operation)
		}
	}
	u.holdsNothingElse()
	p.Logf("round %d: %d events, %d goals and %d writes were acknowledged before the cut, %d effects: all there", round, len(a.events), len(a.goals), len(a.writes), effects)
	return u
}

// nothingIsLost asks for everything that was answered.
func (u *up) nothingIsLost(a *told) {
	p := u.p
	p.Helper()
	for id, was := range a.goals {
		g, err := client.Call(p.Context(), u.client, commands.GoalGet, commands.GoalRef{Goal: string(id)})
		if err != nil || g.Allocated.UID != was.uid || was.state != "" && g.State != was.state {
			p.Errorf("goal %s was accepted for %s and %q; now it is %+v, %v", id, was.uid, was.state, g, err)
		}
	}
}

// converges waits until nothing is open.
func (u *up) converges() {
	p := u.p
	p.Helper()
	for end := time.Now().Add(loopdisk.Within); ; time.Sleep(50 * time.Millisecond) {
		st, err := client.Call(p.Context(), u.client, commands.Status, commands.Empty{})
		p.must(err)
		e := st.Engine
		if e["open"]+e["goals"]+e["inFlight"]+e["queued"]+e["failing"] == 0 && st.AsOf >= st.Tip {
			return
		}
		if time.Now().After(end) {
			p.Fatalf("after the cut the manager does not come to rest: %+v", st)
		}
	}
}

// book is what the log holds.
type book struct {
	ids        map[string]events.EventID
	dispatched map[events.OperationID]bool
}

func (u *up) log() book {
	u.p.Helper()
	b := book{map[string]events.EventID{}, map[events.OperationID]bool{}}
	ctx, cancel := context.WithTimeout(u.p.Context(), loopdisk.Within)
	defer cancel()
	_, err := u.client.Events(ctx, 1, false, func(e commands.CloudEvent) error {
		b.ids[fmt.Sprintf("%s.%d", e.Sequence, e.Index)] = e.ID
		if e.Type == "berth."+events.TypeOperationDispatched+".v1" {
			var d events.OperationDispatched
			if err := json.Unmarshal(e.Data, &d); err != nil {
				return err
			}
			b.dispatched[d.Operation] = true
		}
		return nil
	})
	u.p.must(err)
	return b
}

// holdsNothingElse compares what the provider holds with the records, and the
// records with the log. A manager may be found at rest between two steps, before
// its engine has heard of the first: only what stays different is wrong.
func (u *up) holdsNothingElse() {
	p := u.p
	p.Helper()
	wrong := u.unlike()
	for end := time.Now().Add(loopdisk.Within); len(wrong) > 0 && time.Now().Before(end); wrong = u.unlike() {
		time.Sleep(50 * time.Millisecond)
		u.converges()
	}
	for _, w := range wrong {
		p.Errorf("%s", w)
	}
	var replay struct {
		Mismatches []json.RawMessage `json:"mismatches"`
	}
	p.berth(&replay, "replay", "--verify")
	if len(replay.Mismatches) > 0 {
		p.Errorf("replay differs from what is served: %s", replay.Mismatches)
	}
	var chains map[string]any
	p.berth(&chains, "verify")
}

// unlike says where provider and records differ.
func (u *up) unlike() (wrong []string) {
	p := u.p
	p.Helper()
	truth, err := drill.ReadStatus(p.truth, time.Now())
	p.must(err)
	owned := map[events.EnvironmentID]string{}
	p.must(u.client.Ls(p.Context(), commands.LsInput{}, func(r commands.LsResult) error {
		for _, i := range r.Items {
			if owned[i.Environment.ID] != "" {
				wrong = append(wrong, fmt.Sprintf("two records own %s", i.Environment.ID))
			}
			owned[i.Environment.ID] = string(i.Status)
		}
		return nil
	}))
	for _, e := range truth.Environments {
		if owned[e.ID] == "" {
			wrong = append(wrong, fmt.Sprintf("the provider holds %s (%s, %s), which no record owns", e.ID, e.Alias, e.State))
		}
		delete(owned, e.ID)
	}
	for id, status := range owned {
		wrong = append(wrong, fmt.Sprintf("a record says that %s is %s; the provider does not hold it", id, status))
	}
	return wrong
}

// doctor says what an answer of this manager means.
func (p *place) doctor(profile string) {
	p.Helper()
	var d struct {
		Checks []struct{ Name, Status, Detail string } `json:"checks"`
	}
	p.berth(&d, "doctor")
	for _, c := range d.Checks {
		if c.Name == "durability" {
			if c.Status != "ok" || len(c.Detail) < len(profile) || c.Detail[:len(profile)] != profile {
				p.Errorf("doctor says of durability: %s, %s", c.Status, c.Detail)
			}
			return
		}
	}
	p.Errorf("doctor says nothing of durability: %+v", d)
}
