package deadletter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// tenure is a node's time with a subscription's shard.
type tenure struct {
	*Service
	end   context.CancelFunc
	ended chan error
}

// hold lets a node of its own hold the shard of a subscription.
func (y *yard) hold(sub *topics.Subscription, epoch shards.Epoch) *tenure {
	y.t.Helper()
	s, err := Open(y.t.Context(), Config{
		Engine: y.faults, Meta: y.meta, Topics: y.topics, Broker: y.hubs, DataDir: y.data, Delay: -1, Sharded: true, Log: testkit.Quiet(),
	})
	testkit.Must(y.t, err)
	s.RedriveTo(func(context.Context, []pending.Delivery) error { return nil })
	ctx, end := context.WithCancel(context.Background())
	n := &tenure{s, end, make(chan error, 1)}
	testkit.ErrorIs(y.t, testkit.Err(s.Counts(ctx, sub.ID)), shards.ErrElsewhere, "before the shard is held")
	go func() { n.ended <- s.Serve(ctx, shards.Held{Shard: shards.Of(sub.ID), Epoch: epoch}) }()
	synctest.Wait()
	return n
}

func (n *tenure) leave(t *testing.T) {
	t.Helper()
	n.end()
	testkit.Check(t, <-n.ended)
}

// C2, G8: dead letters, and what became of them, go with their shard. Other nodes do not answer for
// them, nor for those of another shard.
func TestLettersMoveWithTheirShard(t *testing.T) {
	withTarget(t, "yard", func(t *testing.T, y *yard, sub *topics.Subscription) {
		ctx := t.Context()
		one := y.hold(sub, 1)
		testkit.Must(t, one.Put(ctx, sub, []pending.Delivery{letter(sub, 1), letter(sub, 2), letter(sub, 3)}))
		pass(time.Second)
		testkit.Equal(t, testkit.Value(one.Purge(ctx, sub.ID, Query{Numbers: []int64{0}}))(t), 1)
		testkit.Equal(t, testkit.Value(one.Redrive(ctx, sub.ID, Query{Numbers: []int64{1}}, RedriveOptions{}))(t).Count, 1)
		one.leave(t)
		testkit.ErrorIs(t, testkit.Err(one.List(ctx, sub.ID, Query{})), shards.ErrElsewhere, "the node before lists")
		testkit.ErrorIs(t, testkit.Err(one.Redrive(ctx, sub.ID, Query{}, RedriveOptions{})), shards.ErrElsewhere, "the node before redrives")
		testkit.ErrorIs(t, testkit.Err(one.Purge(ctx, sub.ID, Query{})), shards.ErrElsewhere, "the node before purges")
		testkit.ErrorIs(t, one.Put(ctx, sub, []pending.Delivery{letter(sub, 4)}), shards.ErrElsewhere, "the node before keeps")

		two := y.hold(sub, 2)
		testkit.Equal(t, testkit.Value(two.Counts(ctx, sub.ID))(t).Kept, 2)
		page := testkit.Value(two.List(ctx, sub.ID, Query{Redriven: true}))(t)
		if len(page.Letters) != 2 || page.Letters[0].Redriven.IsZero() || !page.Letters[1].Redriven.IsZero() {
			t.Errorf("the next holder has %+v", page.Letters)
		}
		testkit.Must(t, two.Put(ctx, sub, []pending.Delivery{letter(sub, 4)}))
		testkit.Equal(t, testkit.Value(two.Counts(ctx, sub.ID))(t).Kept, 3)
		two.leave(t)
	})
}

// C2, G8: what waits to be written to its target is written by whoever holds the shard, once where
// it moves as planned.
func TestWritingGoesOnAtTheNextHolder(t *testing.T) {
	withTarget(t, "hub:dead", func(t *testing.T, y *yard, sub *topics.Subscription) {
		y.hubs.set(context.DeadlineExceeded)
		one := y.hold(sub, 1)
		testkit.Must(t, one.Put(t.Context(), sub, []pending.Delivery{letter(sub, 1), letter(sub, 2)}))
		pass(time.Minute)
		one.leave(t)
		y.hubs.set(nil)
		two := y.hold(sub, 2)
		pass(time.Minute)
		y.wantSent(2, "e2")
		two.leave(t)
		three := y.hold(sub, 3)
		pass(time.Hour)
		y.wantSent(2, "e2")
		three.leave(t)
	})
}

// C2: a node that thaws moves nothing, and stops.
func TestAHolderBeforeNotesNothing(t *testing.T) {
	withTarget(t, "hub:dead", func(t *testing.T, y *yard, sub *topics.Subscription) {
		y.hubs.set(context.DeadlineExceeded)
		one := y.hold(sub, 1)
		testkit.Must(t, one.Put(t.Context(), sub, []pending.Delivery{letter(sub, 1), letter(sub, 2)}))
		pass(time.Minute)
		two := y.hold(sub, 2)
		d := testkit.Value(one.desk(sub.ID))(t)
		testkit.ErrorIs(t, d.box(sub.ID).changeState(t.Context(), func(st *state) { st.Written = 0 }), shards.ErrLost)
		y.hubs.set(nil)
		pass(10 * time.Minute) // both write, and only one of them notes it
		testkit.ErrorIs(t, <-one.ended, shards.ErrLost, "the holder before")
		testkit.Equal(t, testkit.Value(two.Counts(t.Context(), sub.ID))(t).Unwritten, 0)
		e := testkit.Value(y.meta.Get(t.Context(), entryPrefix+sub.ID))(t)
		testkit.Equal(t, testkit.Value(stateCodec.Read(e))(t).Value.Epoch, 2)
		two.leave(t)
	})
}

// C2: letters of a subscription that the holder has not heard of are not removed; those of a deleted
// one are.
func TestLettersOfALateDefinitionStay(t *testing.T) {
	for name, c := range map[string]struct{ unheard bool }{"late": {true}, "deleted": {false}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, y *yard) {
				sub := y.subscribe("billing", "yard", schema.EventGrid)
				one := y.hold(sub, 1)
				testkit.Must(t, one.Put(t.Context(), sub, []pending.Delivery{letter(sub, 1)}))
				one.leave(t)
				y.topics.unheard = map[string]bool{sub.ID: c.unheard}
				y.topics.set(sub.ID, nil)
				two := y.hold(sub, 2)
				pass(time.Minute)
				_, err := y.faults.Partition(eventlog.PartitionID{Log: logOf(sub.ID)})
				_, known := y.meta.Get(t.Context(), entryPrefix+sub.ID)
				if kept := err == nil && known == nil; kept != c.unheard {
					t.Errorf("kept: %v (%v, %v), want %v", kept, err, known, c.unheard)
				}
				two.leave(t)
			})
		})
	}
}
