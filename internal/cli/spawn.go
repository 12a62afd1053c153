package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/aggregates"
	"berth/commands"
	"berth/commands/client"
	"berth/events"
	"berth/events/fault"
	"berth/internal/connector"
)

// glance is how long a spawn is watched for a person who did not say --wait.
const glance = 15 * time.Second

// spawnFlags is what spawn and reserve take.
type spawnFlags struct {
	in      commands.SpawnInput
	image   string
	network string
	options []string
	labels  []string
	free    string
	on      string
	needs   commands.NeedsInput
	wait    waitFlags
	dry     bool

	ready      string // a sign, or as before a duration
	promptFile string
}

func (a *app) spawnCommand() *cobra.Command {
	var f spawnFlags
	c := &cobra.Command{
		Use: "spawn [NAME] [flags] [-- COMMAND...]", Short: "Make an environment and run a command in it", Args: nameAndCommand,
		Long: `Make an environment and take it all the way to a running seat: reserve, provision,
start, ready. It answers when the work is accepted, which is durable; --wait waits
until the seat is ready. Without a NAME it is called agent, or agent_2 and so on: a
number is issued once for ever. Give --goal to make it repeatable: the same id with the
same input is the same goal for ever.`,
		Example: "  berth spawn demo --ttl 1h -- sh -c 'while :; do date; sleep 1; done'\n  berth spawn build --provider process --cpus 2 --memory 1GiB --wait -- make",
		RunE: func(c *cobra.Command, in []string) error {
			if err := f.read(a, c, in); err != nil {
				return err
			}
			return a.spawn(c, commands.Spawn, &f)
		},
	}
	f.flags(c)
	return c
}

func (a *app) reserveCommand() *cobra.Command {
	var f spawnFlags
	c := &cobra.Command{
		Use: "reserve [NAME] [flags] [-- COMMAND...]", Short: "Take a name and reserve at the provider, and go no further", Args: nameAndCommand,
		Example: "  berth reserve demo --ttl 1h -- sh -c date\n  berth provision demo\n  berth start demo",
		RunE: func(c *cobra.Command, in []string) error {
			if err := f.read(a, c, in); err != nil {
				return err
			}
			return a.spawn(c, commands.Reserve, &f)
		},
	}
	f.flags(c)
	return c
}

func (f *spawnFlags) flags(c *cobra.Command) {
	f.planFlags(c)
	fl := c.Flags()
	fl.StringVar(&f.in.Goal, "goal", "", "id of the goal: the same id is the same goal for ever")
	fl.StringVar(&f.in.Resume, "resume", "", "claim on a transcript that the seat goes on from, as berth transcript send gives it; it is used up")
	fl.StringVar(&f.in.ResumeSource, "resume-source", "", "with --resume: the session that is meant; a claim on another's transcript is refused")
	fl.BoolVar(&f.dry, "dry-run", false, "print the events that would be appended, and append nothing")
	f.wait.flags(c, false)
}

