package bench

import (
	"context"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/commands"
	"berth/commands/client"
	"berth/events"
)

// atOnce is how many spawns are asked for at the same time.
const atOnce = 100

// measureGoals measures how long it takes until every one of many spawns that
// are asked for at once, without a name, is accepted with a name of its own.
func measureGoals(ctx context.Context, o Options) ([]Row, error) {
	d, err := openDesk(ctx, o)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if err := spawnOne(ctx, d.c, commands.SpawnInput{Name: "first", Provider: "drill", Command: []string{"true"}}); err != nil {
		return nil, err // connections and caches are warm from here
	}
	var took []time.Duration
	distinct := atOnce
	for round := range o.Rounds {
		d.Progress("goals: " + strconv.Itoa(atOnce) + " spawns at once")
		names := make([]events.Alias, atOnce)
		start := time.Now()
		g, asked := errgroup.WithContext(ctx)
		for i := range names {
			g.Go(func() error {
				r, err := client.Call(asked, d.c, commands.Spawn, commands.SpawnInput{Provider: "drill", Command: []string{"true"}}, client.WithPatience(time.Minute))
				names[i] = r.Name
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
		slices.Sort(names)
		distinct = min(distinct, len(slices.Compact(names)))
		if round+1 < o.Rounds {
			if err := d.settled(ctx); err != nil {
				return nil, err
			}
		}
	}
	return []Row{
		alone("spawns-accepted-100", micros(median(took))/1000, "ms").atMost(1000).noted("asked for at once at the drill provider, profile strict; the median of %d rounds", o.Rounds),
		alone("spawns-names-100", float64(distinct), "names").atLeast(atOnce).noted("distinct names, in the worst round"),
	}, nil
}

// settled waits until no goal of the desk's caller is open.
func (d *desk) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	for {
		open, err := client.Call(ctx, d.c, commands.Goals, commands.GoalsInput{})
		if err != nil || len(open.Items) == 0 {
			return err
		}
		if _, err := d.c.WaitGoal(ctx, open.Items[0].GoalID); err != nil {
			return err
		}
	}
}
