package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/commands"
	"berth/internal/connector"
	"berth/projections"
)

func (a *app) hostsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "hosts", Short: "What the hosts have, and what is free", Args: args(), Example: "  berth hosts -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := ask(ctx, a, commands.Hosts, commands.Empty{})
			if err != nil {
				return err
			}
			err = list(a, r, r.Instances, func(w io.Writer) {
				t := a.table("PROVIDER", "HOST", "ARCH", "CPUS", "FREE", "MEMORY", "FREE", "DISK", "FREE", "SLOTS FREE")
				for _, name := range slices.Sorted(maps.Keys(r.Providers)) {
					f, free := r.Providers[name], r.Headroom[name]
					t.add(name, f.Host, f.Architecture, f.Allocatable.CPUs.String(), free.CPUs.String(), mib(f.Allocatable.MemoryMiB), mib(free.MemoryMiB),
						gib(f.Allocatable.DiskGiB), gib(free.DiskGiB), strconv.FormatInt(free.Slots, 10))
				}
				t.print(w)
				fmt.Fprintln(w)
				sayInstances(a, w, r)
			})
			if err != nil {
				return err
			}
			return a.unprobed(r)
		},
	}
}

// unprobed ends with the error of a provider that could not be asked, after all
// that could be is printed, and names the others on standard error (R82).
func (a *app) unprobed(r commands.HostsResult) error {
	names := slices.Sorted(maps.Keys(r.Unprobed))
	if len(names) == 0 {
		return nil
	}
	for _, n := range names[1:] {
		a.say("%s", oneLine(r.Unprobed[n].Message))
	}
	return r.Unprobed[names[0]]
}

// sayInstances prints every instance that the log knows, and what those that
// did not answer have published of their providers.
func sayInstances(a *app, w io.Writer, r commands.HostsResult) {
	t := a.table("INSTANCE", "PHASE", "EPOCH", "VERSION", "HOST", "ENVIRONMENTS", "CPUS HELD", "MEMORY HELD", "LABELS")
	others := a.table("INSTANCE", "PROVIDER", "HOST", "ARCH", "CPUS", "FREE", "MEMORY", "FREE", "DISK", "FREE", "SLOTS FREE")
	for _, h := range r.Instances {
		labels := slices.Sorted(maps.Keys(h.Labels))
		for i, k := range labels {
			labels[i] = k + "=" + h.Labels[k]
		}
		t.add(string(h.Instance), string(h.Phase), strconv.FormatUint(h.Epoch, 10), h.Version, h.Facts.Host, strconv.FormatInt(h.Reserved.Environments, 10),
			h.Reserved.CPUs.String(), mib(h.Reserved.MemoryMiB), strings.Join(labels, ","))
		for _, p := range h.Providers {
			if f, free := p.Facts, p.Headroom; h.Instance != r.InstanceID {
				others.add(string(h.Instance), p.Provider, f.Host, f.Architecture, f.Allocatable.CPUs.String(), free.CPUs.String(), mib(f.Allocatable.MemoryMiB),
					mib(free.MemoryMiB), gib(f.Allocatable.DiskGiB), gib(free.DiskGiB), strconv.FormatInt(free.Slots, 10))
			}
		}
	}
	t.print(w)
	if len(others.rows) > 1 {
		fmt.Fprintln(w)
		others.print(w)
	}
}

func mib(n int64) string { return strconv.FormatInt(n, 10) + "MiB" }
func gib(n int64) string { return strconv.FormatInt(n, 10) + "GiB" }

// maxRateCard bounds the file of --rates, in bytes.
const maxRateCard = 64 << 10

func (a *app) usageCommand() *cobra.Command {
	var in commands.UsageInput
	var rates string
	c := &cobra.Command{
		Use: "usage", Short: short(commands.Usage.Contract), Args: args(), Example: "  berth usage\n  berth usage --by-environment --rates rates.json",
		Long: `What was used: CPU-hours, GiB-hours and, with a rate card, what it cost. Reservations
are counted, from the claim of a name to the proof of its end. A rate card is JSON:
{"currency":"EUR","default":{"cpuHour":"0.04","memoryGiBHour":"0.005","diskGiBHour":"0"},"providers":{}}`,
		RunE: func(c *cobra.Command, _ []string) error {
			if rates != "" {
				card, err := readRates(rates)
				if err != nil {
					return err
				}
				in.Rates = card
			}
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := ask(ctx, a, commands.Usage, in)
			if err != nil {
				return err
			}
			return a.sayUsage(r)
		},
	}
	c.Flags().BoolVar(&in.ByEnvironment, "by-environment", false, "a row for every environment instead of one for every owner")
	c.Flags().StringVar(&rates, "rates", "", "file with a rate card")
	return c
}

