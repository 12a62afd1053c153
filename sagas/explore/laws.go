package explore

import (
	"time"

	"berth/aggregates"
	"berth/aggregates/environment"
	"berth/aggregates/head"
	"berth/aggregates/slot"
	"berth/events"
	"berth/sagas"
)

// Law is what is asserted, by the number that a broken one is told with.
type Law struct{ Number, Text string }

// Laws is everything that a walk asserts.
var Laws = []Law{
	{"law 1", "a call is made only for the intent that is open in the log"},
	{"law 2", "a name is free only when nothing of its life exists or is open; one mutation at a time"},
	{"law 2, E9", "an environment is never created twice"},
	{"law 2, H13", "an operation is settled only when it has landed or can never land"},
	{"law 2, E8", "what has landed is never recorded as not executed"},
	{"law 3", "an epoch that is over appends nothing and does nothing; each epoch takes a seat before it acts (decision 1)"},
	{"law 4", "a boundary that can't be read is left alone"},
	{"law 5", "a refusal is typed, says that nothing was executed, and appends nothing"},
	{"2.5", "a name is free only with every credential revoked, head and gate retired; from the end's first event on nothing is minted"},
	{"2.6, turns", "a turn is given back in time or dropped in truth, once; one that is over is ended before anything else is done"},
	{"2.6", "a goal has one terminal and at most one settlement; when all is over, it has them"},
	{"R7, R8", "after a refused probe nothing is reserved and no credential is made"},
	{"R9, R89", "no verb is dispatched that the probe did not find"},
	{"R26", "a life whose deadline is over is ended, whatever else is to do"},
	{"R28", "one extension raises the deadline by one step at most"},
	{"R30, E8", "what has not landed is never recorded as done"},
	{"R32, E8", "a lost answer is uncertain"},
	{"R37", "a file that is not what the provider answered is not accepted"},
	{"R52", "a credential is made only after the reservation"},
	{"R56", "the credential is in the ledger before the guest is built, and released when it starts"},
	{"R61", "a lifecycle uid never returns"},
	{"R63, R64", "what was put back to a checkpoint is recorded as another incarnation of the same environment, with the same deadline"},
	{"R67", "a record is stopped only by proof"},
	{"R92", "a reference is bound only when something was created"},
	{"D7, D11", "an intent is enrolled by its executor alone, when its seat is active, and never after a sweep"},
	{"D8, D10", "an intent is aborted or retired only with the proof that its lifecycle is over"},
	{"D16, D17", "a name that an intent holds is refused to all others, and held until there is an outcome or it is let go"},
	{"D20", "a seat that was launched by an intent is ended when the run that launched it is over"},
	{"H11", "a spawn that succeeded has run, a reservation that succeeded was made"},
	{"H12", "what is uncertain is asked about under its own id"},
	{"H16", "an end stops the seat, then revokes, then destroys"},
	{"scenario 6", "the second answer for an operation decides nothing"},
	{"scenario 13", "a held name refuses another claim, a free one does not"},
	{"scenario 21", "a reservation is held until the end is proved, and released then"},
	{"scenario 31", "an extension never shortens a life"},
	{"decision 13", "a written-off environment is pursued until it is proved gone"},
	{"decision 14", "a goal is uncertain not before its readiness deadline, and is settled"},
	{"independence", "nothing of one name changes another (asserted by a walk of two names)"},
	{"deadlock", "something is done, or waited for"},
	{"livelock", "from every state everything can come to its end"},
}

// holds are what must be so in every state.
func (w *world) holds() error {
	n := w.current()
	if n < 0 {
		return nil
	}
	if err := w.free(n); err != nil {
		return err
	}
	if err := w.holdsName(); err != nil {
		return err
	}
	s := *w.seat
	e := s.Environment
	w.r.checks["2.5"]++
	w.r.checks["R7, R8"]++
	w.r.checks["R92"]++
	w.r.checks["deadlock"]++
	switch {
	case s.Slot.Phase == slot.Terminalizing && (s.Head.Phase != head.Retiring || s.Head.Gate.Phase != head.GateFrozen):
		return w.broken("2.5", "the life is ending, its head is %s and its gate %s", s.Head.Phase, s.Head.Gate.Phase)
	case e.Refusal != nil && e.ProbedAt.IsZero() && (w.lives[n].truth != "" || len(s.Head.Ledger) > 0):
		return w.broken("R7, R8", "the probe was refused, and something was reserved or minted")
	case e.Ref != "" && w.lives[n].truth == "":
		return w.broken("R92", "a reference is bound and nothing was ever created")
	}
	if err := w.acts(n, false); err != nil {
		return err
	}
	for n, l := range w.lives {
		if l == nil || l.heir == nil {
			continue
		}
		w.r.checks["decision 13"]++
		if settled(l.heir.Environment) {
			if l.exists() {
				return w.broken("decision 13", "a written-off environment is settled and %s", l.truth)
			}
		} else if err := w.acts(n, true); err != nil {
			return err
		}
	}
	return nil
}

