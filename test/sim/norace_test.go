//go:build !race

package sim

import "time"

const defaultTime = 20 * time.Minute
