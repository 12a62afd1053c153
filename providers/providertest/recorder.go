package providertest

import (
	"fmt"
	"sync"
)

// recorder is the T of Conform.
type recorder struct {
	dir    func() string
	mu     sync.Mutex
	result Result
}

func (r *recorder) Helper() {}

func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Log = append(r.result.Log, fmt.Sprintf(format, args...))
}

func (r *recorder) Errorf(format string, args ...any) {
	r.Logf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.OK = false
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.mu.Lock()
	r.result.Skipped = fmt.Sprintf(format, args...)
	r.mu.Unlock()
	goexit()
}

// deny notes that the driver does not claim what the check is about.
func (r *recorder) deny(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.NotClaimed = fmt.Sprintf(format, args...)
}

// sent keeps the last calls.
func (r *recorder) sent(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.result.OK {
		return // what came before the failure explains it, not the tidying after it
	}
	if r.result.Sent = append(r.result.Sent, line); len(r.result.Sent) > maxSent {
		r.result.Sent = r.result.Sent[1:]
	}
}

// end is the result: what was sent is told of failures only.
func (r *recorder) end() Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.result.OK {
		r.result.Sent = nil
	}
	if r.result.NotClaimed != "" {
		r.result.Skipped = ""
	}
	return r.result
}

func (r *recorder) TempDir() string { return r.dir() }