// free is what holds of a name that is free, and of what is recorded as gone.
func (w *world) free(n int) error {
	s, l := *w.seat, w.lives[n]
	e := s.Environment
	w.r.checks["law 2"]++
	w.r.checks["scenario 21"]++
	switch {
	case e.Gone && l.exists() && !e.WrittenOff:
		return w.broken("law 2", "recorded as gone and the environment is %s", l.truth)
	case !retired(s):
		return nil
	case !e.WrittenOff && l.exists():
		return w.broken("law 2", "the name is free and the environment is %s", l.truth)
	case open(e):
		return w.broken("law 2", "the name is free and an operation is open")
	case e.Reserved():
		return w.broken("scenario 21", "the name is free and its reservation is held")
	case len(s.Head.Revoke()) > 0:
		return w.broken("2.5", "the name is free and a credential still holds")
	case s.Head.Phase != head.Retired || s.Head.Gate.Phase != head.GateRetired:
		return w.broken("2.5", "the name is free, its head is %s and its gate %s", s.Head.Phase, s.Head.Gate.Phase)
	}
	return nil
}

// acts says that the kernel does something, or knows what it waits for.
func (w *world) acts(n int, heir bool) error {
	v := w.view(n, heir)
	if !v.Seat.Slot.Held() {
		return nil
	}
	a := w.r.Next(&v)
	if a.Kind == sagas.Idle && a.Wake.IsZero() && !v.Try.InFlight {
		return w.broken("deadlock", "nothing is done and nothing is waited for (%s)", a.Step)
	}
	if !heir {
		if lapsed, err := w.lapses(a.Step); lapsed {
			return err
		}
		if err := w.kept(a); err != nil {
			return err
		}
	}
	d := v.Seat.Environment.Deadline
	if heir || d == nil || w.now().Before(*d) || v.Seat.Slot.Phase == slot.Terminalizing || open(v.Seat.Environment) {
		return nil
	}
	if w.r.checks["R26"]++; a.Step != "expire" && a.Step != "sweep" { // which ends it as well
		return w.broken("R26", "the lifetime is over and what is done is %s (%s)", a.Kind, a.Step)
	}
	return nil
}

// over says that nothing is left of what was asked: another life may come, or
// nothing ever.
func (w *world) over() bool {
	if w.brief() {
		return true
	}
	if w.seat.Slot.Held() {
		return false
	}
	for _, l := range w.lives {
		if l == nil {
			continue
		}
		if l.heir != nil && !settled(l.heir.Environment) || !l.claimed && !l.goal.State.Terminal() {
			return false
		}
		seat := w.seatOf(l)
		if len(w.r.NextGoal(l.goal, seat, l.boundary, w.now())) > 0 || len(w.r.NextGoal(l.file, seat, l.export, w.now())) > 0 || len(w.r.NextGoal(l.turn, seat, l.asked, w.now())) > 0 {
			return false
		}
	}
	return true
}

// brief says that the walk goes no further into another life.
func (w *world) brief() bool { return w.left.Brief && w.lives[1] != nil && w.lives[1].claimed }

// atEnd is what holds when all is over.
func (w *world) atEnd() error {
	if w.brief() {
		return nil
	}
	for _, l := range w.lives {
		if l == nil {
			continue
		}
		w.r.checks["2.6"]++
		w.r.checks["decision 14"]++
		switch {
		case !l.goal.State.Terminal(), l.file.State != "" && !l.file.State.Terminal(), l.turn.State != "" && !l.turn.State.Terminal():
			return w.broken("2.6", "all is over, the goal is %q, its export's %q and its turn's %q", l.goal.State, l.file.State, l.turn.State)
		case l.goal.State == events.GoalUncertain && l.goal.Settled == nil:
			return w.broken("decision 14", "all is over and the uncertain goal is not settled")
		case l.exists():
			return w.broken("law 2", "all is over and the environment is %s", l.truth)
		}
	}
	return nil
}

