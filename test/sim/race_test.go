//go:build race

package sim

import "time"

// defaultTime is shorter with the race detector, which makes everything six times as slow.
const defaultTime = 8 * time.Minute
