package groups

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// assigned is an assignment of partitions as leaders write it.
func assigned(hub string, numbers ...int32) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	topic := kmsg.NewConsumerMemberAssignmentTopic()
	topic.Topic, topic.Partitions = hub, numbers
	a.Topics = append(a.Topics, topic)
	return a.AppendTo(nil)
}

// P6, K2: operators see who has which partition, what is committed and how much is behind, and so do metrics.
func TestTheTableOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 3)
		y.Publish(t, "orders", "0", "a", "b", "c")
		registry := prometheus.NewRegistry()
		c, _ := y.start(func(c *Config) { c.Metrics = registry })
		j := testkit.Value(c.Join(t.Context(), "g", wants("", "orders"), anything))(t)
		assign := classic.Sync{Member: j.Member, Generation: j.Generation, Assignments: map[string][]byte{j.Member: assigned("Orders", 0, 1)}}
		testkit.Must(t, testkit.Err(c.Sync(t.Context(), "g", assign, anything)))
		store(t, c, "g", as(j), y.partition("orders", 0), 1)
		store(t, c, "g", as(j), y.partition("orders", 1), 4)
		time.Sleep(time.Second)
		o := Operator{c}
		d := testkit.Value(o.Look(t.Context(), "g"))(t)
		testkit.Slices(t, o.Hubs(d), []string{"orders"}, "hubs")
		rows := testkit.Value(o.Rows(t.Context(), d, "Orders"))(t)
		testkit.MustEqual(t, len(rows), 3, "rows")
		testkit.That(t, rows[0].Member == j.Member && rows[0].Client == "test" && rows[1].Member == j.Member && rows[2].Member == "", "owned as %+v", rows)
		testkit.Equal(t, rows[0].Lag.Events, int64(2))
		testkit.That(t, rows[0].Lag.Oldest >= time.Second, "the oldest waits for %v", rows[0].Lag.Oldest)
		testkit.That(t, rows[1].Beyond && rows[1].Lag.Events == 0, "beyond the end: %+v", rows[1])
		testkit.That(t, rows[2].Committed == nil && rows[2].Lag == nil, "nothing is committed: %+v", rows[2])
		want := `
# HELP eventyard_kafka_group_lag_events Events of a partition behind what a Kafka group has committed, told by the node that coordinates it.
# TYPE eventyard_kafka_group_lag_events gauge
eventyard_kafka_group_lag_events{group="g",hub="orders",partition="0"} 2
eventyard_kafka_group_lag_events{group="g",hub="orders",partition="1"} 0
# HELP eventyard_kafka_group_members Members of a Kafka group, told by the node that coordinates it.
# TYPE eventyard_kafka_group_members gauge
eventyard_kafka_group_members{group="g"} 1
`
		testkit.Must(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "eventyard_kafka_group_lag_events", "eventyard_kafka_group_members"))
	})
}

// P7, K2: operators set, forget and delete what groups have committed, at whichever node, and never while somebody is in
// the group. The node that coordinates it goes on with what they have done.
func TestOperatorsChangeGroupsOfAnyNode(t *testing.T) {
	for _, name := range []string{"at its own node", "at another"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t)
				y.Hub(t, "orders", 2)
				y.Hub(t, "bills", 1)
				p := y.partition("orders", 1)
				c, _ := y.start()
				o := Operator{c}
				if name == "at another" {
					other, _ := y.start(func(c *Config) { c.Node, c.Mine = "there", func(string) bool { return false } })
					o = Operator{other}
				}
				testkit.ErrorIs(t, testkit.Err(o.Look(t.Context(), "g")), ErrNotFound)
				testkit.ErrorIs(t, o.Forget(t.Context(), "g", "orders"), ErrNotFound)
				testkit.Must(t, o.SetOffsets(t.Context(), "g", "orders", map[int32]int64{1: 5}), "of a new group")
				testkit.Equal(t, committed(t, c, "g", p), int64(5))
				store(t, c, "g", nobody, y.partition("bills", 0), 2)
				j := alone(t, c, "g", "orders")
				testkit.ErrorIs(t, o.SetOffsets(t.Context(), "g", "orders", map[int32]int64{1: 6}), ErrNotEmpty)
				testkit.ErrorIs(t, o.Forget(t.Context(), "g", "orders"), ErrNotEmpty)
				testkit.ErrorIs(t, o.Delete(t.Context(), "g", anybody), ErrNotEmpty)
				testkit.Equal(t, len(testkit.Value(o.Look(t.Context(), "g"))(t).Members), 1, "members")
				testkit.Must(t, beat(t.Context(), c, "g", j), "the member was disturbed")
				testkit.Must(t, testkit.Err(c.Leave(t.Context(), "g", []classic.Leaver{{Member: j.Member}}, anything)))
				testkit.Must(t, o.SetOffsets(t.Context(), "g", "orders", map[int32]int64{0: 1, 1: 6}))
				testkit.Equal(t, committed(t, c, "g", p), int64(6))
				testkit.Equal(t, testkit.Value(o.Committed(t.Context(), "g", "orders"))(t)[0].Offset, int64(1))
				testkit.Must(t, o.Forget(t.Context(), "g", "bills"))
				testkit.Slices(t, testkit.Value(o.Look(t.Context(), "g"))(t).Logs, []string{p.Log}, "hubs with offsets")
				testkit.Must(t, o.Delete(t.Context(), "g", anybody))
				testkit.Equal(t, len(testkit.Value(o.All(t.Context()))(t)), 0, "groups")
				testkit.Eventually(t, "the coordinator goes on", func() bool {
					failed, err := c.Commit(t.Context(), "g", nobody, map[Partition]Position{p: {Offset: 9}})
					return err == nil && len(failed) == 0
				})
				testkit.Equal(t, committed(t, c, "g", p), int64(9))
			})
		})
	}
}

