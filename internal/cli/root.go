package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"berth/commands"
)

const rootLong = `Berth runs the lifecycle of agent environments. Every step is a durable event;
what a provider did not answer is uncertain and held until it is proved.

A manager is found by --server, then NATS_URL, then the selected NATS context,
then the data directory (--data, BERTH_DATA, or ~/.local/state/berth).
Environment: NATS_URL, NATS_CREDS, BERTH_DATA, NO_COLOR.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "berth", Short: "Runs the environments of coding agents", Long: rootLong,
		SilenceUsage: true, SilenceErrors: true, Args: group, RunE: showHelp,
		Example:                    "  berth up\n  berth spawn demo --ttl 1h -- sh -c 'while :; do date; sleep 1; done'\n  berth ls",
		SuggestionsMinimumDistance: 2,
		PersistentPreRunE:          func(*cobra.Command, []string) error { return a.checkGlobals() },
	}
	p := root.PersistentFlags()
	p.StringVarP(&a.output, "output", "o", formatTable, "table, wide, json or jsonl")
	p.StringVarP(&a.server, "server", "s", "", "URL of the manager's NATS server")
	p.StringVar(&a.context, "context", "", "NATS context to connect with")
	p.StringVar(&a.creds, "creds", "", "NATS credentials file (NATS_CREDS)")
	p.StringVar(&a.data, "data", "", "data directory of the manager")
	p.StringVar(&a.space, "space", "", "space (tenant)")
	p.DurationVar(&a.timeout, "timeout", DefaultTimeout, "how long to wait, which never limits the work")
	p.Uint64Var(&a.seq, "min-seq", 0, "a read waits until this sequence is seen")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		hint := c.CommandPath() + " --help"
		if c.Name() == commands.Spawn.Name || c.Name() == commands.Reserve.Name {
			hint += " lists the flags; those of the command that is to run come after --: " + c.UseLine()
		}
		return usage("%s: %s", c.CommandPath(), clip(err.Error())).WithHint("%s", hint)
	})
	root.AddGroup(&cobra.Group{ID: groupManager, Title: "The manager:"}, &cobra.Group{ID: groupLife, Title: "A life:"},
		&cobra.Group{ID: groupLook, Title: "Looking:"}, &cobra.Group{ID: groupLog, Title: "The log:"})
	a.addGroup(root, groupManager, a.upCommand(), a.stopCommand(), a.statusCommand(), a.doctorCommand(), a.hostsCommand(), a.drillCommand(), a.providerCommand(), a.benchCommand())
	a.addGroup(root, groupLife, a.spawnCommand(), a.forkCommand(), a.reserveCommand(), a.provisionCommand(), a.startCommand(), a.extendCommand(), a.pauseCommand(), a.resumeCommand(),
		a.checkpointCommand(), a.restoreCommand(), a.exportCommand(), a.retireCommand(), a.goalCommand(), a.turnCommand(), a.turnPendingCommand(), a.turnYieldCommand(), a.stopSelfCommand(), a.personaCommand(), a.intentCommand(), a.writeOffCommand(), a.takeOverCommand(), a.seatCommand())
	a.addGroup(root, groupLife, a.transcriptCommand())
	a.addGroup(root, groupLook, a.lsCommand(), a.inspectCommand(), a.slotsCommand(), a.logsCommand(), a.attachCommand(), a.inputCommand(), a.usageCommand(), a.describeCommand())
	a.addGroup(root, groupLog, a.historyCommand(), a.eventsCommand(), a.replayCommand(), a.verifyCommand())
	root.AddCommand(benchRole(), a.simCommand(), a.versionCommand(), exitCodesTopic())
	root.CompletionOptions.HiddenDefaultCmd = false
	return root
}

var citations = regexp.MustCompile(` \((?:R|D\d|decision |scenario )[^)]*\)`)

// short is what the contract says of a command, as one line of help: the
// numbers of rules are for those who read the contract.
func short(c *commands.Contract) string {
	return strings.TrimSuffix(citations.ReplaceAllString(c.Doc, ""), ".")
}

const (
	groupManager = "manager"
	groupLife    = "life"
	groupLook    = "look"
	groupLog     = "log"
)

func (a *app) addGroup(root *cobra.Command, id string, cs ...*cobra.Command) {
	for _, c := range cs {
		c.GroupID = id
	}
	root.AddCommand(cs...)
}

// checkGlobals refuses global flags that can't mean anything.
func (a *app) checkGlobals() error {
	if err := a.checkFormat(); err != nil {
		return err
	}
	if a.timeout <= 0 {
		return usage("--timeout %s is not above zero", a.timeout)
	}
	return nil
}

// group is the argument check of a command that only has subcommands.
func group(c *cobra.Command, in []string) error {
	if len(in) == 0 {
		return nil
	}
	e := usage("%s: there is no command %q", c.CommandPath(), clip(in[0])).WithHint("%s --help", c.CommandPath())
	if near := c.SuggestionsFor(in[0]); len(near) > 0 {
		e = e.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return e
}

func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