// planFlags are those that say what is spawned, and where.
func (f *spawnFlags) planFlags(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.in.Persona, "persona", "", "defined persona; a name that is left out begins with it")
	fl.StringVar(&f.in.Provider, "provider", "", "registered provider (default "+commands.DefaultProvider+")")
	fl.StringVar(&f.image, "image", "", "what it is made from: template:NAME or oci:PATH (default template:host, or the provider's own)")
	fl.StringVar(&f.in.CPUs, "cpus", "", "exact decimal number of CPUs (default "+commands.DefaultCPUs+")")
	fl.StringVar(&f.in.Memory, "memory", "", "memory, such as 512MiB (default "+commands.DefaultMemory+")")
	fl.StringVar(&f.in.Disk, "disk", "", "disk, such as 10GiB; not limited if absent")
	fl.StringVar(&f.network, "network", "", "network of the provider, such as none; its default if absent")
	fl.StringVar(&f.in.TTL, "ttl", "", "lifetime from acceptance, such as 1h; none for no end (default 1h)")
	fl.StringVar(&f.in.Connector, "connector", "", fmt.Sprintf("what runs in the seat: %s (default %s: the command as it is)", strings.Join(connector.Names(), ", "), connector.Exec))
	fl.StringVar(&f.ready, "ready", "", "how the seat shows that it is ready: started, fd, pattern:REGEX or port:N (default the connector's own way); a duration is read as --ready-within")
	fl.StringVar(&f.in.Ready, "ready-within", "", "readiness deadline (default what the connector declares; 2m without one)")
	fl.StringVar(&f.in.Prompt, "prompt", "", "what the connector is asked first; public text, never a secret")
	fl.StringVar(&f.promptFile, "prompt-file", "", "where the prompt is; - reads standard input")
	fl.StringArrayVar(&f.options, "option", nil, "NAME=VALUE for the provider, never a secret; may be repeated")
	fl.StringVar(&f.on, "on", "", "id of the instance that must run it; any that fits if absent")
	fl.StringVar(&f.needs.Arch, "arch", "", "architecture that the provider's host must have, such as amd64")
	fl.StringVar(&f.needs.Engine, "engine", "", "engine that the provider must have there")
	fl.BoolVar(&f.needs.KVM, "kvm", false, "only where KVM was shown to be usable")
	fl.BoolVar(&f.needs.GPU, "gpu", false, "only on an instance whose operator gave it a label gpu")
	fl.StringArrayVar(&f.labels, "needs-label", nil, "NAME=VALUE of a label that the instance must have (up --host-label); may be repeated")
	fl.StringVar(&f.free, "min-headroom", "", "the least that must be free before it: cpus=N,memory=SIZE,disk=SIZE,slots=N, each optional")
	fl.BoolVar(&f.in.Delegated, "delegated", false, "begin the seat with a hand-off, which its command takes (see berth seat)")
}

// read turns flags and arguments into the input, and refuses what can't be
// meant before anything is asked.
func (f *spawnFlags) read(a *app, c *cobra.Command, in []string) error {
	f.in.Command = in
	if len(in) > 0 && c.ArgsLenAtDash() != 0 {
		f.in.Name, f.in.Command = in[0], in[1:]
		if f.in.Name == "" { // a variable of a script that is empty, not the wish for any name
			return usage("%s: NAME is empty", c.CommandPath()).WithHint("leave it out for a name with the next number")
		}
	}
	return f.readPlan(a)
}

// readPlan turns the flags of planFlags into the input.
func (f *spawnFlags) readPlan(a *app) error {
	if f.image != "" {
		kind, ref, ok := strings.Cut(f.image, ":")
		if !ok {
			return usage("--image %q is neither template:NAME nor oci:PATH", clip(f.image))
		}
		f.in.Image = &commands.ImageInput{Kind: kind, Reference: ref}
	}
	if f.network != "" {
		f.in.Network = &f.network
	}
	err := f.readConnector(a)
	if err != nil {
		return err
	}
	if f.in.Options, err = pairs("--option", f.options); err != nil {
		return err
	}
	return f.readNeeds()
}

// pairs reads the NAME=VALUE of a flag that may be repeated; nil if there are none.
func pairs(flag string, given []string) (map[string]string, error) {
	var out map[string]string
	for _, o := range given {
		name, value, ok := strings.Cut(o, "=")
		if !ok || name == "" {
			return nil, usage("%s is not NAME=VALUE", flag)
		}
		if _, twice := out[name]; twice {
			return nil, usage("%s %s is given twice", flag, clip(name))
		}
		if out == nil {
			out = map[string]string{}
		}
		out[name] = value
	}
	return out, nil
}

// nameAndCommand accepts [NAME] [-- COMMAND...]; a command without the dashes is
// a mistake that is easy to make and hard to see.
func nameAndCommand(c *cobra.Command, in []string) error {
	switch dash := c.ArgsLenAtDash(); {
	case dash < 0 && len(in) > 1, dash > 1:
		return usage("%s: %q is one argument too many", c.CommandPath(), clip(in[1])).WithHint("write -- before the command: %s NAME -- %s", c.CommandPath(), clip(strings.Join(in[1:], " ")))
	}
	return nil
}