// transition is what must hold of one event.
func (w *world) transition(n int, before, after aggregates.Seat, e events.Event) error {
	l, was, is := w.lives[n], before.Environment, after.Environment
	if is.Record == environment.Stopped && was.Record != environment.Stopped {
		if w.r.checks["R67"]++; l.truth != events.StateStopped && l.truth != events.StateAbsent {
			return w.broken("R67", "the record is stopped and the environment is %s", l.truth)
		}
	}
	if is.Restores > was.Restores {
		if w.r.checks["R63, R64"]++; is.Incarnation == was.Incarnation || is.ID != was.ID || is.UID != was.UID || !is.Deadline.Equal(*was.Deadline) {
			return w.broken("R63, R64", "a restore changed incarnation %q of environment %s to %q of %s", was.Incarnation, was.ID, is.Incarnation, is.ID)
		}
	}
	switch e := e.(type) {
	case events.CredentialMinted:
		w.r.checks["R52"]++
		w.r.checks["2.5"]++
		switch {
		case was.Ref == "":
			return w.broken("R52", "a credential is made before the reservation")
		case before.Slot.Phase == slot.Terminalizing:
			return w.broken("2.5", "a credential is made for a life that is ending")
		}
	case events.FileAccepted:
		if w.r.checks["R37"]++; l.broken {
			return w.broken("R37", "a file is accepted that is not what the provider answered")
		}
	case events.DeadlineChanged:
		if w.r.checks["scenario 31"]++; was.Deadline != nil && is.Deadline.Before(*was.Deadline) {
			return w.broken("scenario 31", "the deadline was moved back")
		}
	case events.TurnYielded:
		t, _ := before.Turns.Find(e.Turn)
		return w.given(n, t, e)
	case events.TurnDropped:
		t, _ := before.Turns.Find(e.Turn)
		return w.given(n, t, e)
	case events.OperationDispatched:
		return w.dispatched(before, e)
	case events.IntentEnded:
		return w.intended(before, after, e)
	}
	return nil
}

// dispatched is what must hold before a verb goes out.
func (w *world) dispatched(before aggregates.Seat, e events.OperationDispatched) error {
	env, caps := before.Environment, before.Environment.Capabilities
	heir := env.Target == events.TargetRetired
	able := map[events.Verb]bool{
		events.VerbPause: caps.PauseKeepsMemory, events.VerbCheckpoint: caps.ColdCheckpoint || caps.MemoryCheckpoint,
		events.VerbRestore: caps.Snapshot,
		events.VerbExport:  caps.Export, events.VerbExtend: caps.Extend.StepMs > 0,
	}
	if can, asks := able[e.Verb]; asks {
		if w.r.checks["R9, R89"]++; !can {
			return w.broken("R9, R89", "%s is dispatched to a provider that can't", e.Verb)
		}
	}
	if before.Slot.Epoch != w.self.Epoch && w.sleep == nil {
		return w.broken("law 3", "epoch %d dispatches on a seat that is of epoch %d", w.self.Epoch, before.Slot.Epoch)
	}
	switch e.Verb {
	case events.VerbReserve:
		if w.r.checks["R7, R8"]++; env.Refusal != nil || env.ProbedAt.IsZero() {
			return w.broken("R7, R8", "a reservation goes out without a good probe")
		}
	case events.VerbProvision:
		if w.r.checks["R56"]++; len(before.Head.Ledger) == 0 {
			return w.broken("R56", "the guest is built without a credential in the ledger")
		}
	case events.VerbStart:
		if w.r.checks["R56"]++; before.Head.Current == "" {
			return w.broken("R56", "the guest is started without its credential released")
		}
	case events.VerbExtend:
		w.r.checks["R28"]++
		if most := env.ExpiresAt.Add(time.Duration(caps.Extend.StepMs) * time.Millisecond); e.Arguments.ExtendTo.After(most) {
			return w.broken("R28", "one extension raises the deadline by %s", e.Arguments.ExtendTo.Sub(*env.ExpiresAt))
		}
	case events.VerbDestroy:
		w.r.checks["H16"]++
		stops := 0
		for _, o := range env.Done {
			if o.Verb == events.VerbStop {
				stops++
			}
		}
		runs := env.Record == environment.Running || env.Started && env.Record == environment.Creating
		if runs && stops < sagas.MaxStops || !heir && len(before.Head.Revoke()) > 0 {
			return w.broken("H16", "destroy goes out before the seat is stopped and its credentials are revoked")
		}
	}
	return nil
}
