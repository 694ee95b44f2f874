package groups

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// put stages an offset of a group in a transaction.
func put(t testing.TB, c *Coordinator, group, account, transaction string, at Partition) error {
	t.Helper()
	stage := testkit.Value(c.Stages.Of(group, transaction))(t)
	testkit.Must(t, stage.Open(t.Context()))
	return stage.Put(For(t.Context(), account), nobody, map[Partition]Position{at: {Offset: 7, Epoch: -1}})
}

func settle(t testing.TB, c *Coordinator, group, transaction string) {
	t.Helper()
	testkit.Must(t, testkit.Value(c.Stages.Of(group, transaction))(t).Settle(t.Context(), true))
}

// K3, K6: offsets in a transaction are refused while they can be, not when it is committed; and a group that comes into
// being so is its account's.
func TestWhatCouldNotBeWrittenIsNotStaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		at := y.partition("orders", 0)
		c, _ := y.start(func(c *Config) { c.MaxGroups = 4 })
		for i := range 2 {
			id := fmt.Sprint("g", i)
			testkit.Must(t, put(t, c, id, "greedy", "t-1", at))
			settle(t, c, id, "t-1")
			testkit.Equal(t, committed(t, c, id, at), 7)
		}
		time.Sleep(2 * time.Minute)
		testkit.ErrorIs(t, put(t, c, "g2", "greedy", "t-1", at), ErrTooManyGroups, "beyond the account's share")
		testkit.Must(t, put(t, c, "g2", "modest", "t-2", at), "of another account")
		settle(t, c, "g2", "t-2")
		testkit.Equal(t, committed(t, c, "g2", at), 7)
		testkit.Must(t, put(t, c, "g0", "greedy", "t-3", at), "of a group that there is")
	})
}

// K3: what cannot be written of one group keeps nothing of others waiting.
func TestOneGroupDoesNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		at := y.partition("orders", 0)
		var mine atomic.Bool
		mine.Store(true)
		c, _ := y.start(func(c *Config) { c.Mine = func(string) bool { return mine.Load() } })
		for _, id := range []string{"a", "b", "c"} {
			testkit.Must(t, put(t, c, id, "", "t-1", at))
		}
		mine.Store(false) // so that nobody writes what is settled
		for _, id := range []string{"a", "b", "c"} {
			settle(t, c, id, "t-1")
		}
		mine.Store(true)
		broken := errors.New("no room")
		y.Meta.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpSet && op.Key == offsetKeys("b", at.Log)+"0" {
				return broken
			}
			return nil
		})
		testkit.ErrorIs(t, c.Stages.FoldAll(t.Context(), time.Hour), broken)
		testkit.Equal(t, committed(t, c, "a", at), 7)
		testkit.Equal(t, committed(t, c, "b", at), -1)
		testkit.Equal(t, committed(t, c, "c", at), 7)
		y.Meta.Inject(nil)
		testkit.Must(t, c.Stages.FoldAll(t.Context(), time.Hour))
		testkit.Equal(t, committed(t, c, "b", at), 7)
	})
}

// K3: what an operator says of a group's offsets comes behind what was committed before, also where that was not written yet,
// and at another node than the group's.
func TestOperatorsComeBehindWhatWasCommitted(t *testing.T) {
	for _, here := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			y := newYard(t)
			y.Hub(t, "orders", 1)
			at := y.partition("orders", 0)
			var mine atomic.Bool
			c, _ := y.start(func(c *Config) { c.Mine = func(string) bool { return mine.Load() } })
			o := Operator{Coordinator: c}
			stage := func(transaction string) {
				mine.Store(true)
				testkit.Must(t, put(t, c, "g", "", transaction, at))
				mine.Store(false) // so that nobody writes what is settled
				settle(t, c, "g", transaction)
				mine.Store(here)
			}
			later := func() int64 {
				mine.Store(true)
				testkit.Must(t, testkit.Err(c.Stages.Unstable(t.Context(), "g")))
				return committed(t, c, "g", at)
			}
			stage("t-1")
			testkit.Must(t, o.SetOffsets(t.Context(), "g", "orders", map[int32]int64{0: 3}))
			testkit.Equal(t, later(), 3, "here: %t", here)
			stage("t-2")
			testkit.Must(t, o.Forget(t.Context(), "g", "orders"))
			testkit.Equal(t, later(), -1, "here: %t", here)
			stage("t-3")
			testkit.Must(t, o.Delete(t.Context(), "g", func([]string) error { return nil }))
			testkit.Equal(t, later(), -1, "here: %t", here)
		})
	}
}

// K3: what Kafka's own tools delete of a group stays deleted, also where what was committed before was not written yet.
func TestDeletionsComeBehindWhatWasCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		at := y.partition("orders", 0)
		var mine atomic.Bool
		mine.Store(true)
		c, _ := y.start(func(c *Config) { c.Mine = func(string) bool { return mine.Load() } })
		stage := func(transaction string) {
			testkit.Must(t, put(t, c, "g", "", transaction, at))
			mine.Store(false) // so that nobody writes what is settled
			settle(t, c, "g", transaction)
			mine.Store(true)
		}
		later := func() int64 {
			testkit.Must(t, testkit.Err(c.Stages.Unstable(t.Context(), "g")))
			return committed(t, c, "g", at)
		}
		stage("t-1")
		testkit.Must(t, testkit.Err(c.DeleteOffsets(t.Context(), "g", []Partition{at})))
		testkit.Equal(t, later(), -1)
		stage("t-2")
		testkit.Must(t, c.Delete(t.Context(), "g", func([]string) error { return nil }))
		testkit.Equal(t, later(), -1)
	})
}

