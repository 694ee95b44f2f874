package delivery

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// publishHub stores an event with a body in a hub's partition.
func (y *yard) publishHub(hub string, partition int, body string) {
	y.t.Helper()
	stored, err := message.Append(nil, event.Event{Body: []byte(body), ContentType: "application/json"})
	testkit.Must(y.t, err)
	testkit.Must(y.t, testkit.Err(y.Broker.Publish(y.t.Context(), hub, broker.Target{Partition: strconv.Itoa(partition)}, []eventlog.Event{{Message: stored}})))
}

// G1: a hub is a source like a topic, with all its partitions.
func TestAHubFeedsSubscriptions(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.Hub(y.t, "readings", 4)
		y.publishHub("readings", 0, `{"early":true}`)
		source := topics.Source{Hub: "readings"}
		y.subscribeTo(source, "all-of-them")
		id := y.subscribeTo(source, "hot-ones", func(s *topics.Settings) {
			s.Filter = filter.Config{Advanced: []filter.Condition{{Operator: "NumberGreaterThan", Key: "data.t", Value: []byte("50")}}}
		})
		wait()
		want := []string{}
		for i := range 40 {
			y.publishHub("readings", i%4, fmt.Sprintf(`{"t":%d}`, i*2))
			n := i / 4
			if i%4 == 0 {
				n++
			}
			want = append(want, fmt.Sprintf("yard/readings/%d/%d", i%4, n))
		}
		wait()
		wantIDs(t, "all", y.sender.delivered("all-of-them"), want)
		wantIDs(t, "hot", y.sender.delivered("hot-ones"), want[26:])
		after(2 * time.Second)
		y.restart()
		after(time.Minute)
		testkit.Equal(t, len(y.sender.delivered("hot-ones")), 14, "deliveries of 14 events")
		y.wantStats(id, func(st Stats) bool { return st.Behind == 0 && st.Oldest.IsZero() })
	})
}

// G1, K3: numbers that are no events, as those that transactions leave behind, are not lost, whether a subscription is with
// the others or catches up.
func TestNumbersWithoutEventsAreNotLost(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		log := broker.LogOf(y.Broker, y.Hub(y.t, "readings", 1).ID)
		source := topics.Source{Hub: "readings"}
		y.subscribeTo(source, "quick")
		y.subscribeTo(source, "paused")
		y.changeOf(source, "paused", func(s *topics.Settings) { s.Paused = true })
		wait()
		for producer := range int64(3) {
			y.publishHub("readings", 0, `{}`)
			word := record.Marker(producer+1, 0, true, time.Now())
			testkit.Must(t, y.Broker.EndTransaction(t.Context(), log, 0, word, func(context.Context) error { return nil }))
		}
		y.publishHub("readings", 0, `{}`)
		wait()
		y.changeOf(source, "paused", func(s *topics.Settings) { s.Paused = false })
		after(time.Minute)
		want := []string{"yard/readings/0/0", "yard/readings/0/2", "yard/readings/0/4", "yard/readings/0/6"}
		wantIDs(t, "quick", y.sender.delivered("quick"), want)
		wantIDs(t, "paused", y.sender.delivered("paused"), want)
		testkit.Equal(t, testutil.ToFloat64(y.service.metrics.overtaken), 0, "events that are told as lost")
	})
}

func TestADeletedHubEndsQuietly(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.Hub(y.t, "readings", 2)
		id := y.subscribeTo(topics.Source{Hub: "readings"}, "receiver")
		y.sender.always(status(500))
		wait()
		y.publishHub("readings", 1, `{}`)
		wait()
		testkit.Must(t, y.Broker.DeleteHub(t.Context(), "readings"))
		y.sender.always(ok())
		after(10 * time.Second)
		wantIDs(t, "what was taken before", y.sender.delivered(""), []string{"yard/readings/1/0"})
		y.stats(id)
		y.Hub(y.t, "readings", 2) // another one
		y.publishHub("readings", 1, `{}`)
		after(time.Minute)
		y.restart()
		after(time.Minute)
		testkit.Equal(t, len(y.sender.delivered("")), 1, "deliveries: another hub of the same name is another source")
	})
}

// G4, G5: a hub as the endpoint.
func TestAHubIsAResourceEndpoint(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.Hub(y.t, "target", 1)
		id := y.orders("to-hub", resource)
		y.sender.always(outcome(retry.Full))
		y.publish("orders", ids("e", 12)...)
		wait()
		if st := y.stats(id).Endpoint; st.State != retry.Waiting || st.Last != retry.Full {
			t.Errorf("endpoint %+v", st)
		}
		y.sender.always(ok())
		after(6 * time.Minute)
		wantIDs(t, "delivered", y.sender.delivered(""), ids("e", 12))
	})
}

