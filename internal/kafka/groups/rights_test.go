package groups

import (
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/kafka/groups/consumer"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K5: a group that nobody is in is not anybody's: who joins it, or commits in it from outside, needs a right to all hubs
// in which it has offsets.
func TestAGroupAtRestIsNotTakenByStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		y.Hub(t, "bills", 1)
		c, _ := y.start()
		orders, bills := y.partition("orders", 0), y.partition("bills", 0)
		store(t, c, "g", nobody, orders, 5)
		right := func(hub string) bool { return hub == "bills" }
		testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), "g", wants("", "bills"), right)), ErrRights)
		h := consumer.Heartbeat{Member: "a", Names: []string{"bills"}}
		testkit.ErrorIs(t, testkit.Err(c.ConsumerHeartbeat(t.Context(), "g", h, right)), ErrRights)
		by := Committer{Generation: -1, May: right}
		testkit.ErrorIs(t, testkit.Err(c.Commit(t.Context(), "g", by, map[Partition]Position{bills: {Offset: 1}})), ErrRights)
		testkit.Must(t, testkit.Err(c.Commit(t.Context(), "other", by, map[Partition]Position{bills: {Offset: 1}})))
		joined := alone(t, c, "g", "orders")
		member := Committer{Member: joined.Member, Generation: joined.Generation, May: right}
		testkit.Must(t, testkit.Err(c.Commit(t.Context(), "g", member, map[Partition]Position{bills: {Offset: 1}})), "by a member")
	})
}

// K5: groups that are not of consumers name no hubs. Who is in one, or takes others out of it, needs a right to the
// namespace.
func TestOtherGroupsNeedARightToTheNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		c, _ := y.start()
		connect := wants("")
		connect.Type, connect.Instance = "connect", "worker"
		right := func(hub string) bool { return hub == "bills" }
		testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), "connect", connect, right)), ErrRights)
		joined := testkit.Value(c.Join(t.Context(), "connect", connect, anything))(t)
		stranger := wants("", "bills")
		stranger.Instance = "worker"
		testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), "connect", stranger, right)), ErrRights, "as a consumer")
		sync := classic.Sync{Member: joined.Member, Instance: "worker", Generation: joined.Generation}
		testkit.ErrorIs(t, testkit.Err(c.Sync(t.Context(), "connect", sync, right)), ErrRights)
		testkit.ErrorIs(t, c.Heartbeat(t.Context(), "connect", joined.Member, "worker", joined.Generation, right), ErrRights)
		testkit.ErrorIs(t, testkit.Err(c.Leave(t.Context(), "connect", []classic.Leaver{{Instance: "worker"}}, right)), ErrRights)
		testkit.Must(t, testkit.Err(c.Sync(t.Context(), "connect", sync, anything)))
	})
}

// K5 K6: offsets that are not there are removed without a trace: no hub is listed for them.
func TestRemovingWhatIsNotThereListsNoHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 200)
		y.Hub(t, "bills", 1)
		c, _ := y.start()
		orders := y.partition("orders", 0)
		store(t, c, "g", nobody, orders, 5)
		failed := testkit.Value(c.DeleteOffsets(t.Context(), "g", []Partition{y.partition("bills", 0), y.partition("orders", 150)}))(t)
		testkit.Equal(t, len(failed), 0, "errors")
		testkit.Slices(t, testkit.Value(c.Logs(t.Context(), "g"))(t), []string{orders.Log}, "hubs with offsets")
		testkit.Equal(t, len(testkit.Value(y.Meta.List(t.Context(), "kafka/offsets/"))(t)), 1, "shards")
		testkit.Must(t, testkit.Err(c.DeleteOffsets(t.Context(), "g", []Partition{orders})))
		testkit.Equal(t, committed(t, c, "g", orders), int64(-1), "one that was there")
		testkit.Equal(t, len(testkit.Value(c.Logs(t.Context(), "g"))(t)), 0, "hubs with offsets when none is left")
		testkit.Equal(t, len(testkit.Value(y.Meta.List(t.Context(), "kafka/offsets/"))(t)), 0, "shards when none is left")
		store(t, c, "g", nobody, orders, 7)
		testkit.Equal(t, committed(t, c, "g", orders), int64(7), "one that is committed again")
	})
}

// K2: a group of KIP-848 that nobody is in stays one until somebody joins by the other protocol: who only says to be in
// it changes nothing.
func TestOnlyWhoJoinsChangesTheKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		c, _ := y.start()
		h := consumer.Heartbeat{Member: "a", Names: []string{"orders"}}
		testkit.Must(t, testkit.Err(c.ConsumerHeartbeat(t.Context(), "g", h, anything)))
		h = consumer.Heartbeat{Member: "a", Epoch: consumer.EpochLeave}
		testkit.Must(t, testkit.Err(c.ConsumerHeartbeat(t.Context(), "g", h, anything)))
		testkit.ErrorIs(t, beat(t.Context(), c, "g", classic.Joined{Member: "x"}), member.ErrUnknown)
		testkit.ErrorIs(t, testkit.Err(c.Sync(t.Context(), "g", classic.Sync{Member: "x"}, anything)), member.ErrUnknown)
		testkit.ErrorIs(t, testkit.Err(c.Leave(t.Context(), "g", []classic.Leaver{{Member: "x"}}, anything)), member.ErrUnknown)
		testkit.Equal(t, testkit.Value(c.Describe(t.Context(), "g"))(t).Kind, KindConsumer)
		alone(t, c, "g", "orders")
		testkit.Equal(t, testkit.Value(c.Describe(t.Context(), "g"))(t).Kind, KindClassic)
	})
}
