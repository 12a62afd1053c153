package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/providers"
	"berth/providers/hosted"
	"berth/providers/providertest"
)

type conformFlags struct {
	hosted, image, kind, noFence, noEpochs, noFile string
	cpus, memory                                   string
	options                                        map[string]string
	expiry, patience                               time.Duration
}

// report is what conform prints with -o json.
type report struct {
	Provider   string                `json:"provider"`
	Passed     int                   `json:"passed"`
	NotClaimed int                   `json:"notClaimed"` // the provider says that it can't, and refuses
	Skipped    int                   `json:"skipped"`    // left out by the options
	Failed     int                   `json:"failed"`
	Checks     []providertest.Result `json:"checks"`
}

func (a *app) providerConformCommand() *cobra.Command {
	var f conformFlags
	c := &cobra.Command{
		Use: "conform [flags] -- COMMAND...", Short: "Hold a provider's endpoint to the driver contract, and report", Args: cobra.ArbitraryArgs,
		Long: `Hold an endpoint of the provider protocol to the driver contract: every check
names the rules that it shows (docs/rules.md). It makes environments and destroys
them; run it on a provider that holds nothing else. COMMAND must go on until it
is stopped. The program ends with 1 if a check failed.`,
		Example: "  berth provider conform --hosted far=https://127.0.0.1:7443,ca=certs/ca.pem,cert=certs/manager.pem,key=certs/manager-key.pem",
		RunE: func(c *cobra.Command, in []string) error {
			if d := c.ArgsLenAtDash(); len(in) > 0 && d != 0 {
				return usage("%s: %q is one argument too many", c.CommandPath(), in[0]).WithHint("%s", c.UseLine())
			}
			return a.conform(c.Context(), f, in)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.hosted, "hosted", "", "the endpoint, as for berth up: name=https://HOST:PORT,ca=FILE,cert=FILE,key=FILE or ...,bearer=FILE")
	fl.StringVar(&f.image, "image", "", "reference of an image that the provider can run (default the provider's own)")
	fl.StringVar(&f.kind, "image-kind", "template", "template or oci")
	fl.StringVar(&f.cpus, "cpus", "", "processors of each environment (default the provider's own, as for berth spawn)")
	fl.StringVar(&f.memory, "memory", "", "memory of each environment (default the provider's own, as for berth spawn)")
	fl.StringToStringVar(&f.options, "option", nil, "option of the plan, KEY=VALUE; may be repeated")
	fl.DurationVar(&f.expiry, "expiry", time.Second, "a lifetime to wait for; 0 leaves that check out")
	fl.DurationVar(&f.patience, "patience", 30*time.Second, "how long one call may take")
	fl.StringVar(&f.noFence, "no-fence", "", "why the provider can't exclude an operation; then it has to say so")
	fl.StringVar(&f.noEpochs, "no-epochs", "", "why the provider can't refuse lower epochs")
	fl.StringVar(&f.noFile, "no-provider-file", "", "why the provider exports no files; then it has to refuse")
	_ = c.MarkFlagRequired("hosted") // only fails for a flag that is not there
	return c
}

// plan is that of each environment; whether it is offered is for the provider
// to say.
func (f conformFlags) plan(provider string, d providers.Defaults, command []string) (events.Plan, error) {
	in := commands.SpawnInput{Provider: provider, CPUs: f.cpus, Memory: f.memory, TTL: commands.NoTTL, Command: command, Options: f.options}
	if f.image != "" {
		in.Image = &commands.ImageInput{Kind: f.kind, Reference: f.image}
	}
	return in.Filled(d).Plan()
}

func (a *app) conform(ctx context.Context, f conformFlags, command []string) error {
	if _, err := f.plan("", providers.Defaults{}, command); err != nil {
		return err // before anybody is asked
	}
	cfg, err := hosted.ParseSpec(f.hosted)
	if err != nil {
		return badSpec("--hosted", err)
	}
	if f.expiry < 0 || f.patience <= 0 {
		return usage("--expiry must not be below zero, --patience must be above it")
	}
	if len(command) == 0 {
		command = []string{"sh", "-c", "while :; do echo tick; sleep 1; done"}
	}
	d, err := hosted.New(cfg)
	if err != nil {
		return badSpec("--hosted", err)
	}
	defer d.Close()
	who, err := d.Provider(ctx)
	if err != nil {
		return fault.From(err).WithOutcome(fault.NotExecuted) // a question
	}
	defaults, err := d.Defaults(ctx)
	if err != nil {
		return err
	}
	plan, err := f.plan(cfg.Name, defaults, command)
	if err != nil {
		return err
	}
	a.say("holding %s (%s) to %d checks ...", cfg.Name, oneLine(who.Name), len(providertest.Checks))
	temp, err := os.MkdirTemp("", "berth-conform-")
	if err != nil {
		return fault.New(fault.FailedPrecondition, "no temporary directory can be made")
	}
	defer os.RemoveAll(temp)
	n := 0
	results := providertest.Conform(providertest.Options{
		Open: func(t providertest.T) providers.Driver {
			d, err := hosted.New(cfg)
			if err != nil {
				t.Fatalf("%v", err)
			}
			return d
		},
		Plan:     plan,
		Patience: f.patience, Expiry: f.expiry, NoFence: f.noFence, NoEpochs: f.noEpochs, NoProviderFile: f.noFile,
		NoHostPath: "a path of another machine is none of this one",
	}, func() string {
		n++
		dir := filepath.Join(temp, strconv.Itoa(n))
		_ = os.Mkdir(dir, 0o700) // a check that needs it says that it is not there
		return dir
	})
	return a.showReport(reportOf(cfg.Name, results))
}

func reportOf(name string, results []providertest.Result) report {
	r := report{Provider: name, Checks: results}
	for _, c := range results {
		switch {
		case !c.OK:
			r.Failed++
		case c.NotClaimed != "":
			r.NotClaimed++
		case c.Skipped != "":
			r.Skipped++
		default:
			r.Passed++
		}
	}
	return r
}

// showReport prints what a provider's author can act on: a line for each
// check, then for each failure what was expected and what had been sent.
func (a *app) showReport(r report) error {
	err := a.show(r, func(w io.Writer) {
		t := a.table("CHECK", "RESULT", "RULES", "WHY")
		for _, c := range r.Checks {
			result, why := resultOf(c)
			t.add(c.Name, result, c.Rules, clip(why))
		}
		t.print(w)
		for _, c := range r.Checks {
			if !c.OK {
				sayFailure(w, c)
			}
		}
		fmt.Fprintf(w, "\n%d passed, %d not claimed, %d skipped, %d failed\n", r.Passed, r.NotClaimed, r.Skipped, r.Failed)
	})
	if err == nil && r.Failed > 0 {
		return &exitError{fault.ExitFailure}
	}
	return err
}

func resultOf(c providertest.Result) (result, why string) {
	switch {
	case !c.OK && len(c.Log) > 0:
		return "fail", c.Log[0]
	case !c.OK:
		return "fail", ""
	case c.NotClaimed != "":
		return "not claimed", c.NotClaimed
	case c.Skipped != "":
		return "skipped", c.Skipped
	}
	return "ok", ""
}

// sayFailure tells one failure whole.
func sayFailure(w io.Writer, c providertest.Result) {
	fmt.Fprintf(w, "\n%s failed; docs/rules.md has %s\n", c.Name, c.Rules)
	for _, line := range c.Log {
		fmt.Fprintf(w, "  what came, and what was wanted: %s\n", oneLine(line))
	}
	for _, line := range c.Sent {
		fmt.Fprintf(w, "  sent: %s\n", oneLine(line))
	}
}
