//go:build race

package nodes

import "time"

// The race detector makes everything six times as slow.
const (
	defaultSeeds = 5
	defaultTime  = 4 * time.Minute
)
