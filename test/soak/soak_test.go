package soak

import (
	"flag"
	"testing"
	"time"
)

var (
	wanted  = flag.Bool("soak", false, "run the checks that take long")
	soakFor = flag.Duration("soak.for", time.Hour, "how long hostile clients go on")
)

// long ends a test that was not asked for.
func long(t *testing.T) {
	t.Helper()
	if !*wanted {
		t.Skip("it takes long: make soak runs it")
	}
}
