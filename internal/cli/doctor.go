package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth"
	"berth/commands"
	"berth/commands/client"
	"berth/events/fault"
)

// finding is one named check of doctor.
type finding struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ok, warn, fail, skip
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// findings is what doctor answers.
type findings struct {
	Checks []finding              `json:"checks"`
	Health *commands.HealthResult `json:"health,omitempty"`
}

func (f *findings) add(name, status, hint, format string, in ...any) {
	if status == "ok" {
		hint = ""
	}
	f.Checks = append(f.Checks, finding{name, status, fmt.Sprintf(format, in...), hint})
}

func (f *findings) failed() bool {
	for _, c := range f.Checks {
		if c.Status == "fail" {
			return true
		}
	}
	return false
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check this machine, the manager and what a person should look at", Args: args(), Example: "  berth doctor\n  berth doctor -o json",
		Long: `Check this machine, the manager and what a person should look at: each check is ok,
warn, fail or skip, with what was seen and what to do. A failed check ends with 1.
It works without a manager too, and then tells what this machine can do. With --data
it also looks at the directory of a served provider.`,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			f := findings{Checks: []finding{}}
			machineChecks(ctx, &f)
			if !a.providerChecks(ctx, &f) {
				a.managerChecks(ctx, &f)
			}
			if err := list(a, f, f.Checks, func(w io.Writer) { a.sayFindings(w, f) }); err != nil {
				return err
			}
			if f.failed() {
				return &exitError{fault.ExitFailure}
			}
			return nil
		},
	}
}

func (a *app) sayFindings(w io.Writer, f findings) {
	t := a.table("CHECK", "STATUS", "WHAT WAS SEEN")
	for _, c := range f.Checks {
		t.add(c.Name, c.Status, c.Detail)
	}
	t.print(w)
	for _, c := range f.Checks {
		if c.Hint != "" {
			fmt.Fprintf(w, "hint: %s: %s\n", c.Name, oneLine(c.Hint))
		}
	}
}

// machineChecks tells what the process provider can do on this machine, by
// the same preflight that a spawn would get.
func machineChecks(ctx context.Context, f *findings) {
	if runtime.GOOS != "linux" {
		f.add("machine", "skip", "use a provider that runs elsewhere, or the drill provider", "environments on this host need Linux; this is %s", runtime.GOOS)
		return
	}
	checks, err := MachineChecks(ctx)
	if err != nil {
		e := fault.From(err)
		f.add("machine", "warn", e.Hint, "%s", e.Message)
		return
	}
	for _, c := range checks {
		status := "ok"
		if !c.OK {
			status = "warn"
		}
		detail := c.Detail
		if detail == "" {
			detail = "it works here"
		}
		f.add("machine: "+c.Name, status, "the process provider refuses a spawn that needs it; `isolation=none` and `limits=none` are options that you may choose by name", "%s", detail)
	}
}

func (a *app) managerChecks(ctx context.Context, f *findings) {
	l, err := a.open(ctx)
	if err != nil {
		e := fault.From(err)
		f.add("manager", "warn", e.Hint, "%s", e.Message)
		if a.down(err) {
			a.restingCheck(ctx, f)
		}
		return
	}
	defer l.close()
	start := time.Now()
	st, err := client.Call(ctx, l.Client, commands.Status, commands.Empty{})
	if err != nil {
		f.add("manager", "fail", fault.From(err).Hint, "%s", fault.From(err).Message)
		return
	}
	f.add("manager", "ok", "", "instance %s, epoch %d, version %s, answers in %s", st.InstanceID, st.Epoch, st.Version, time.Since(start).Round(10*time.Microsecond))
	if own := ReadBuild().Version; own != st.Version {
		f.add("versions", "warn", "restart the manager with this program", "the manager is %s and this program is %s", st.Version, own)
	}
	a.readyCheck(ctx, f)
	if lag := st.Tip - min(st.AsOf, st.Tip); lag > 0 {
		f.add("readers", "warn", "", "%d events behind the log", lag)
	} else {
		f.add("readers", "ok", "", "as of %d, nothing behind", st.AsOf)
	}
	r, err := client.Call(ctx, l.Client, commands.VerifyLog, commands.VerifyInput{Limit: provedRecords})
	historyCheck(f, r, st.Tip, err)
	durability(f, st.Durability)
	hosts, err := client.Call(ctx, l.Client, commands.Hosts, commands.Empty{})
	providersCheck(f, st.Providers, hosts, err)
	h, err := client.Call(ctx, l.Client, commands.Health, commands.Empty{})
	if err != nil {
		f.add("fleet", "fail", fault.From(err).Hint, "%s", fault.From(err).Message)
		return
	}
	f.Health = &h
	healthChecks(f, h)
}

