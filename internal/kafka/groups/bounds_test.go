package groups

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K6: groups in which somebody was only given an id make room for others, however long his session would be. He joins
// anew then.
func TestGroupsThatNobodyHasJoinedMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		c, _ := y.start(func(c *Config) { c.MaxGroups = 3 })
		first := wants("", "orders")
		first.TwoSteps, first.Session = true, member.MaxSession
		for i := range 3 {
			testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), fmt.Sprint("g", i), first, anything)), member.ErrIDRequired)
		}
		testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), "other", first, anything)), ErrBusy)
		time.Sleep(2 * time.Minute)
		alone(t, c, "other", "orders")
		testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), "g0", wants(first.NewID, "orders"), anything)), member.ErrUnknown)
		c.mu.Lock()
		defer c.mu.Unlock()
		bytes := 0
		for _, g := range c.all {
			bytes += g.bytes
		}
		testkit.Equal(t, c.bytes, bytes, "bytes of all groups")
	})
}

// K2: a group is stored as empty while somebody was only given an id: else it would never expire.
func TestAnIDIsNoMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		c, _ := y.start()
		first := wants("", "orders")
		first.TwoSteps = true
		testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), "g", first, anything)), member.ErrIDRequired)
		store(t, c, "g", nobody, y.partition("orders", 0), 5)
		stored := testkit.Value(decodeEntry(testkit.Value(y.Meta.Get(t.Context(), groupKey("g")))(t)))(t)
		testkit.That(t, !stored.Empty.IsZero(), "the store has it with members")
	})
}

// K2: a group that is being loaded when the coordinator stops is not used any more.
func TestAGroupThatIsLoadedTooLateIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		at := y.partition("orders", 0)
		c, stop := y.start()
		synctest.Wait()
		release := make(chan struct{})
		y.Meta.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpGet && op.Under(groupsPrefix) {
				<-release
			}
			return nil
		})
		var err error
		var all sync.WaitGroup
		all.Go(func() { _, err = c.Commit(t.Context(), "g", nobody, map[Partition]Position{at: {Offset: 1}}) })
		synctest.Wait()
		all.Go(stop)
		synctest.Wait()
		close(release)
		all.Wait()
		testkit.ErrorIs(t, err, ErrStopping)
		testkit.Equal(t, len(testkit.Value(y.Meta.List(t.Context(), "kafka/"))(t)), 0, "entries")
	})
}

// K2 C4: a node that has not heard yet of a group looks for it before it says that there is none: else its offsets would
// be those of a new one.
func TestAGroupThatAnotherNodeHasJustMadeIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		at := y.partition("orders", 0)
		shared := metatest.NewMemory()
		node := func(name string) *Coordinator {
			c, _ := y.start(func(c *Config) { c.Node, c.Several, c.Meta = name, true, metatest.NewLateNode(shared) })
			return c
		}
		here, there := node("here"), node("there")
		store(t, here, "g", nobody, at, 5)
		testkit.Equal(t, committed(t, there, "g", at), int64(5), "what the other node has acknowledged")
	})
}
