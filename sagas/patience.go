package sagas

import (
	"time"

	"berth/aggregates/environment"
	"berth/events"
	"berth/events/fault"
)

//house:pure

// Patience is how long one verb may take, how its reconciliation is spaced and
// when an alarm is raised.
type Patience struct {
	Call    time.Duration // deadline of one call to the driver (scenario 81)
	Alarm   time.Duration // an operation open for longer is stuck (scenario 18)
	Exclude int           // how often to ask before asking for exclusion
}

// Bounds of the retry of one step: exponential with full jitter.
const (
	RetryFirst = 250 * time.Millisecond
	RetryMost  = 15 * time.Second
	// MaxExcluded is how many creates of one lifecycle may be proved never to
	// land before the spawn fails. Trying again under a new id is safe only
	// because of the proof. It bounds the tries of one step of an extension too.
	MaxExcluded = 3
	// MaxThrottled is how many creates of one lifecycle a provider may put off
	// before the spawn fails.
	MaxThrottled = 12
	// MaxStops is how many stops that did not stop the seat are tried before
	// destroy is asked anyway (scenario 27).
	MaxStops = 3
)

var patience = map[events.Verb]Patience{
	events.VerbReserve:    {Call: 30 * time.Second, Alarm: 5 * time.Minute, Exclude: 4},
	events.VerbProvision:  {Call: 5 * time.Minute, Alarm: 15 * time.Minute, Exclude: 4},
	events.VerbStart:      {Call: time.Minute, Alarm: 5 * time.Minute, Exclude: 4},
	events.VerbPause:      {Call: 30 * time.Second, Alarm: 5 * time.Minute, Exclude: 4},
	events.VerbResume:     {Call: 30 * time.Second, Alarm: 5 * time.Minute, Exclude: 4},
	events.VerbExtend:     {Call: 30 * time.Second, Alarm: 5 * time.Minute, Exclude: 4},
	events.VerbCheckpoint: {Call: 10 * time.Minute, Alarm: 30 * time.Minute, Exclude: 4},
	events.VerbRestore:    {Call: 10 * time.Minute, Alarm: 30 * time.Minute, Exclude: 4},
	events.VerbExport:     {Call: 30 * time.Minute, Alarm: time.Hour, Exclude: 4},
	events.VerbDeleteFile: {Call: 30 * time.Second, Alarm: 5 * time.Minute, Exclude: 4},
	events.VerbStop:       {Call: 2 * time.Minute, Alarm: 10 * time.Minute, Exclude: 4},
	events.VerbDestroy:    {Call: 2 * time.Minute, Alarm: 10 * time.Minute, Exclude: 4},
}

// PatienceOf is the row of a verb.
func PatienceOf(v events.Verb) Patience { return patience[v] }

// Backoff is the wait before attempt n+1; jitter is in [0, 1).
func Backoff(n int, jitter float64) time.Duration {
	d := RetryMost
	if n < 6 {
		d = min(RetryFirst<<n, RetryMost)
	}
	return d/2 + time.Duration(jitter*float64(d/2))
}

// MostRetryAfter bounds what a provider may ask for.
const MostRetryAfter = 15 * time.Minute

// retryAfter is when a provider that throttled asked to be called again; zero
// if it did not say.
func retryAfter(e *fault.Error) time.Duration {
	if e == nil {
		return 0
	}
	for _, d := range e.Details {
		if d.Kind == environment.DetailThrottled {
			wait, err := time.ParseDuration(d.Facts["retryAfter"])
			if err == nil && wait > 0 {
				return min(wait, MostRetryAfter)
			}
		}
	}
	return 0
}