// providersCheck tells which providers answer now: a name in a list is no proof
// of one.
func providersCheck(f *findings, names []string, hosts commands.HostsResult, err error) {
	switch {
	case len(names) == 0:
		f.add("providers", "fail", "`berth up` registers what this host can do, and --hosted, --docker and --fly what is elsewhere", "there is none")
		return
	case err != nil:
		f.add("providers", "fail", fault.From(err).Hint, "%s: %s", strings.Join(names, ", "), fault.From(err).Message)
		return
	}
	answer := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return hosts.Unprobed[n] != nil })
	if len(answer) > 0 {
		f.add("providers", "ok", "", "%s", strings.Join(answer, ", "))
	}
	for _, n := range slices.Sorted(maps.Keys(hosts.Unprobed)) {
		f.add("provider "+n, "fail", hosts.Unprobed[n].Hint, "%s", oneLine(hosts.Unprobed[n].Message))
	}
}

func durability(f *findings, profile string) {
	switch profile {
	case "strict", "group":
		f.add("durability", "ok", "", "%s: an answer means that the events are synced to disk", profile)
	default:
		f.add("durability", "warn", "ask the operator of the server for sync_interval: always",
			"an external server: whether an acknowledged event survives a power cut can't be known from here; one that syncs at intervals (every 2 minutes unless told otherwise) can lose all events of the last interval, intents of calls that a provider has carried out among them, or the whole log: then no manager starts on it")
	}
}

// readyCheck asks /readyz, where the data directory tells the address.
func (a *app) readyCheck(ctx context.Context, f *findings) {
	dir, err := a.dataDir()
	if err != nil {
		return
	}
	e, err := berth.ReadEndpoint(dir)
	if err != nil || a.server != "" || a.context != "" {
		f.add("readiness", "skip", "", "the manager's HTTP address is not known here")
		return
	}
	base := e.HTTP
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz?verbose", nil)
	if err != nil {
		return
	}
	res, err := (&http.Client{Timeout: connectTimeout}).Do(req)
	if err != nil {
		f.add("readiness", "fail", "", "%s does not answer", base)
		return
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
	status := "ok"
	if res.StatusCode != http.StatusOK {
		status = "fail"
	}
	f.add("readiness", status, base+"/readyz?verbose", "%s", strings.Join(strings.Fields(string(body)), " "))
}

func healthChecks(f *findings, h commands.HealthResult) {
	for _, q := range h.Quarantined {
		f.add("quarantine "+string(q.Boundary), "fail", q.Fault.Hint, "%s", q.Fault.Message)
	}
	for _, c := range h.Stuck {
		f.add("stuck "+string(c.Name), "fail", "berth inspect "+string(c.Name), "%s %s since %s", c.Verb, c.Phase, c.Since)
	}
	for _, c := range h.Uncertain {
		f.add("uncertain "+string(c.Name), "warn", "it is held until it is proved what became of it; look, and do nothing twice: berth history "+string(c.Name), "%s since %s", c.Verb, c.Since)
	}
	for _, c := range h.Failed {
		f.add("failed "+string(c.Name), "warn", "berth history "+string(c.Name), "%s", because(c.Fault))
	}
	for _, e := range h.WrittenOff {
		f.add("written off "+string(e), "warn", "it goes on being looked for and is destroyed when found", "not yet proved gone")
	}
	for _, l := range h.Losses {
		f.add("history loss "+strconv.FormatUint(l.Sequence, 10), "warn", "", "accepted: %s", l.Event.Reason)
	}
	if len(h.Quarantined)+len(h.Stuck)+len(h.Uncertain)+len(h.Failed) == 0 {
		f.add("fleet", "ok", "", "nothing is uncertain, stuck, failed or quarantined")
	}
}

func because(f *fault.Error) string {
	if f == nil {
		return "no reason was reported"
	}
	return f.Message
}
