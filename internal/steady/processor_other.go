//go:build !unix

package steady

import "time"

// ProcessorTime is not known here; what needs it says zero.
func ProcessorTime() time.Duration { return 0 }
