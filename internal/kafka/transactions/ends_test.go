package transactions

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// end is the number that the next event of a partition will get.
func (l *life) end(partition string) eventlog.Sequence {
	l.y.t.Helper()
	_, next, err := l.broker.Span(l.y.t.Context(), "orders", partition)
	testkit.Must(l.y.t, err)
	return next
}

// K3: what cannot be the id of a group is refused before it is part of a transaction, and one that is all the same does not
// keep it from ending.
func TestAGroupThatCannotBe(t *testing.T) {
	l := newYard(t).begin()
	by := l.init("app")
	testkit.Must(t, l.add("app", by))
	for _, group := range []string{"", strings.Repeat("g", 300), "no \xff text"} {
		testkit.ErrorIs(t, l.AddGroup(t.Context(), "app", by, group, nil), groups.ErrInvalidID)
	}
	one := testkit.Value(l.Describe(t.Context(), "app", nil))(t)
	testkit.Equal(t, len(one.Groups), 0, "groups that are part of it")
	testkit.Must(t, testkit.Err(l.change(t.Context(), "app", func(now txn.Transaction) (txn.Transaction, error) {
		return now.Add(by, nil, strings.Repeat("g", 300), time.Now())
	})))
	testkit.Must(t, l.put("app", by, 0, "a"))
	testkit.Must(t, l.End(t.Context(), "app", by, true, nil))
	testkit.Equal(t, testkit.Value(l.Describe(t.Context(), "app", nil))(t).State, txn.CompleteCommit)
	testkit.Slices(t, l.read(), []string{"a", "", ""})
	l.stop()
}

// K3: while a partition cannot be told, those that were told are told no more, and it is tried less often the longer it
// takes.
func TestWhoKnowsHearsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		l := y.begin()
		by := l.init("app")
		testkit.Must(t, l.add("app", by))
		for p := range partitions {
			testkit.Must(t, l.put("app", by, p, "a"))
		}
		tries := 0
		y.Engine.Inject(func(op logtest.Op) error {
			if op.Kind != logtest.OpSubmit || op.ID.Number != 1 {
				return nil
			}
			tries++
			return eventlog.ErrUnavailable
		})
		testkit.Must(t, l.End(t.Context(), "app", by, true, nil))
		for range 20 { // as a client that is told to try again
			testkit.ErrorIs(t, testkit.Err(l.Init(t.Context(), "app", txn.None, time.Minute, nil)), txn.ErrConcurrent)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		testkit.Equal(t, l.end("0"), 2, "numbers of a partition that was told")
		testkit.That(t, tries > 5 && tries < 25, "it was tried %d times in five minutes", tries)
		y.Engine.Inject(nil)
		time.Sleep(longestWait + 2*lookInterval)
		synctest.Wait()
		testkit.Equal(t, testkit.Value(l.Describe(t.Context(), "app", nil))(t).State, txn.CompleteCommit)
		testkit.Slices(t, l.read(), []string{"a", "a", "a"})
		testkit.Equal(t, len(l.telling), 0, "what is remembered")
		l.stop()
	})
}

// K5, R1: rights to a hub are asked for once, however many of its partitions are part of a transaction.
func TestRightsAreAskedForOnce(t *testing.T) {
	l := newYard(t).begin()
	by := l.init("app")
	testkit.Must(t, l.add("app", by))
	asked := 0
	testkit.Must(t, testkit.Err(l.Describe(t.Context(), "app", func(string) bool { asked++; return true })))
	testkit.Equal(t, asked, 1)
	l.stop()
}

