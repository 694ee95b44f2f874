package embedded

import (
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/testkit"
)

// C5: a server that has locked up does not keep its process from ending.
func TestAServerThatDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locked := make(chan struct{})
		testkit.Equal(t, stopsWithin(stopTime, func() { <-locked }), false, "one that has locked up stops")
		testkit.Equal(t, stopsWithin(stopTime, func() {}), true, "another stops")
		close(locked)
	})
}
