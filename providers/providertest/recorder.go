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

func (r *recorder) TempDir() string { return r.dir() }
