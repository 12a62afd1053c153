package sagas_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nkeys"

	"berth/aggregates"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/sagas"
	"berth/sagas/sagastest"
)

// reaching is the world's provider, whose guests reach https sources only. It
// keeps what it is called with.
type reaching struct {
	*sagastest.Provider
	mu  sync.Mutex
	ops []providers.Operation
}

func (r *reaching) Do(ctx context.Context, op providers.Operation) providers.Outcome {
	r.mu.Lock()
	r.ops = append(r.ops, op)
	r.mu.Unlock()
	return r.Provider.Do(ctx, op)
}

func (r *reaching) ExposeBearer(_ events.Plan, s events.BearerSource) error {
	if s.Kind != events.BearerHTTPS {
		return providers.CannotExpose(r.Name(), s.Kind)
	}
	return nil
}

func (r *reaching) called() []providers.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops)
}

// bearing makes a world whose manager has the source for its provider.
func bearing(t *testing.T, source events.BearerSource) (*sagastest.World, *reaching, func(events.BearerSource)) {
	w := sagastest.Prepare(t)
	r := &reaching{Provider: w.Provider}
	use := func(source events.BearerSource) {
		w.Options = func(o *sagas.Options) {
			var err error
			if o.Drivers, err = providers.NewRegistry(providers.BundleOf(r, nil)); err != nil {
				t.Fatal(err)
			}
			o.Bearers = map[string]events.BearerSource{r.Name(): source}
		}
	}
	use(source)
	return w, r, use
}

var (
	first  = events.BearerSource{Kind: events.BearerHTTPS, URL: "https://first.example/bearer"}
	second = events.BearerSource{Kind: events.BearerHTTPS, URL: "https://second.example/bearer"}
)

// R45-R47, R52, R53, R57, R62: the source is chosen after preflight and reservation, is
// written down with the credential before anything is staged, and stays what
// it was although the manager is told another one while the life begins; the
// guest starts with its one credential, which nobody exchanged, and with the
// environment that the record has.
func TestTheSourceIsBoundWithTheCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r, use := bearing(t, first)
		w.Start()
		defer w.End()
		w.Spawn("web")
		w.Until("the provision", time.Minute, func() bool { return strings.Contains(w.Story(), events.TypeCredentialMinted) })
		w.Stop()
		use(second)
		w.Start()
		w.Until("running", time.Hour, w.Status("web", aggregates.StatusRunning))

		s := w.Seat("web")
		if row := s.Head.Ledger[0]; len(s.Head.Ledger) != 1 || row.Source == nil || *row.Source != first {
			t.Fatalf("the ledger is %+v", s.Head.Ledger)
		}
		inOrder(t, w.Story(), events.TypeEnvironmentProbed, `"reserve"`, events.TypeOperationConfirmed, events.TypeCredentialMinted, `"provision"`, `"start"`)
		var verbs []events.Verb
		for _, op := range r.called() {
			verbs = append(verbs, op.Verb)
			if op.Verb == events.VerbReserve {
				if len(op.Material) > 0 {
					t.Error("material before the reservation (R45)")
				}
				continue
			}
			isBound(t, s, op, first)
		}
		if want := []events.Verb{events.VerbReserve, events.VerbProvision, events.VerbStart}; !slices.Equal(slices.Compact(verbs), want) {
			t.Errorf("the launch is %v, want %v and nothing else (R57)", verbs, want)
		}
		w.Retire("web")
		w.Until("retired", time.Hour, w.Status("web", aggregates.StatusRetired))

		// The next life takes the source that the manager has now.
		w.Spawn("web")
		w.Until("running", time.Hour, w.Status("web", aggregates.StatusRunning))
		if row := w.Seat("web").Head.Ledger[0]; row.Source == nil || *row.Source != second {
			t.Errorf("the next life has %+v", row.Source)
		}
	})
}

func isBound(t *testing.T, s aggregates.Seat, op providers.Operation, source events.BearerSource) {
	t.Helper()
	req, err := providers.LaunchOf(op.Material)
	if err != nil {
		t.Fatalf("%s: %v", op.Verb, err)
	}
	if got := req.Authentication.BearerSource; got == nil || *got != source {
		t.Errorf("%s has the source %+v (R47)", op.Verb, got)
	}
	if req.Environment != s.Environment.ID || req.UID != s.Slot.UID {
		t.Errorf("%s is of environment %s and lifecycle %s (R62)", op.Verb, req.Environment, req.UID)
	}
	row := s.Head.Ledger[0]
	kp, err := nkeys.FromSeed(op.Material[providers.MaterialCredential])
	if err != nil {
		t.Fatal(err)
	}
	if public, _ := kp.PublicKey(); public != row.Holder {
		t.Errorf("%s brings the credential of %s, the ledger has %s (R57)", op.Verb, public, row.Holder)
	}
	want := events.CredentialDescriptor{ID: row.ID, Holder: row.Holder, Purpose: "agent-credential", Lifetime: "launch"}
	if req.Credential != want || req.Generation != row.Generation {
		t.Errorf("%s has the descriptor %+v, want %+v (R53)", op.Verb, req.Credential, want)
	}
}

// inOrder looks for each text after the one before it.
func inOrder(t *testing.T, story string, texts ...string) {
	t.Helper()
	rest := story
	for _, s := range texts {
		i := strings.Index(rest, s)
		if i < 0 {
			t.Fatalf("%s is not after what comes before it in\n%s", s, story)
		}
		rest = rest[i+len(s):]
	}
}

// R51: a source that guests of this provider do not reach refuses the life
// before anything is reserved or minted, and no other source is tried.
func TestNoOtherSourceIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r, _ := bearing(t, events.BearerSource{Kind: events.BearerSocket, Path: "/run/authority.sock"})
		w.Start()
		defer w.End()
		goal := w.Spawn("web")
		w.Until("the goal's end", time.Hour, w.Ended(goal))
		g := w.Goal(goal)
		if g.State != events.GoalFailed || g.Fault == nil || g.Fault.Code != fault.FailedPrecondition || !strings.Contains(g.Fault.Message, "bearer-source") || !strings.Contains(g.Fault.Message, "socket") {
			t.Errorf("%s %v", g.State, g.Fault)
		}
		if ops := r.called(); len(ops) > 0 || strings.Contains(w.Story(), events.TypeCredentialMinted) {
			t.Errorf("%d operations, and %s", len(ops), w.Story())
		}
	})
}
