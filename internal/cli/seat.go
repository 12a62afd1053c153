package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"berth/events"
	"berth/events/fault"
	"berth/internal/handoff"
)

// seatName is the verb that takes a hand-off.
const seatName = "seat"

// bootstrap is what was taken before a flag was parsed.
type bootstrap struct {
	named bool // the variable was there
	raw   []byte
	err   error
}

// takeHandoff takes the hand-off of a delegated seat: the file is read and
// gone, and the variable dropped, before flags are parsed or help is printed,
// so that no outcome leaves it behind (H8).
func takeHandoff(p Program) bootstrap {
	words := p.Args
	if i := slices.Index(words, "--"); i >= 0 {
		words = words[:i]
	}
	path := p.Env(handoff.EnvFile)
	if path == "" || !slices.Contains(words, seatName) {
		return bootstrap{}
	}
	b := bootstrap{named: true}
	b.raw, b.err = handoff.Take(path)
	if p.Unset != nil {
		if err := p.Unset(handoff.EnvFile); err != nil && b.err == nil {
			b.err = fault.New(fault.Internal, "%s can't be dropped", handoff.EnvFile).WithOutcome(fault.NotExecuted)
		}
	}
	return b
}

type delegatedFlags struct{ space, owner, actor, uid, instance string }

func (a *app) seatCommand() *cobra.Command {
	var f delegatedFlags
	c := &cobra.Command{
		Use: "seat --expect-space SPACE --expect-owner OWNER --expect-actor ACTOR --expect-uid UID -- COMMAND...", Short: "Begin a delegated seat: take its hand-off and become its command",
		Args: func(c *cobra.Command, in []string) error {
			if c.ArgsLenAtDash() != 0 || len(in) == 0 || in[0] == "" {
				return usage("%s: the command of the seat is missing", c.CommandPath()).WithHint("%s", c.UseLine())
			}
			return nil
		},
		Long: `Begin a delegated seat, inside of its environment. The file that ` + handoff.EnvFile + `
names is opened without following links, removed, read, and the variable dropped,
before anything else; whatever the outcome, nothing of it is left. It must be a plain
file of this user with mode 0600 and no other name.

The hand-off must be for the space, owner, actor and lifecycle uid that the flags say,
and ` + handoff.EnvInstance + ` must name the manager. A difference is refused before any
connection is made; the refusal names the field and never a value. Then this process
becomes COMMAND, which reads the document once from the descriptor in ` + handoff.EnvFD + `.`,
		Example: "  berth seat --expect-space default --expect-owner local --expect-actor demo \\\n    --expect-uid 0123456789abcdefghijklmnop -- my-agent",
		RunE: func(_ *cobra.Command, command []string) error {
			d, err := a.handedOff(f)
			if err != nil {
				return err
			}
			raw, err := d.Encode()
			if err != nil {
				return err
			}
			defer clear(raw)
			return become(command, raw)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.space, "expect-space", "", "space that the hand-off must be for")
	fl.StringVar(&f.owner, "expect-owner", "", "owner that it must be for")
	fl.StringVar(&f.actor, "expect-actor", "", "actor that it must be for")
	fl.StringVar(&f.uid, "expect-uid", "", "lifecycle uid that it must be for")
	fl.StringVar(&f.instance, "expect-instance", "", "manager that "+handoff.EnvInstance+" must name; any if absent")
	for _, name := range []string{"expect-space", "expect-owner", "expect-actor", "expect-uid"} {
		_ = c.MarkFlagRequired(name) // only fails for a flag that is not there
	}
	return c
}

// handedOff checks the hand-off that was taken against what was expected (H9).
func (a *app) handedOff(f delegatedFlags) (handoff.Document, error) {
	var none handoff.Document
	e := handoff.Expected{
		Target:   handoff.Target{Space: events.Space(f.space), Owner: events.Owner(f.owner), Actor: events.Actor(f.actor), UID: events.UID(f.uid)},
		Instance: events.InstanceID(f.instance),
	}
	if err := e.Target.Check(); err != nil {
		return none, fault.New(fault.BadRequest, "what is expected can't be: %s", fault.From(err).Message)
	}
	if f.instance != "" {
		if _, err := events.ParseInstanceID(f.instance); err != nil {
			return none, usage("--expect-instance is not the id of a manager: 26 of a-z and 0-9")
		}
	}
	if !a.taken.named {
		return none, fault.New(fault.FailedPrecondition, "%s is not set: this is not a delegated seat, or its hand-off was taken before", handoff.EnvFile).
			WithOutcome(fault.NotExecuted)
	}
	instance, err := events.ParseInstanceID(a.Env(handoff.EnvInstance))
	if err != nil {
		return none, fault.New(fault.FailedPrecondition, "%s requires %s, the id of the manager that launched the seat: it is missing or not one", handoff.EnvFile, handoff.EnvInstance).
			WithOutcome(fault.NotExecuted)
	}
	d, err := handoff.Parse(a.taken.raw)
	clear(a.taken.raw)
	if err != nil {
		return none, err
	}
	return d, e.Match(d.Target, instance)
}