// G1: what holds for a topic's one partition holds for all of a hub's.
func TestNothingOfAHubIsLost(t *testing.T) {
	for seed := range max(*seeds/8, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { liveOnAHub(newLife(t, uint64(2000+seed))) })
		})
	}
}

func liveOnAHub(l *life) {
	const partitions = 3
	l.Hub(l.t, "readings", partitions)
	source := topics.Source{Hub: "readings"}
	l.start()
	names := []string{"plain", "batched", "steady"}
	l.subscribeTo(source, "plain")
	l.subscribeTo(source, "batched", batched(4, 0))
	l.subscribeTo(source, "steady", func(s *topics.Settings) { s.Concurrency = 1 })
	var want []string
	next := make([]int, partitions)
	publish := func() {
		for range 1 + l.dice.IntN(30) {
			p := l.dice.IntN(partitions)
			l.publishHub("readings", p, `{"n":1}`)
			want = append(want, fmt.Sprintf("yard/readings/%d/%d", p, next[p]))
			next[p]++
		}
	}
	for range 50 {
		switch l.dice.IntN(7) {
		case 0, 1:
			publish()
		case 2:
			l.weather.Store(int32(l.dice.IntN(11)))
		case 3:
			after(time.Duration(l.dice.IntN(60_000)) * time.Millisecond)
		case 4:
			l.restart()
		case 5:
			l.plug.fuse.Store(1 + l.dice.Int64N(60))
			publish()
			after(time.Duration(l.dice.IntN(20_000)) * time.Millisecond)
			l.restart()
		case 6:
			l.changeOf(source, names[l.dice.IntN(3)], func(s *topics.Settings) { s.Paused = !s.Paused })
		}
	}
	l.weather.Store(0)
	for _, name := range names {
		sub := l.changeOf(source, name, func(s *topics.Settings) { s.Paused = false })
		defer func() { wantIDs(l.t, name, append(l.sender.delivered(name), l.dead.of(sub.ID)...), want) }()
	}
	after(30 * time.Hour)
	testkit.Equal(l.t, l.service.budget.used.Load(), 0, "bytes are in use at the end")
	l.stop()
}

// brokenPartition is a broker one of whose partitions cannot be read.
type brokenPartition struct {
	Broker
	partition string
	broken    *atomic.Bool
}

func (b brokenPartition) Cursor(ctx context.Context, hub, group, partition string, at eventlog.Position) (eventlog.Cursor, error) {
	if partition == b.partition && b.broken.Load() {
		return nil, errTest
	}
	return b.Broker.Cursor(ctx, hub, group, partition, at)
}

// G1: a partition that cannot be read does not keep a subscription from catching up in others.
func TestABrokenPartitionHoldsUpNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		y.stop()
		var broken atomic.Bool
		y.config = func(c *Config) { c.Broker = brokenPartition{c.Broker, "0", &broken} }
		y.start()
		y.Hub(y.t, "readings", 2)
		source := topics.Source{Hub: "readings"}
		y.subscribeTo(source, "receiver", func(s *topics.Settings) { s.Paused = true })
		wait()
		var want []string
		for i := range 5 {
			y.publishHub("readings", 0, "{}")
			y.publishHub("readings", 1, "{}")
			want = append(want, fmt.Sprintf("yard/readings/1/%d", i))
		}
		wait()
		broken.Store(true)
		y.changeOf(source, "receiver", func(s *topics.Settings) { s.Paused = false })
		after(time.Minute)
		wantIDs(t, "of the other partition", y.sender.delivered(""), want)
	})
}

// C2: a retry may fall due, and its lane be filled, while others of the same source are still being
// made. It is for the race detector.
func TestARetryFallsDueBeforeItsSourceIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1)
		f.topic("orders")
		const shard = 7
		var names []string
		for i := 0; len(names) < 2; i++ {
			name := fmt.Sprint("receiver-", i)
			if id := f.subscribe("orders", name); shards.Of(id) == shard {
				names = append(names, name)
			} else {
				f.unsubscribe("orders", name)
			}
			after(time.Second) // lanes are made in the order in which their subscriptions were
		}
		f.give(shard, f.nodes[0])
		wait()
		f.sender.fails(names[0], status(503)) // which is tried again after half a minute
		f.publish("orders", "waiting")
		wait()
		// The first lane is made before that, the second a moment after it. The answers come later: what
		// they bring about has locks in common, and would put all of it in order.
		f.sender.prepares(15*time.Second + 10*time.Millisecond)
		f.sender.after(time.Second, ok())
		f.move(shard, f.nodes[0])
		f.publish("orders", "new")
		after(2 * time.Minute)
		for _, name := range names {
			wantIDs(t, name, f.sender.delivered(name), []string{"waiting", "new"})
			testkit.Equal(t, len(f.sender.delivered(name)), 2, "deliveries to %s", name)
		}
		f.holders[shard].end(errHandoff)
		testkit.Check(t, <-f.holders[shard].ended)
		f.nodes[0].stop()
	})
}
