package groups

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

func anybody([]string) error { return nil }

// before has f called once, before the first operation of a kind whose key begins with prefix. f may use the store.
func (y *yard) before(kind metatest.OpKind, prefix string, f func()) {
	var called atomic.Bool
	y.Meta.Inject(func(op metatest.Op) error {
		if op.Kind == kind && op.Under(prefix) && called.CompareAndSwap(false, true) {
			f()
		}
		return nil
	})
}

// K2: a commit that is acknowledged while its group is being deleted stays: either the deletion is refused, or the
// commit makes the group anew.
func TestACommitSurvivesTheDeletionOfItsGroup(t *testing.T) {
	for name, at := range map[string]struct {
		kind   metatest.OpKind
		prefix string
	}{
		"before the group is claimed":    {metatest.OpSet, groupsPrefix},
		"before its offsets are removed": {metatest.OpDelete, "kafka/offsets/"},
		"before its entry is removed":    {metatest.OpDelete, groupsPrefix},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t)
				y.Hub(t, "orders", 1)
				c, stop := y.start()
				p := y.partition("orders", 0)
				store(t, c, "g", nobody, p, 3)
				y.before(at.kind, at.prefix, func() { store(t, c, "g", nobody, p, 9) })
				testkit.ErrorIs(t, c.Delete(t.Context(), "g", anybody), ErrNotCoordinator)
				testkit.Equal(t, committed(t, c, "g", p), int64(9), "what was acknowledged")
				stop()
				c, _ = y.start()
				testkit.Equal(t, committed(t, c, "g", p), int64(9), "what was acknowledged, after a restart")
				testkit.Must(t, c.Delete(t.Context(), "g", anybody))
			})
		})
	}
}

// K2: a coordinator that was replaced, and still sees the group without members, deletes nothing of it.
func TestAStaleCoordinatorDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		p := y.partition("orders", 0)
		old, _ := y.start()
		store(t, old, "g", nobody, p, 3)
		fresh, _ := y.start(func(c *Config) { c.Node = "there" })
		store(t, fresh, "g", nobody, p, 9)
		testkit.ErrorIs(t, old.Delete(t.Context(), "g", anybody), ErrNotCoordinator)
		testkit.Equal(t, committed(t, fresh, "g", p), int64(9), "what was acknowledged")
		store(t, fresh, "g", nobody, p, 10)
	})
}

// K2: who deletes a group that is being deleted hears that it is not there to be deleted, and deletes nothing that was
// made since.
func TestAGroupIsDeletedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		p := y.partition("orders", 0)
		c, _ := y.start()
		store(t, c, "g", nobody, p, 3)
		g := testkit.Value(c.find(t.Context(), "g", false))(t)
		testkit.Must(t, c.Delete(t.Context(), "g", anybody))
		store(t, c, "g", nobody, p, 9)
		again := testkit.Value(c.find(t.Context(), "g", false))(t)
		testkit.That(t, g != again, "the group is the same")
		testkit.ErrorIs(t, c.delete(t.Context(), g, nil), ErrNotCoordinator)

		testkit.Equal(t, committed(t, c, "g", p), int64(9), "what was acknowledged")
	})
}

// K2: a commit that is acknowledged while the group is about to expire keeps it.
func TestACommitKeepsAGroupThatIsAboutToExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		p := y.partition("orders", 0)
		c, _ := y.start()
		store(t, c, "g", nobody, p, 3)
		var committing atomic.Bool
		y.Meta.Inject(func(op metatest.Op) error {
			if op.Kind != metatest.OpGet || !op.Under("kafka/offsets/") || !committing.CompareAndSwap(false, true) {
				return nil
			}
			return metatest.After(func(err error) error { // it has been found expired
				store(t, c, "g", nobody, p, 9)
				return err
			})
		})
		for range (DefaultRetention + 2*sweepInterval) / (restTime / 2) { // it is asked for, and so stays loaded
			time.Sleep(restTime / 2)
			committed(t, c, "g", p)
		}
		testkit.That(t, committing.Load(), "nobody has looked for expired groups")
		testkit.Equal(t, committed(t, c, "g", p), int64(9), "what was acknowledged")
	})
}

// K2: a coordinator that was replaced does not bring back offsets of a group that was deleted meanwhile.
func TestAStaleCoordinatorBringsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		p := y.partition("orders", 0)
		old, _ := y.start()
		store(t, old, "g", nobody, p, 3)
		fresh, _ := y.start(func(c *Config) { c.Node = "there" })
		testkit.Must(t, fresh.Delete(t.Context(), "g", anybody))
		testkit.ErrorIs(t, testkit.Err(old.Commit(t.Context(), "g", nobody, map[Partition]Position{p: {Offset: 5}})), ErrNotCoordinator)
		testkit.Equal(t, len(testkit.Value(y.Meta.List(t.Context(), "kafka/"))(t)), 0, "entries that are left")
	})
}
