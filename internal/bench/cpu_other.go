//go:build !unix

package bench

import "time"

// ProcessorTime is not known here; rows that need it say zero.
func ProcessorTime() time.Duration { return 0 }