// K3, R1: a partition that does not answer keeps no other transaction from being ended, nor a group from its offsets.
func TestAStuckPartitionHoldsUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		l := y.begin()
		begin := func(id string, partition int) txn.Claim {
			by := l.init(id)
			testkit.Must(t, l.AddPartitions(t.Context(), id, by, []txn.Partition{{Log: y.log, Number: int32(partition)}}, nil))
			testkit.Must(t, l.put(id, by, partition, id))
			return by
		}
		by := begin("stuck", 1)
		testkit.Must(t, l.AddGroup(t.Context(), "stuck", by, "readers", nil))
		testkit.Must(t, l.StageOffsets(t.Context(), "stuck", by, "readers", groups.Committer{Generation: -1}, map[groups.Partition]groups.Position{{Log: y.log, Number: 0}: {Offset: 1}}))
		time.Sleep(10 * time.Second)
		begin("slow", 0)
		stuck := make(chan struct{})
		y.Engine.Inject(func(op logtest.Op) error {
			if op.Kind == logtest.OpSubmit && op.ID.Number == 1 {
				<-stuck
			}
			return nil
		})
		time.Sleep(time.Minute + 5*time.Second) // both took too long
		synctest.Wait()
		testkit.Equal(t, testkit.Value(l.Describe(t.Context(), "stuck", nil))(t).State, txn.PrepareAbort)
		testkit.Equal(t, len(testkit.Value(l.cfg.Groups.Stages.Unstable(t.Context(), "readers"))(t)), 0, "offsets that wait for it")
		testkit.Equal(t, testkit.Value(l.Describe(t.Context(), "slow", nil))(t).State, txn.CompleteAbort)
		y.Engine.Inject(nil)
		close(stuck)
		time.Sleep(2 * longestWait)
		synctest.Wait()
		testkit.Equal(t, testkit.Value(l.Describe(t.Context(), "stuck", nil))(t).State, txn.CompleteAbort)
		l.stop()
	})
}

// K3, R1: readers that wait in vain are released, also where another partition cannot be looked at.
func TestOnePartitionDoesNotKeepOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		l := y.begin()
		lost := l.init("lost")
		testkit.Must(t, l.add("lost", lost))
		for p := range partitions {
			testkit.Must(t, l.put("lost", lost, p, "gone"))
		}
		entry := testkit.Value(y.Meta.Get(t.Context(), keyOf("lost")))(t)
		testkit.Must(t, y.Meta.Delete(t.Context(), entry.Key, entry.Revision))
		l.read()
		y.Engine.Inject(func(op logtest.Op) error {
			if op.Kind == logtest.OpNext && op.ID.Number == 1 {
				return eventlog.ErrUnavailable
			}
			return nil
		})
		time.Sleep(3 * holdupAge)
		synctest.Wait()
		y.Engine.Inject(nil)
		testkit.Equal(t, l.end("0"), 2)
		testkit.Equal(t, l.end("1"), 1, "of which nobody knows whether it was ended")
		testkit.Equal(t, l.end("2"), 2)
		l.stop()
	})
}

// K3, R1: who names too many partitions has none of them looked at, and one named again is looked at once.
func TestPartitionsAreCountedFirst(t *testing.T) {
	y := newYard(t)
	l := y.begin()
	by := l.init("app")
	looks := 0
	y.Engine.Inject(func(op logtest.Op) error {
		if op.Kind == logtest.OpBounds {
			looks++
		}
		return nil
	})
	all := make([]txn.Partition, txn.MaxPartitions+1)
	for i := range all {
		all[i] = txn.Partition{Log: y.log, Number: int32(i)}
	}
	testkit.ErrorIs(t, l.AddPartitions(t.Context(), "app", by, all, nil), txn.ErrTooLarge)
	testkit.Equal(t, looks, 0, "looks at partitions")
	for i := range all {
		all[i].Number = 1
	}
	testkit.Must(t, l.AddPartitions(t.Context(), "app", by, all, nil))
	testkit.Equal(t, looks, 1, "looks at partitions")
	testkit.Equal(t, len(testkit.Value(l.Describe(t.Context(), "app", nil))(t).Partitions), 1)
	y.Engine.Inject(nil)
	l.stop()
}
