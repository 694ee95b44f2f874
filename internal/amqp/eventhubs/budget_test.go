package eventhubs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestTheBudgetMakesTheReaderWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget()
		ctx, cancel := context.WithCancelCause(t.Context())
		const most = maxUnderWay - 2*deliveryOverheadBytes
		testkit.Must(t, b.take(ctx, most-10))
		testkit.Must(t, b.take(ctx, 10))
		taken := make(chan error)
		go func() { taken <- b.take(ctx, 20) }()
		synctest.Wait()
		b.give(10)
		synctest.Wait()
		select {
		case err := <-taken:
			t.Fatalf("there was no room, and take says %v", err)
		default:
		}
		b.give(most - 10)
		testkit.Must(t, <-taken)

		testkit.Must(t, b.take(ctx, most-20))
		go func() { taken <- b.take(ctx, 1) }()
		synctest.Wait()
		gone := errors.New("gone")
		cancel(gone)
		testkit.ErrorIs(t, <-taken, gone, "after the connection's end take says")
	})
}

// What is larger than the budget would wait for ever, were it not let through alone.
func TestWhatIsLargerThanTheBudgetGoesAlone(t *testing.T) {
	b := newBudget()
	testkit.Must(t, b.take(t.Context(), 2*maxUnderWay))
	testkit.Equal(t, b.tryTake(1), false, "something went beside it")
	b.give(2 * maxUnderWay)
	testkit.Equal(t, b.tryTake(1), true, "nothing goes after it")
}

// Empty messages are not for nothing: each has a goroutine and a place in the log's queue.
func TestEmptyMessagesAreBounded(t *testing.T) {
	b := newBudget()
	n := 0
	for ; b.tryTake(0); n++ {
		if n > maxUnderWay/deliveryOverheadBytes {
			t.Fatalf("%d empty messages are under way", n)
		}
	}
	b.give(0)
	testkit.Equal(t, b.tryTake(0), true, "what one gave back is not the room of one")
	testkit.Equal(t, b.tryTake(0), false, "what one gave back is not the room of one")
}
