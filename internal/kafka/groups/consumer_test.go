package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/kafka/groups/consumer"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// consumers is a coordinator, and members of one group of KIP-848.
type consumers struct {
	t    *testing.T
	yard *hubstest.Yard
	c    *Coordinator
	stop func()
	// may says which hubs members may listen to.
	may func(hub string) bool
	// owned and epochs are what the members know.
	owned  map[string]consumer.Set
	epochs map[string]int32
}

// withConsumers runs a test in a bubble, with hubs of two partitions each.
func withConsumers(t *testing.T, test func(t *testing.T, w *consumers), hubs ...string) {
	synctest.Test(t, func(t *testing.T) {
		w := &consumers{t: t, yard: hubstest.Open(t, storagetest.Config{}), owned: map[string]consumer.Set{}, epochs: map[string]int32{}}
		w.may = func(string) bool { return true }
		for _, name := range hubs {
			w.yard.Hub(t, name, 2)
		}
		w.start()
		test(t, w)
	})
}

func (w *consumers) start() {
	w.c = testkit.Value(New(Config{Meta: w.yard.Meta, Broker: w.yard.Broker, Node: "here", Log: testkit.Quiet()}))(w.t)
	w.stop = testkit.Run(w.t, w.c.Run)
}

// send sends a member's heartbeat, with what it owns.
func (w *consumers) send(h consumer.Heartbeat) error {
	h.Owned, h.Reported = w.owned[h.Member], true
	answer, err := w.c.ConsumerHeartbeat(w.t.Context(), "group", h, w.may)
	if err == nil {
		w.epochs[h.Member] = answer.Epoch
		if answer.Assigns {
			w.owned[h.Member] = answer.Assignment
		}
	}
	return err
}

func (w *consumers) join(id string, names ...string) error {
	delete(w.owned, id)
	return w.send(consumer.Heartbeat{Member: id, RebalanceTimeout: time.Minute, Names: append([]string{}, names...)})
}

func (w *consumers) match(id, expression string) error {
	return w.send(consumer.Heartbeat{Member: id, RebalanceTimeout: time.Minute, Expression: &expression})
}

func (w *consumers) beat(id string) error {
	return w.send(consumer.Heartbeat{Member: id, Epoch: w.epochs[id], RebalanceTimeout: -1})
}

func (w *consumers) leave(id string) error {
	return w.send(consumer.Heartbeat{Member: id, Epoch: consumer.EpochLeave, RebalanceTimeout: -1})
}

// beats has members heartbeat in turn, for some rounds.
func (w *consumers) beats(rounds int, ids ...string) {
	w.t.Helper()
	for range rounds {
		for _, id := range ids {
			testkit.Must(w.t, w.beat(id), id)
		}
		time.Sleep(ConsumerInterval)
	}
}

// has checks what a member owns, as "hub/partition hub/partition".
func (w *consumers) has(id, want string) {
	w.t.Helper()
	var all []string
	for _, p := range w.owned[id] {
		hub, err := w.yard.Broker.ByID(w.t.Context(), p.Topic)
		if err != nil {
			hub.Name = "gone"
		}
		all = append(all, fmt.Sprintf("%s/%d", hub.Name, p.Number))
	}
	slices.Sort(all)
	testkit.Equal(w.t, strings.Join(all, " "), want, id)
}

func TestConsumersGoOnAfterARestart(t *testing.T) { // K2
	withConsumers(t, func(t *testing.T, w *consumers) {
		testkit.Must(t, w.join("a", "orders"))
		testkit.Must(t, w.join("b", "orders"))
		w.beats(4, "a", "b")
		w.has("a", "orders/0")
		w.has("b", "orders/1")
		before := w.epochs["a"]
		w.stop()
		testkit.ErrorIs(t, w.beat("a"), ErrStopping)
		w.start()
		w.beats(4, "a", "b")
		testkit.Equal(t, w.epochs["a"], before, "nobody has rebalanced")
		w.has("a", "orders/0")
	}, "orders")
}

