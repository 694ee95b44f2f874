package oldest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// P6: an event is read once while it is the oldest; one that is not there, or cannot be read, is read again.
func TestAnEventIsReadOnce(t *testing.T) {
	var times Times
	reads := 0
	stored, failed := time.Time{}, errors.New("broken")
	ask := func(number int64) (time.Time, error) {
		return times.Of("g", number, func() (time.Time, error) { reads++; return stored, failed })
	}
	testkit.ErrorIs(t, testkit.Err(ask(1)), failed)
	failed = nil
	testkit.That(t, testkit.Value(ask(1))(t).IsZero(), "there is no such event")
	stored = time.Unix(7, 0)
	for range 3 {
		testkit.Equal(t, testkit.Value(ask(1))(t), stored)
	}
	testkit.Equal(t, reads, 3, "reads of the first")
	testkit.Equal(t, testkit.Value(ask(2))(t), stored)
	testkit.Equal(t, reads, 4, "reads of both")
}

// R3: groups that are gone leave nothing behind for ever.
func TestWhatIsKeptIsBounded(t *testing.T) {
	var times Times
	for i := range maxKept + 1 {
		testkit.Must(t, testkit.Err(times.Of(fmt.Sprint(i), 1, func() (time.Time, error) { return time.Unix(1, 0), nil })))
	}
	testkit.That(t, len(times.all) <= maxKept, "%d are kept", len(times.all))
}
