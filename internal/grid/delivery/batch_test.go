package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
)

// batched asks for batches.
func batched(events, kib int) func(*topics.Settings) {
	return func(s *topics.Settings) { s.MaxEvents, s.PreferredKiB = events, kib }
}

// large makes an id of so many bytes.
func large(prefix string, bytes int) string { return prefix + strings.Repeat("x", bytes/3) }

func sizes(drops []drop) []int {
	var all []int
	for _, d := range drops {
		all = append(all, len(d.ids))
	}
	return all
}

// G2
func TestBatches(t *testing.T) {
	for _, c := range []struct {
		name   string
		change []func(*topics.Settings)
		ids    []string
		want   []int // sizes of the batches, in any order
	}{
		{name: "off: one event a request", ids: ids("e", 5), want: []int{1, 1, 1, 1, 1}},
		{name: "a maximum of one", change: []func(*topics.Settings){batched(1, 0)}, ids: ids("e", 2), want: []int{1, 1}},
		{name: "never more than the maximum", change: []func(*topics.Settings){batched(10, 0)}, ids: ids("e", 25), want: []int{5, 10, 10}},
		{name: "never waits to be full", change: []func(*topics.Settings){batched(100, 0)}, ids: ids("e", 3), want: []int{3}},
		{
			name: "up to the preferred size", change: []func(*topics.Settings){batched(100, 4)},
			ids: []string{large("a", 900), large("b", 900), large("c", 900), large("d", 900), large("e", 900)}, want: []int{2, 3},
		},
		{
			name: "one larger than the preferred size goes alone", change: []func(*topics.Settings){batched(100, 2)},
			ids: []string{"a", large("b", 9000), "c"}, want: []int{1, 1, 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				y.orders("receiver", c.change...)
				y.publish("orders", c.ids...)
				wait()
				wantIDs(t, "delivered", y.sender.delivered(""), c.ids)
				if got := slices.Sorted(slices.Values(sizes(y.sender.all("")))); !slices.Equal(got, c.want) {
					t.Errorf("batches of %v, want %v", got, c.want)
				}
			})
		})
	}
}

// G2: all or none.
func TestOneAnswerDecidesForTheWholeBatch(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.orders("receiver", batched(10, 0))
		y.sender.always(status(500))
		y.publish("orders", ids("e", 6)...)
		wait()
		y.sender.always(ok())
		after(10 * time.Second)
		drops := y.sender.all("")
		if len(drops) != 2 || len(drops[1].ids) != 6 {
			t.Errorf("requests %+v, want all six to be tried again together", drops)
		}
	})
}

// G2: attempts are each event's own.
func TestEventsOfOneBatchMayHaveBeenTriedDifferently(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		y.subscribe("orders", "receiver", batched(10, 0), func(s *topics.Settings) {
			s.Concurrency = 1
			s.Retry.MaxAttempts, s.Retry.Schedule = 2, []time.Duration{time.Second}
		})
		y.sender.always(status(500))
		wait()
		y.publish("orders", "old")
		wait()
		y.sender.says(func(ctx context.Context, d drop) webhook.Result {
			time.Sleep(1500 * time.Millisecond) // so that the next batch has both
			return status(500)
		})
		y.publish("orders", "filler")
		time.Sleep(500 * time.Millisecond)
		y.publish("orders", "new")
		after(time.Minute)
		mixed := slices.IndexFunc(y.sender.all(""), func(d drop) bool { return len(d.ids) == 2 })
		if mixed < 0 || slices.Min(y.sender.all("")[mixed].attempts) != 0 || slices.Max(y.sender.all("")[mixed].attempts) != 1 {
			t.Fatalf("requests %+v, want one with both", y.sender.all(""))
		}
		for _, p := range y.dead.all() {
			if p.Attempts != 2 || p.Reason != retry.ReasonAttempts {
				t.Errorf("dead letter after %d attempts for %s", p.Attempts, p.Reason)
			}
		}
		wantIDs(t, "dead", y.dead.ids(""), []string{"old", "filler", "new"})
	})
}

// G2, G4: a batch that is too large is taken apart before anything is given up.
func TestABatchThatIsTooLargeIsTakenApart(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		id := y.orders("receiver", batched(16, 0))
		y.sender.says(func(_ context.Context, d drop) webhook.Result {
			if len(d.ids) > 3 || slices.Contains(d.ids, "e00005") {
				return status(413)
			}
			return ok()
		})
		y.publish("orders", ids("e", 16)...)
		wait()
		wantIDs(t, "delivered", y.sender.delivered(""), slices.DeleteFunc(ids("e", 16), func(id string) bool { return id == "e00005" }))
		letters := y.dead.all()
		if len(letters) != 1 || letters[0].Attempts != 1 || letters[0].Reason != retry.ReasonRefused {
			t.Errorf("dead letters %+v, want one after one attempt", letters)
		}
		for _, d := range y.sender.all("") {
			testkit.Equal(t, slices.Max(d.attempts), 0, "taking a batch apart used an attempt: %+v", d)
		}
		testkit.Equal(t, y.stats(id).Endpoint.State, retry.Well, "endpoint")
	})
}

// Dynamic headers are one for a request.
func TestEventsWithDifferentHeadersDoNotShareABatch(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.topic("orders")
		y.subscribe("orders", "receiver", batched(100, 0), func(s *topics.Settings) {
			s.Headers = []topics.Header{{Name: "X-Kind", Field: "eventtype"}}
		})
		wait()
		var all []string
		for i := range 20 {
			all = append(all, fmt.Sprintf("%c/%d", 'a'+i%2, i))
		}
		y.publish("orders", all...)
		wait()
		wantIDs(t, "delivered", y.sender.delivered(""), all)
		if got := sizes(y.sender.all("")); !slices.Equal(got, []int{10, 10}) {
			t.Errorf("batches of %v, want one for each kind", got)
		}
	})
}
