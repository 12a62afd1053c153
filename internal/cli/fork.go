package cli

import (
	"fmt"
	"maps"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/events"
	"berth/events/fault"
	"berth/internal/connector"
	"berth/providers"
)

func (a *app) forkCommand() *cobra.Command {
	var f spawnFlags
	c := &cobra.Command{
		Use: "fork NAME CHECKPOINT NEWNAME", Short: "Make another environment that begins from a checkpoint of one that goes on",
		Args: args("NAME", "CHECKPOINT", "NEWNAME"), ValidArgsFunction: a.completeNames,
		Long: `Make another environment that begins from a checkpoint of NAME, which goes on as it is:
a spawn with the provider, image, size, network, options and command of NAME, on the
instance that runs it, and the option from=ENVIRONMENT/CHECKPOINT. What the checkpoint
holds, its secrets too, is then in both. A provider that can't begin from a checkpoint
refuses it before anything is reserved.`,
		Example: "  berth checkpoint demo -o json\n  berth fork demo 01a22ed2-ff57-7000-8de2-5828de278000 other --wait",
		RunE: func(c *cobra.Command, in []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			of, err := ask(ctx, a, commands.Inspect, commands.Named{Name: in[0]})
			if err != nil {
				return err
			}
			if err := f.fork(of, in[1], in[2]); err != nil {
				return err
			}
			return a.spawn(c, commands.Spawn, &f)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.in.TTL, "ttl", "", "lifetime from acceptance, such as 1h; none for no end (default that of NAME)")
	fl.StringVar(&f.in.Ready, "ready", "", "readiness deadline (default 2m)")
	fl.StringVar(&f.in.Goal, "goal", "", "id of the goal: the same id is the same goal for ever")
	fl.BoolVar(&f.dry, "dry-run", false, "print the events that would be appended, and append nothing")
	f.wait.flags(c, false)
	return c
}

// fork fills in the spawn: what the original was asked for, but for the
// checkpoint.
func (f *spawnFlags) fork(of commands.InspectResult, checkpoint, name string) error {
	p := of.Plan
	if of.Environment == nil || p.Provider == "" {
		return fault.New(fault.FailedPrecondition, "%s has no environment to begin another one from", of.Alias)
	}
	if p.Delegated {
		return fault.New(fault.FailedPrecondition, "%s is delegated: its hand-off was taken once, and another seat needs its own", of.Alias)
	}
	f.on = string(of.Slot.Holder)
	f.in.Name, f.in.Provider, f.in.Command, f.in.Network = name, p.Provider, p.Command, p.Network
	f.in.Image = &commands.ImageInput{Kind: p.Image.Kind, Reference: p.Image.Reference}
	f.in.CPUs, f.in.Memory = p.Resources.CPUs.String(), fmt.Sprintf("%dMiB", p.Resources.MemoryMiB)
	if p.Resources.DiskGiB > 0 {
		f.in.Disk = fmt.Sprintf("%dGiB", p.Resources.DiskGiB)
	}
	switch {
	case f.in.TTL != "":
	case p.Lifetime == 0:
		f.in.TTL = commands.NoTTL
	default:
		f.in.TTL = p.Lifetime.String()
	}
	f.in.Options = map[string]string{}
	maps.Copy(f.in.Options, p.Options)
	f.in.Options[providers.OptionFrom] = string(of.Environment.ID) + "/" + checkpoint
	return f.connectAs(p)
}

// connectAs asks for the connector of a plan. A persona's text stays behind: what
// goes on from the checkpoint was told already.
func (f *spawnFlags) connectAs(p events.Plan) error {
	if p.Connector == nil {
		return nil
	}
	row, err := connector.Find(p.Connector.Name)
	if err != nil {
		return err
	}
	f.in.Connector, f.in.Prompt, f.in.Command = row.Name, p.Connector.Prompt, row.Given(p.Command)
	if !row.OwnSign {
		f.in.Sign = connector.FormatSign(p.Connector.Ready)
	}
	return nil
}