func TestASilentConsumerIsRemoved(t *testing.T) { // K2
	withConsumers(t, func(t *testing.T, w *consumers) {
		testkit.Must(t, w.join("a", "orders"))
		testkit.Must(t, w.join("b", "orders"))
		w.beats(4, "a", "b")
		w.beats(8, "b") // 40 s
		w.has("b", "orders/1")
		w.beats(4, "b")
		w.has("b", "orders/0 orders/1")
		testkit.ErrorIs(t, w.beat("a"), member.ErrUnknown)
	}, "orders")
}

func TestASilentConsumerIsRemovedAfterARestartToo(t *testing.T) { // K2
	withConsumers(t, func(t *testing.T, w *consumers) {
		testkit.Must(t, w.join("a", "orders"))
		w.stop()
		w.start() // and nobody comes
		time.Sleep(consumerSession + time.Second)
		testkit.Equal(t, testkit.Value(w.c.Describe(t.Context(), "group"))(t).State, "Empty")
	}, "orders")
}

func TestAConsumerThatKeepsAPartitionIsRemoved(t *testing.T) { // K2
	withConsumers(t, func(t *testing.T, w *consumers) {
		testkit.Must(t, w.join("a", "orders"))
		testkit.Must(t, w.join("b", "orders"))
		all := w.owned["a"]
		for range 15 { // 75 s: longer than it said it would need
			err := w.beat("a")
			w.owned["a"] = all // whatever it was told
			testkit.Must(t, w.beat("b"))
			if errors.Is(err, member.ErrUnknown) {
				testkit.Must(t, w.beat("b"))
				w.has("b", "orders/0 orders/1")
				return
			}
			testkit.Must(t, err)
			w.has("b", "")
			time.Sleep(ConsumerInterval)
		}
		t.Error("it is still a member")
	}, "orders")
}

func TestAConsumersAnswerFollowsTheStore(t *testing.T) { // K2
	withConsumers(t, func(t *testing.T, w *consumers) {
		failing := errors.New("no more paper")
		w.yard.Meta.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpSet && strings.HasPrefix(op.Key, groupsPrefix) {
				return failing
			}
			return nil
		})
		testkit.ErrorIs(t, w.join("a", "orders"), failing)
		testkit.ErrorIs(t, w.join("a", "orders"), failing, "it is not answered without it")
		w.has("a", "")
		w.yard.Meta.Inject(nil)
		testkit.Must(t, w.join("a", "orders"))
		w.has("a", "orders/0 orders/1")
		sets := w.yard.Meta.Count(metatest.OpSet)
		w.beats(3, "a")
		testkit.Equal(t, w.yard.Meta.Count(metatest.OpSet), sets, "heartbeats without news cost no write")
	}, "orders")
}

func TestConsumersOfAnotherCoordinatorAreSentThere(t *testing.T) { // K2
	withConsumers(t, func(t *testing.T, w *consumers) {
		testkit.Must(t, w.join("a", "orders"))
		first := w.c
		w.start() // a second node, which believes the group to be its own
		testkit.Must(t, w.beat("a"))
		w.c = first
		testkit.ErrorIs(t, w.join("b", "orders"), ErrNotCoordinator)
	}, "orders")
}

func TestConsumersNeedARightToAllHubsOfTheGroup(t *testing.T) { // K5 R1
	withConsumers(t, func(t *testing.T, w *consumers) {
		testkit.Must(t, w.join("a", "orders"))
		w.may = func(hub string) bool { return hub == "bills" }
		testkit.ErrorIs(t, w.join("b", "orders"), ErrRights, "its own")
		testkit.ErrorIs(t, w.join("b", "bills"), ErrRights, "those of the others")
		testkit.ErrorIs(t, w.beat("a"), ErrRights, "rights that have ended")
		testkit.Equal(t, len(testkit.Value(w.c.Describe(t.Context(), "group"))(t).Members), 1)
	}, "orders", "bills")
}

