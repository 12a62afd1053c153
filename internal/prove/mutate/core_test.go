package mutate

// core are mutants of what decides: aggregates, the engine's kernel and events.
var core = []mutant{
	{"dispatch while another operation is open (law 2)", "aggregates/environment/journal.go",
		`case on == OnDispatch && s.Operation != nil:`, `case false:`, "./aggregates", ""},
	{"free a name before the environment is proved gone (law 2)", "aggregates/decide.go",
		`case env.Ref != "" && !env.Gone:`, `case false:`, "./aggregates", ""},
	{"free a name while an operation is open (law 2)", "aggregates/decide.go",
		`case env.Operation != nil:`, `case env.Operation != nil && false:`, "./aggregates", ""},
	{"free a name before the host is cleaned", "aggregates/decide.go",
		`case !s.Slot.Cleaned:`, `case false:`, "./aggregates", ""},
	{"let a deadline go back (R30, scenario 31)", "aggregates/environment/fold.go",
		`if s.Deadline == nil || e.Deadline.After(*s.Deadline) {`, `if true {`, "./aggregates", ""},
	{"queue without a limit", "aggregates/environment/journal.go",
		`case on == OnPlan && len(s.Queue) >= MaxQueue:`, `case false:`, "./aggregates", ""},
	{"accept an extension that shortens a life (scenario 31)", "aggregates/plan.go",
		`case !e.Arguments.ExtendTo.After(*until):`, `case false:`, "./aggregates", ""},
	{"extend a life that is over (scenario 30)", "aggregates/plan.go",
		`return env.Deadline != nil && !now.Before(*env.Deadline) || env.ExpiresAt`, `return env.ExpiresAt`, "./aggregates", ""},
	{"bring a life that is over back (scenario 30)", "aggregates/plan.go",
		`	case lifeOver(env, now):
		return fault.New(fault.Expired, "the lifetime of %s is over", s.Alias)
	}
	return nil
}

// coming`, `	}
	return nil
}

// coming`, "./aggregates", ""},
	{"restore a delegated seat, whose hand-off was taken (H6)", "aggregates/plan.go",
		`case env.Plan.Delegated:`, `case false:`, "./aggregates", ""},
	{"finish a retirement with credentials that hold", "aggregates/head/head.go",
		`case len(s.Revoke()) > 0:`, `case false:`, "./aggregates", ""},
	{"release a credential of an earlier generation (2.3)", "aggregates/head/head.go",
		`case c.Revoked || c.Generation != s.Gate.Generation:`, `case c.Revoked:`, "./aggregates", ""},
	{"bring a retired lifecycle back", "aggregates/slot/slot.go",
		`if uid == s.UID {`, `if uid == "" {`, "./aggregates", ""},
	{"answer a command id that was used for another request (decision 5)", "aggregates/commands.go",
		`if e.Fingerprint != fingerprint {`, `if false {`, "./aggregates", ""},
	{"take a forgotten command id for a new one (decision 5)", "aggregates/commands.go",
		`ok && !c.Forgotten.IsZero() && !at.After(c.Forgotten)`, `ok && false && !at.After(c.Forgotten)`, "./aggregates", ""},
	{"let an epoch stand still or go back (law 3)", "aggregates/instance/instance.go",
		`if e.Epoch <= s.Epoch {`, `if false {`, "./aggregates", ""},
	{"let an older epoch take a seat over (decision 1)", "aggregates/decide.go",
		`case s.Slot.Epoch > epoch:`, `case false:`, "./aggregates", ""},
	{"bind a goal id to a second request (scenario 3)", "aggregates/goal/goal.go",
		`if s.Fingerprint != e.Fingerprint {`, `if false {`, "./aggregates", ""},
	{"fold on after a record that can't be read (law 4)", "aggregates/seat.go",
		`if s.Quarantine != nil {
		return false
	}`, ``, "./aggregates", ""},
	{"take a turn back after its deadline (2.6)", "aggregates/turns.go",
		`case t.Phase == turns.Pending && !now.Before(t.Deadline):`, `case false:`, "./aggregates", ""},
	{"let a turn wait after its deadline (2.6)", "aggregates/turns.go",
		`case now.Before(t.Deadline):`, `default:`, "./aggregates", ""},
	{"answer a seat whose lifecycle is over (decision 21)", "aggregates/turns.go",
		`if !s.Slot.Held() || s.Slot.UID != uid || s.Head.UID != uid {`, `if !s.Slot.Held() {`, "./aggregates", ""},
	{"fold a part of an atomic publish (decision 3)", "aggregates/seat.go",
		`if r.Torn {`, `if false {`, "./aggregates", ""},

	{"take a lost answer for a refusal, and try again (H12)", "sagas/outcome.go",
		`case out.Kind == providers.Refused:`, `case out.Kind != providers.Done && !late:`, "./sagas", ""},
	{"create a delegated seat a second time (H12)", "sagas/when.go",
		`return e.Plan.Delegated && e.Excluded+e.Throttled > 0`, `return false`, "./internal/prove/scenario", "Delegated"},
	{"keep a hand-off that was given (H6)", "sagas/act.go",
		`e.dropHandOff(uid, op)`, `_ = uid`, "./internal/prove/scenario", "Delegated"},
	{"leave a hand-off file that was refused (H8)", "internal/handoff/file_unix.go",
		`if err := unix.Unlink(path); err != nil && !errors.Is(err, unix.ENOENT) {`, `if err := error(nil); openErr == nil && errors.Is(unix.Unlink(path), unix.EISDIR) || err != nil {`, "./internal/handoff", "Take"},
	{"take 'still open' for 'can never land' (H13)", "sagas/outcome.go",
		`case providers.Excluded:`, `case providers.Excluded, providers.Open:`, "./sagas", ""},
	{"drop a late answer (scenario 6)", "sagas/act.go",
		`e.post(ent, answered(op, out), false) // scenario 6`, `_, _ = op, out`, "./sagas", "Late"},
	{"act without taking the seat over (decision 1)", "sagas/kernel.go",
		`a.Events = append(taken, a.Events...)`, `_ = taken`, "./sagas", ""},
	{"act on a seat that a later epoch holds (law 3)", "sagas/kernel.go",
		`v.Seat.Slot.Holder != v.Self.Instance, v.Seat.Slot.Epoch > v.Self.Epoch:`, `v.Seat.Slot.Holder != v.Self.Instance:`, "./sagas/...", ""},
	{"destroy without a stop before it (2.5)", "sagas/when.go",
		`return tried < MaxStops`, `return tried < 0`, "./sagas/...", ""},
	{"let a life go on after its deadline (R26)", "sagas/when.go",
		`return !v.terminal() && d != nil && !v.Now.Before(*d)`, `return !v.terminal() && d != nil && v.Now.Before(v.Now)`, "./sagas", "Expiry"},
	{"keep a credential of a life that is over", "sagas/when.go",
		`return len(v.Seat.Head.Revoke()) > 0`, `return false`, "./sagas", "Life|Retire"},
	{"accept a file whose digest is another (R37)", "sagas/accept.go",
		`case sum != file.SHA256:`, `case sum == "":`, "./sagas", "Export"},

	{"skip an upcast", "events/registry.go",
		`if data, err = r.older[v-1](data); err != nil {`, `if err != nil {`, "./events", ""},
	{"read an event of a newer version as if it were known (scenario 74)", "events/registry.go",
		`if version > r.version {`, `if version > r.version+1 {`, "./events", ""},
	{"believe the hash that a record states", "events/hash.go",
		`return computed, ok && computed == stated`, `return computed, ok && stated == stated`, "./events", ""},
	{"miss a record that does not follow the one before it", "events/eventlog/verify/verify.go",
		`if r.Broken == nil && (r.Previous != prior.sequence || r.Prior != prior.hash) {`, `if false {`, "./events/eventlog/verify", ""},
}