func (a *app) spawn(c *cobra.Command, cmd commands.Command[commands.SpawnInput, commands.SpawnResult], f *spawnFlags) error {
	return submit(c, a, cmd, f.in, f.dry, func(ctx context.Context, l *link, r commands.SpawnResult) (err error) {
		var status aggregates.Status
		wait, explicit := f.wait.wanted(c, !a.machine())
		if wait {
			a.say("accepted as goal %s; waiting for %s to be ready ...", r.GoalID, r.Name)
			if status, err = a.waitSpawn(ctx, l, &r, explicit); err != nil {
				return err
			}
		}
		if err := a.show(r, func(w io.Writer) { sayspawned(w, cmd.Name, r, status) }); err != nil || !wait {
			return err // without a wait it is the acceptance that is answered (E10)
		}
		return endOf(r.State, r.Fault)
	}, client.WithInstance(events.InstanceID(f.on)))
}

// waitSpawn waits for the goal's end. Without --wait it only glances: not
// longer than that, and not once the answer of the provider is lost, which the
// status then says.
func (a *app) waitSpawn(ctx context.Context, l *link, r *commands.SpawnResult, explicit bool) (aggregates.Status, error) {
	if !explicit {
		short, cancel := context.WithTimeout(ctx, glance)
		defer cancel()
		got, err := l.WaitStatus(short, r.Name, r.UID, r.Sequence, aggregates.StatusReserved, aggregates.StatusRunning, aggregates.StatusStopped,
			aggregates.StatusFailed, aggregates.StatusUncertain, aggregates.StatusHeld, aggregates.StatusRetired)
		if err != nil || got.Status == aggregates.StatusUncertain || got.Status == aggregates.StatusHeld {
			return got.Status, ctx.Err()
		}
		ctx = short
	}
	got, err := l.WaitGoal(ctx, r.GoalID)
	if err != nil {
		if !explicit {
			return "", nil
		}
		return "", err
	}
	r.State, r.Fault = got.State, got.Fault
	return "", nil
}

func sayspawned(w io.Writer, verb string, r commands.SpawnResult, status aggregates.Status) {
	switch r.State {
	case events.GoalSucceeded:
		ready := "is running"
		if verb == commands.Reserve.Name {
			ready = "is reserved"
		}
		fmt.Fprintf(w, "%s %s: environment %s, goal %s\n", r.Name, ready, r.Environment, r.GoalID)
		if verb == commands.Reserve.Name {
			fmt.Fprintf(w, "next: berth start %s\n", r.Name)
			return
		}
		fmt.Fprintf(w, "next: berth logs %s -f, berth inspect %s, berth retire %s\n", r.Name, r.Name, r.Name)
	case events.GoalStateOffered:
		fmt.Fprintf(w, "%s is accepted as goal %s, and offered: the instance that took it in can't run it, another one may\n", r.Name, r.GoalID)
		fmt.Fprintf(w, "next: berth goal %s says which instances declined, and why\n", r.GoalID)
	case events.GoalStateAccepted, events.GoalStateRunning, events.GoalStateWaiting, events.GoalStateCancelling:
		fmt.Fprintf(w, "%s is accepted: environment %s, goal %s, ready by %s\n", r.Name, r.Environment, r.GoalID, r.ReadyBy)
		if status == aggregates.StatusUncertain || status == aggregates.StatusHeld {
			fmt.Fprintf(w, "it is %s: nothing more is sent to it until it is proved what became of an operation\n", status)
		}
		fmt.Fprintf(w, "next: berth goal %s, berth inspect %s\n", r.GoalID, r.Name)
	default:
		fmt.Fprintf(w, "%s: goal %s ended %s\n", r.Name, r.GoalID, r.State)
		fmt.Fprintf(w, "next: berth history %s\n", r.Name)
	}
}

// endOf is the error of a goal that ended otherwise than well.
func endOf(s events.GoalState, f *fault.Error) error {
	switch {
	case !s.Terminal() || s == events.GoalSucceeded:
		return nil
	case s == events.GoalUncertain && f != nil:
		return &uncertainError{f.WithOutcome(fault.Unknown)}
	case f != nil:
		return f
	case s == events.GoalUncertain:
		return &uncertainError{fault.New(fault.Unavailable, "the goal ended uncertain").WithOutcome(fault.Unknown).
			WithHint("nothing is sent again until it is proved what became of it: `berth history` shows each attempt")}
	}
	return fault.New(fault.Cancelled, "the goal ended %s", s).WithOutcome(fault.Executed)
}
