//go:build !unix

package bench

import "time"

// processorTime is not known here; rows that need it say zero.
func processorTime() time.Duration { return 0 }