// K3: what a group has committed in transactions is written in the order in which these were committed, whatever the clocks
// of those say who have settled them: else an offset would go back.
func TestClocksDoNotOrderOffsets(t *testing.T) {
	y := newYard(t)
	y.Hub(t, "orders", 1)
	at := y.partition("orders", 0)
	var mine atomic.Bool
	c, _ := y.start(func(c *Config) { c.Mine = func(string) bool { return mine.Load() } })
	for n, offset := range []int64{10, 20} {
		mine.Store(true)
		stage := testkit.Value(c.Stages.Of("g", fmt.Sprint("app-", n+1)))(t)
		testkit.Must(t, stage.Open(t.Context()))
		testkit.Must(t, stage.Put(t.Context(), nobody, map[Partition]Position{at: {Offset: offset, Epoch: -1}}))
		mine.Store(false) // so that nobody writes what is settled
		testkit.Must(t, stage.Settle(t.Context(), true))
		if n == 0 { // by a node whose clock is ahead
			entry := testkit.Value(y.Meta.Get(t.Context(), stage.key))(t)
			one := testkit.Value(decodeStaged(entry))(t)
			one.Settled = one.Settled.Add(time.Hour)
			testkit.Must(t, testkit.Err(y.Meta.CompareAndSet(t.Context(), stage.key, entry.Revision, encode(one))))
		}
	}
	mine.Store(true)
	testkit.Must(t, c.Stages.FoldAll(t.Context(), time.Hour))
	testkit.Equal(t, committed(t, c, "g", at), 20)
}

// K3, C2: what the coordinator before has written of transactions until it was replaced is not written again: it may have
// written something later, behind which an offset would go back.
func TestWhatTheCoordinatorBeforeHasWritten(t *testing.T) {
	y := newYard(t)
	y.Hub(t, "orders", 1)
	at := y.partition("orders", 0)
	var mine atomic.Bool
	old, _ := y.start(func(c *Config) { c.Several, c.Mine = true, func(string) bool { return mine.Load() } })
	stage := func(transaction string, offset int64) {
		one, err := old.Stages.Of("g", transaction)
		testkit.Check(t, err)
		testkit.Check(t, one.Open(t.Context()))
		testkit.Check(t, one.Put(t.Context(), nobody, map[Partition]Position{at: {Offset: offset, Epoch: -1}}))
		mine.Store(false) // so that nobody writes what is settled
		testkit.Check(t, one.Settle(t.Context(), true))
		mine.Store(true)
	}
	mine.Store(true)
	stage("t-1", 10)
	fresh, _ := y.start(func(c *Config) { c.Node, c.Several = "there", true })
	var once sync.Once
	y.Meta.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpGet && op.Under(groupsPrefix) { // the new one has listed what there is to write, and loads the group
			once.Do(func() {
				y.Meta.Inject(nil)
				testkit.Check(t, old.Stages.FoldAll(t.Context(), time.Hour))
				stage("t-2", 20)
				testkit.Check(t, old.Stages.FoldAll(t.Context(), time.Hour))
			})
		}
		return nil
	})
	testkit.Must(t, fresh.Stages.FoldAll(t.Context(), time.Hour))
	once.Do(func() { t.Error("the new coordinator did not load the group") })
	testkit.Equal(t, committed(t, fresh, "g", at), 20)
}

// K3, K6: offsets of as many partitions as a transaction may write to fit, and what is too much is refused by an error of its
// own; what was staged before stays.
func TestOffsetsOfATransactionAreBounded(t *testing.T) {
	y := newYard(t)
	log := strings.Repeat("l", 64)
	c, _ := y.start()
	stage := testkit.Value(c.Stages.Of("g", "app-1"))(t)
	testkit.Must(t, stage.Open(t.Context()))
	many := make(map[Partition]Position)
	for n := range int32(2048) {
		many[Partition{log, n}] = Position{Offset: math.MaxInt64, Epoch: math.MaxInt32}
	}
	testkit.Must(t, stage.Put(t.Context(), nobody, many))
	for p, position := range many {
		position.Metadata = make([]byte, MaxMetadataBytes)
		many[p] = position
	}
	some := maps.Clone(many)
	maps.DeleteFunc(some, func(p Partition, _ Position) bool { return p.Number >= 250 })
	full := testkit.Value(c.Stages.Of("g", "app-2"))(t)
	testkit.Must(t, full.Open(t.Context()))
	testkit.Must(t, full.Put(t.Context(), nobody, some))
	testkit.ErrorIs(t, stage.Put(t.Context(), nobody, many), ErrTooManyOffsets)
	entry := testkit.Value(y.Meta.Get(t.Context(), stage.key))(t)
	one := testkit.Value(decodeStaged(entry))(t)
	testkit.Equal(t, len(one.Positions), 2048)
	testkit.Equal(t, len(one.Positions[0].Metadata), 0)
}