func TestAnExpressionMatchesWhatMayBeRead(t *testing.T) { // K2 R1
	withConsumers(t, func(t *testing.T, w *consumers) {
		closed := map[string]bool{"log-secret": true}
		w.may = func(hub string) bool { return !closed[hub] }
		testkit.Must(t, w.match("a", "log-.*"))
		w.has("a", "log-a/0 log-a/1")

		w.yard.Hub(t, "log-b", 1) // others' hubs come by themselves
		w.yard.Hub(t, "other", 1)
		w.beats(2, "a")
		w.has("a", "log-a/0 log-a/1 log-b/0")
		testkit.Must(t, w.yard.Broker.DeleteHub(t.Context(), "log-a"))
		w.beats(3, "a")
		w.has("a", "log-b/0")
		closed["log-b"] = true // and go with the right
		w.beats(3, "a")
		w.has("a", "")
		closed["log-b"], closed["log-secret"] = false, false
		time.Sleep(resolveInterval - 30*time.Second)
		w.beats(6, "a")
		w.has("a", "log-b/0 log-secret/0 log-secret/1")
	}, "log-a", "log-secret")
}

func TestHubsThatAreNamedMayComeLater(t *testing.T) { // K2
	withConsumers(t, func(t *testing.T, w *consumers) {
		testkit.Must(t, w.join("a", "orders", "bills"))
		w.has("a", "orders/0 orders/1")
		w.yard.Hub(t, "bills", 1)
		w.beats(2, "a")
		w.has("a", "bills/0 orders/0 orders/1")
	}, "orders")
}

func TestConsumersCommitWithTheirEpoch(t *testing.T) { // K2
	withConsumers(t, func(t *testing.T, w *consumers) {
		hub := testkit.Value(w.yard.Broker.Hub("orders"))(t)
		at := Partition{Log: broker.LogOf(w.yard.Broker, hub.ID), Number: 1}
		commit := func(by Committer) error {
			_, err := w.c.Commit(t.Context(), "group", by, map[Partition]Position{at: {Offset: 7}})
			return err
		}
		testkit.Must(t, w.join("a", "orders"))
		testkit.Check(t, commit(Committer{Member: "a", Generation: 1}))
		testkit.ErrorIs(t, commit(Committer{Member: "a", Generation: 2}), consumer.ErrStaleEpoch)
		testkit.ErrorIs(t, commit(Committer{Member: "b", Generation: 1}), member.ErrUnknown)
		testkit.ErrorIs(t, commit(Committer{Generation: -1}), member.ErrUnknown, "nobody else, while there are members")
		testkit.Check(t, w.c.CheckFetch(t.Context(), "group", "a", 1))
		testkit.Check(t, w.c.CheckFetch(t.Context(), "group", "", -1))
		testkit.Check(t, w.c.CheckFetch(t.Context(), "no such group", "a", 1))
		testkit.ErrorIs(t, w.c.CheckFetch(t.Context(), "group", "a", 9), consumer.ErrStaleEpoch)
		testkit.Must(t, w.leave("a"))
		testkit.Check(t, commit(Committer{Generation: -1}))
		stored := testkit.Value(w.c.Offsets(t.Context(), "group", at.Log))(t)
		testkit.Equal(t, stored[1].Offset, int64(7))
	}, "orders")
}

func TestAConsumerThatHasNotHeardOfItsEpochCommitsWhatItKeeps(t *testing.T) { // K2
	withConsumers(t, func(t *testing.T, w *consumers) {
		hub := testkit.Value(w.yard.Broker.Hub("orders"))(t)
		log := broker.LogOf(w.yard.Broker, hub.ID)
		commit := func(epoch int32, partitions ...int32) error {
			positions := map[Partition]Position{}
			for _, p := range partitions {
				positions[Partition{log, p}] = Position{Offset: 1}
			}
			_, err := w.c.Commit(t.Context(), "group", Committer{Member: "a", Generation: epoch}, positions)
			return err
		}
		testkit.Must(t, w.join("a", "orders"))
		testkit.Must(t, w.join("b", "orders"))
		testkit.Must(t, w.beat("a")) // is to give up partition 1
		testkit.Check(t, commit(1, 0, 1), "what it has, and has not given up")
		testkit.Must(t, w.beat("a"))
		testkit.Equal(t, w.epochs["a"], int32(2))
		testkit.Check(t, commit(1, 0), "it might not have heard")
		testkit.ErrorIs(t, commit(1, 0, 1), consumer.ErrStaleEpoch, "it has given up one of them")
		testkit.ErrorIs(t, commit(3, 0), consumer.ErrStaleEpoch)
		testkit.Check(t, commit(2, 0))
		testkit.Must(t, w.join("c", "orders"))
		w.beats(3, "a", "b", "c")
		testkit.ErrorIs(t, commit(1, 0), consumer.ErrStaleEpoch, "that was too long ago")
	}, "orders")
}