func readRates(file string) (*projections.RateCard, error) {
	raw, err := readInput(file, maxRateCard)
	if err != nil {
		return nil, err
	}
	var card projections.RateCard
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&card); err != nil {
		return nil, usage("--rates %s is not a rate card: %s", clip(file), err).WithHint("berth help usage")
	}
	return &card, nil
}

// nothingUsed is what a person reads of a usage without rows.
const nothingUsed = "Nothing was used yet. Next: berth ls --all"

func (a *app) sayUsage(r commands.UsageResult) error {
	if r.Environments != nil {
		return list(a, r, r.Environments, func(w io.Writer) {
			t := a.table("NAME", "PROVIDER", "CPU-HOURS", "GIB-HOURS", "DISK-HOURS", "COST", "OPEN", "ENVIRONMENT")
			for _, e := range r.Environments {
				t.add(string(e.Alias), e.Provider, e.CPUHours, e.MemoryGiBHours, e.DiskGiBHours, cost(e.Cost, r.Currency), strconv.FormatBool(e.Open), string(e.Environment))
			}
			t.printOr(w, nothingUsed)
		})
	}
	return list(a, r, r.Owners, func(w io.Writer) {
		t := a.table("OWNER", "HELD NOW", "CPU-HOURS", "GIB-HOURS", "DISK-HOURS", "COST")
		for _, o := range r.Owners {
			t.add(string(o.Owner), strconv.Itoa(o.Environments), o.CPUHours, o.MemoryGiBHours, o.DiskGiBHours, cost(o.Cost, r.Currency))
		}
		t.printOr(w, nothingUsed)
	})
}

func cost(amount, currency string) string {
	if amount == "" {
		return ""
	}
	return strings.TrimSpace(amount + " " + currency)
}

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "How the manager is", Args: args(), Example: "  berth status -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := ask(ctx, a, commands.Status, commands.Empty{})
			if err != nil {
				return err
			}
			return a.show(r, func(w io.Writer) {
				facts(w, "instance", string(r.InstanceID), "epoch", strconv.FormatUint(r.Epoch, 10), "space", string(r.Space), "version", r.Version,
					"durability", r.Durability, "providers", strings.Join(r.Providers, ", "), "connectors", connectors(r), "started", r.StartedAt,
					"log", fmt.Sprintf("%d commits, %d events on %d boundaries", r.Counts.Commits, r.Counts.Events, r.Counts.Boundaries),
					"as of", fmt.Sprintf("%d of %d", r.AsOf, r.Tip))
			})
		},
	}
}

// connectors is what an instance says of its connectors, in a line.
func connectors(r commands.StatusResult) string {
	var words []string
	for _, c := range r.Connectors {
		word := c.Agent
		if c.State != connector.StateAvailable {
			word += " (unavailable: " + c.Reason + ")"
		}
		words = append(words, word)
	}
	if !r.ClassSpawn {
		words = append(words, "none is usable: only a spawn --on this instance comes here")
	}
	return strings.Join(words, ", ")
}

func (a *app) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "describe", Short: "The commands that the manager serves, with their schemas", Args: args(), Example: "  berth describe -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := a.bounded(c.Context())
			defer cancel()
			r, err := ask(ctx, a, commands.Describe, commands.Empty{})
			if err != nil {
				return err
			}
			return a.show(r, func(w io.Writer) {
				t := a.table("COMMAND", "KIND", "TARGET", "CAPABILITY", "WHAT IT DOES")
				for _, x := range commands.Table {
					t.add(x.Name, string(x.Kind), string(x.Target), string(x.Capability), x.Doc)
				}
				t.print(w)
			})
		},
	}
}
