package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"berth"
	"berth/events/eventlog/checkpoint"
	"berth/events/eventlog/verify"
	"berth/events/fault"
)

// provedRecords is how many records doctor proves, from the first: a start
// folds the log from its newest snapshot only, and what is damaged before that
// would be found when somebody asks for it.
const provedRecords = 50_000

// historyCheck tells what the bounded proof of the log found.
func historyCheck(f *findings, r verify.Report, tip uint64, err error) {
	const whole = "`berth verify` proves all of it and lists what is wrong; bring back the newest backup of the data directory"
	switch {
	case err != nil:
		f.add("history", "fail", whole, "the log can't be read: %s", fault.From(err).Message)
	case !r.OK():
		f.add("history", "fail", whole, "record %d on %s: %s", r.Problems[0].Sequence, r.Problems[0].Boundary, r.Problems[0].Text)
	case r.Tip < tip:
		f.add("history", "ok", "", "the first %d of %d records are whole", r.Tip, tip)
	default:
		f.add("history", "ok", "", "all %d records are whole", r.Tip)
	}
}

// restingCheck proves the log of a directory that nobody serves. One that is
// not there, or that another process holds, is nothing to complain of.
func (a *app) restingCheck(ctx context.Context, f *findings) {
	r, err := a.verifyOffline(ctx, verify.Options{Limit: provedRecords})
	if code := fault.CodeOf(err); code == fault.NotFound || code == fault.Conflict {
		return
	}
	historyCheck(f, r, r.Tip, err)
}

// providerChecks looks at the directory of a served provider; false if --data
// is none.
func (a *app) providerChecks(ctx context.Context, f *findings) bool {
	dir, err := a.dataDir()
	if err != nil || a.server != "" || a.context != "" {
		return false
	}
	var id berth.Identity
	if raw, err := os.ReadFile(filepath.Join(dir, "identity.json")); err != nil || json.Unmarshal(raw, &id) != nil || id.Space != berth.ServedSpace {
		return false
	}
	var e served
	raw, err := os.ReadFile(filepath.Join(dir, endpointName))
	known := err == nil && json.Unmarshal(raw, &e) == nil
	d, err := berth.OpenDataDir(dir, berth.ServedSpace)
	switch {
	case err == nil:
		_ = d.Close()
		f.add("provider", "warn", "berth provider serve --dir "+quote(dir)+" ...: it takes up what lives", "nobody serves %s", dir)
	case fault.CodeOf(err) != fault.Conflict:
		f.add("provider", "fail", fault.From(err).Hint, "%s", fault.From(err).Message)
	case !known:
		f.add("provider", "warn", "", "%s is in use, and does not say where it is served", dir)
	default:
		f.add("provider", "ok", "", "%s is served at %s by process %d", e.Provider, e.URL, e.PID)
	}
	if err := berth.CheckDisk(dir); err != nil {
		f.add("disk", "fail", fault.From(err).Hint, "%s", fault.From(err).Message)
	} else {
		f.add("disk", "ok", "", "there is space for new work")
	}
	c, kept, err := checkpoint.Read(dir)
	switch {
	case err != nil:
		f.add("checkpoint", "fail", fault.From(err).Hint, "%s", fault.From(err).Message)
	case !kept:
		f.add("checkpoint", "warn", "the next start writes one", "there is none: a log that is lost would not be noticed")
	default:
		f.add("checkpoint", "ok", "", "through record %d", c.Sequence)
	}
	a.restingCheck(ctx, f)
	return true
}
