//go:build unix

package server

import (
	"math"
	"syscall"
)

// descriptorLimit is how many descriptors this process may have; 0: nobody knows. Go has raised it
// to the most that is allowed.
func descriptorLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(limit.Cur) > math.MaxInt32 {
		return 0
	}
	return int(limit.Cur)
}