// subscription is what consumers of the classic protocol say.
func subscription(topic string) []byte {
	return append([]byte{0, 0, 0, 0, 0, 1, 0, byte(len(topic))}, topic...)
}

func TestAGroupChangesItsKindWhileNobodyIsInIt(t *testing.T) { // K2
	withConsumers(t, func(t *testing.T, w *consumers) {
		joinClassic := func() (classic.Joined, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return w.c.Join(ctx, "group", classic.Join{
				NewID: "classic-1", Session: 30 * time.Second, Rebalance: time.Minute, Type: member.ConsumerProtocol,
				Protocols: []classic.Protocol{{Name: "range", Metadata: subscription("orders")}},
			}, w.may)
		}
		kind := func() string { return testkit.Value(w.c.Describe(t.Context(), "group"))(t).Kind }
		testkit.Must(t, w.join("a", "orders"))
		testkit.Equal(t, kind(), KindConsumer)
		testkit.ErrorIs(t, testkit.Err(joinClassic()), member.ErrKind)
		testkit.Must(t, w.leave("a"))

		testkit.Must(t, testkit.Err(joinClassic()))
		testkit.Equal(t, kind(), KindClassic)
		testkit.ErrorIs(t, w.join("a", "orders"), member.ErrKind)
		testkit.ErrorIs(t, w.leave("a"), member.ErrUnknown)
		testkit.ErrorIs(t, testkit.Err(w.c.DescribeConsumer(t.Context(), "group")), ErrNotFound)
		time.Sleep(2 * time.Minute) // it is silent

		testkit.Must(t, w.join("a", "orders"))
		testkit.Equal(t, kind(), KindConsumer)
		w.stop()
		w.start()
		testkit.Equal(t, kind(), KindConsumer, "as it is stored")
		w.has("a", "orders/0 orders/1")
	}, "orders")
}

func TestWhoIsRefusedChangesNoGroup(t *testing.T) { // K2
	withConsumers(t, func(t *testing.T, w *consumers) {
		w.epochs["a"] = 1
		testkit.ErrorIs(t, w.beat("a"), member.ErrUnknown, "there is no group")
		testkit.ErrorIs(t, w.match("a", "("), consumer.ErrExpression)
		testkit.ErrorIs(t, testkit.Err(w.c.Describe(t.Context(), "group")), ErrNotFound)
		testkit.ErrorIs(t, testkit.Err(w.yard.Memory.Get(t.Context(), groupKey("group"))), meta.ErrNotFound)
	}, "orders")
}

func TestConsumersAreShown(t *testing.T) { // K2
	withConsumers(t, func(t *testing.T, w *consumers) {
		testkit.Must(t, w.join("a", "orders"))
		want := Description{
			ID: "group", Kind: KindConsumer, State: "Stable", Generation: 1, Type: "consumer", Protocol: consumer.Uniform,
			Topics: []string{"orders"}, Node: "here",
		}
		for _, how := range []string{"loaded", "as stored"} {
			list := testkit.Value(w.c.List(t.Context()))(t)
			testkit.MustEqual(t, len(list), 1, how)
			testkit.MustEqual(t, len(list[0].Members), 1, "members")
			testkit.Equal(t, list[0].Members[0].ID, "a")
			testkit.Diff(t, map[string][]int32{"orders": {0, 1}}, Operator{w.c}.Assigned(list[0], list[0].Members[0]))
			list[0].Epoch, list[0].Members = 0, nil
			testkit.Diff(t, want, list[0])
			w.stop()
			w.c = testkit.Value(New(Config{Meta: w.yard.Meta, Broker: w.yard.Broker, Node: "here", Log: testkit.Quiet()}))(t)
		}
	}, "orders")
}