// K6: one account has at most half of the groups that may be stored, and that may be in use.
func TestOneAccountHasAShareOfTheGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		at := y.partition("orders", 0)
		c, stop := y.start(func(c *Config) { c.MaxGroups = 4 })
		commit := func(ctx context.Context, group string) error {
			_, err := c.Commit(ctx, group, nobody, map[Partition]Position{at: {Offset: 1}})
			return err
		}
		one, other := For(t.Context(), "one"), For(t.Context(), "other")
		testkit.Must(t, commit(one, "a"))
		testkit.Must(t, commit(one, "b"))
		testkit.That(t, commit(one, "c") != nil, "a third group is in use, or stored")
		time.Sleep(time.Minute)
		testkit.ErrorIs(t, commit(one, "c"), ErrTooManyGroups, "stored")
		testkit.Must(t, commit(one, "a"), "one that there is")
		time.Sleep(time.Minute) // until nobody has the group that was refused
		testkit.Must(t, commit(other, "c"))
		stop()
		c, _ = y.start(func(c *Config) { c.MaxGroups = 4 })
		synctest.Wait()
		testkit.ErrorIs(t, commit(one, "d"), ErrTooManyGroups, "stored, after a restart")
		testkit.Must(t, c.Delete(one, "a", anybody))
		time.Sleep(time.Minute)
		testkit.Must(t, commit(one, "d"))
		c.mu.Lock()
		defer c.mu.Unlock()
		for account, n := range c.loadedBy {
			testkit.That(t, n > 0, "%q is counted %d times", account, n)
		}
	})
}

// R3: of many groups that have members a coordinator takes a few over at a time when it starts, and all in the end.
func TestGroupsAreTakenOverAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		c, stop := y.start()
		const groups = 3 * adoptAtOnce
		for i := range groups {
			alone(t, c, fmt.Sprint("g", i), "orders")
		}
		stop()
		var now, most atomic.Int32
		y.Meta.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpSet && op.Under(groupsPrefix) {
				for n, seen := now.Add(1), most.Load(); n > seen && !most.CompareAndSwap(seen, n); {
					seen = most.Load()
				}
				time.Sleep(time.Second)
				now.Add(-1)
			}
			return nil
		})
		c, _ = y.start()
		time.Sleep(time.Minute / 10)
		y.Meta.Inject(nil)
		testkit.Equal(t, len(c.loadedGroups()), groups, "groups that were taken over")
		testkit.Equal(t, int(most.Load()), adoptAtOnce, "at a time")
	})
}

// K6: the names of topics that members subscribe to are counted, besides what is stored of them.
func TestTheNamesOfTopicsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		c, _ := y.start()
		var hubs []string
		for i := range 500 {
			hubs = append(hubs, fmt.Sprintf("%s-%d", strings.Repeat("x", 100), i))
		}
		join := wants("", hubs...)
		testkit.Must(t, testkit.Err(c.Join(t.Context(), "g", join, anything)))
		c.mu.Lock()
		defer c.mu.Unlock()
		raw := len(join.Protocols[0].Metadata)
		testkit.That(t, c.bytes > raw*4/3+raw, "%d bytes are counted for a subscription of %d", c.bytes, raw)
	})
}

// K2: whoever may not listen to a hub in which a group has offsets is let in when these were deleted.
func TestAGroupWithoutOffsetsInAHubIsNotAboutIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		y.Hub(t, "secrets", 1)
		c, _ := y.start()
		store(t, c, "g", nobody, y.partition("secrets", 0), 1)
		orders := func(hub string) bool { return hub == "orders" }
		testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), "g", wants("", "orders"), orders)), ErrRights)
		testkit.Must(t, Operator{c}.Forget(t.Context(), "g", "secrets"))
		testkit.Must(t, testkit.Err(c.Join(t.Context(), "g", wants("", "orders"), orders)))
	})
}
