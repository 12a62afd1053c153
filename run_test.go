package berth

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Scenario 77: a part of the manager that ends before its time is shown by
// readiness from that moment on, and is begun again.
func TestAPartThatEndsIsShownAndBegunAgain(t *testing.T) {
	for _, why := range []error{errors.New("its connection is gone"), nil} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			w := &workers{ctx: ctx, log: func(string, ...any) {}, failed: map[string]error{}}
			var begun atomic.Int64
			die := make(chan struct{})
			w.Go("views", func(ctx context.Context) error {
				begun.Add(1)
				select {
				case <-die:
					return why
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			synctest.Wait()
			if err := w.Err(); err != nil {
				t.Errorf("while it runs: %v", err)
			}
			die <- struct{}{}
			synctest.Wait()
			if err := w.Err(); err == nil {
				t.Error("a part has ended and readiness does not say so")
			}
			time.Sleep(2 * retryWorker)
			synctest.Wait()
			if err := w.Err(); err != nil || begun.Load() != 2 {
				t.Errorf("begun %d times, and then: %v", begun.Load(), err)
			}
			cancel()
			w.Wait()
		})
	}
}
