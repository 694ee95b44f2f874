package delivery

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

// G1
func TestEveryMatchingSubscriptionGetsEventsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		y.subscribe("orders", "all-of-them")
		y.subscribe("orders", "only-paid", func(s *topics.Settings) { s.Filter = filter.Config{EventTypes: []string{"paid"}} })
		wait()
		began := time.Now()
		y.publish("orders", "paid/1", "open/2", "paid/3")
		wait()
		wantIDs(t, "all", y.sender.delivered("all-of-them"), []string{"paid/1", "open/2", "paid/3"})
		wantIDs(t, "paid", y.sender.delivered("only-paid"), []string{"paid/1", "paid/3"})
		for _, d := range y.sender.all("") {
			testkit.Equal(t, d.at, began, "%v was tried after %v", d.ids, d.at.Sub(began))
		}
	})
}

// G5, G6: the whole schedule, to the time to live.
func TestRetriesFollowTheScheduleToTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.config = nil
		y.orders("broken")
		y.sender.always(status(500))
		began := time.Now()
		y.publish("orders", "a")
		after(49 * time.Hour)
		want := []time.Duration{
			0, 10 * time.Second, 40 * time.Second, 100 * time.Second, 400 * time.Second, 1000 * time.Second, 2800 * time.Second,
			6400 * time.Second, 17200 * time.Second, 38800 * time.Second, 82000 * time.Second,
		}
		got := y.sender.all("broken")
		for i, d := range got {
			if i >= len(want) || d.at.Sub(began) != want[i] || d.attempts[0] != i {
				t.Errorf("attempt %d (%d made before) after %v", i+1, d.attempts[0], d.at.Sub(began))
			}
		}
		testkit.Equal(t, len(got), len(want), "attempts")
		letters := y.dead.all()
		if len(letters) != 1 || letters[0].Reason != retry.ReasonAge || letters[0].Attempts != 11 {
			t.Errorf("dead letters: %+v", letters)
		}
	})
}
