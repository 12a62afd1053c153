package sim

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// MaxFailures is how many failing seeds a sweep keeps before it ends.
const MaxFailures = 20

// gcPercent and heapLimit give the collector more room while histories are
// played: each leaves a few megabytes, all of which is garbage at its end. With
// two workers the heap is some 200 MiB; the limit holds it with very many.
const (
	gcPercent = 3200
	heapLimit = 1 << 30
)

// batch sets the collector for playing many histories; undo sets it back.
func batch() (undo func()) {
	percent := debug.SetGCPercent(gcPercent)
	limit := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(limit, heapLimit))
	return func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }
}

// Failure is a seed that broke a law.
type Failure struct {
	Seed  uint64   `json:"seed"`
	Laws  string   `json:"laws"`
	Story []string `json:"story"`
}

// Report is what a sweep of many seeds came to.
type Report struct {
	From      uint64  `json:"from"`
	Seeds     int     `json:"seeds"` // played, each twice
	Workers   int     `json:"workers"`
	Seconds   float64 `json:"seconds"`
	Lifetimes int     `json:"lifetimes"` // of one of the two
	Records   int     `json:"records"`
	Steps     int     `json:"steps"`
	Crashes   int     `json:"crashes"`
	Takeovers int     `json:"takeovers"`
	WriteOffs int     `json:"writeOffs"`
	Exports   int     `json:"exports"`
	Offers    int     `json:"offers"`
	HandOvers int     `json:"handOvers"`
	// Of the wide histories: clocks that were set under a manager, and managers
	// that began from an old snapshot.
	ClockSteps  int     `json:"clockSteps"`
	StaleStarts int     `json:"staleStarts"`
	PerCore     float64 `json:"lifetimesPerSecondPerCore"` // of both
	// PerProcessor is PerCore by the processor time that was used: a busy machine
	// gives a process less than its cores. Zero if it is not known.
	PerProcessor float64   `json:"lifetimesPerProcessorSecond"`
	Failures     []Failure `json:"failures"`
}

// Sweep plays seeds from `from` on, each twice and compared, on that many
// workers, until all are played, ctx ends or MaxFailures have failed. progress
// may be nil; it is told how many are done, from any goroutine.
func Sweep(ctx context.Context, from uint64, seeds, workers int, progress func(done int)) Report {
	defer batch()()
	began := time.Now()
	r := Report{From: from, Workers: workers, Failures: []Failure{}}
	var next atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	var sum Result
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := next.Add(1) - 1
				if n >= int64(seeds) {
					return
				}
				one, bad := twice(from + uint64(n))
				mu.Lock()
				sum.Add(one)
				r.Seeds++
				if bad != nil {
					r.Failures = append(r.Failures, *bad)
				}
				done, full := r.Seeds, len(r.Failures) >= MaxFailures
				mu.Unlock()
				if progress != nil {
					progress(done)
				}
				if full {
					next.Store(int64(seeds))
				}
			}
		})
	}
	wg.Wait()
	r.Seconds = time.Since(began).Seconds()
	r.Lifetimes, r.Records, r.Steps, r.Crashes = sum.Lifetimes, sum.Records, sum.Steps, sum.Crashes
	r.Takeovers, r.WriteOffs, r.Exports = sum.Takeovers, sum.WriteOffs, sum.Exports
	r.Offers, r.HandOvers = sum.Offers, sum.HandOvers
	r.ClockSteps, r.StaleStarts = sum.ClockSteps, sum.StaleStarts
	if r.Seconds > 0 {
		r.PerCore = 2 * float64(r.Lifetimes) / r.Seconds / float64(workers)
	}
	return r
}

// Processor says how much processor time the sweep used, for whoever can tell.
func (r *Report) Processor(used time.Duration) {
	if used > 0 {
		r.PerProcessor = 2 * float64(r.Lifetimes) / used.Seconds()
	}
}

// twice plays a seed two times: once everybody folds what is read back from the
// bytes of the log, once what was committed. Whatever is different, by chance or
// because the codec lost it, shows in the digest, which is made of the bytes of
// both. One that fails is played once more, to tell its story.
func twice(seed uint64) (Result, *Failure) {
	a, err := Run(seed)
	b, errEcho := RunWith(seed, Options{Echo: true})
	switch {
	case err != nil:
	case a.Digest != b.Digest || a.Steps != b.Steps:
		err = fmt.Errorf("seed %d: played twice, it gave %x in %d steps and %x in %d", seed, a.Digest[:4], a.Steps, b.Digest[:4], b.Steps)
	case errEcho != nil:
		err = fmt.Errorf("without reading back: %w", errEcho)
	}
	if err == nil {
		return a, nil
	}
	told, _ := RunWith(seed, Options{Tell: true})
	return a, &Failure{Seed: seed, Laws: err.Error(), Story: told.History}
}
