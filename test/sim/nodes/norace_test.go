//go:build !race

package nodes

import "time"

const (
	defaultSeeds = 10
	defaultTime  = 10 * time.Minute
)
