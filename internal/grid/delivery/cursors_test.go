package delivery

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

var background = context.Background()

// here is a partition whose cursors two nodes want to write.
var here = cursorRef{"source", 0}

// holder reads the cursors of a shard as its holder does; epoch 0: as one machine does.
func holder(t testkit.T, store meta.Store, epoch shards.Epoch) *cursors {
	t.Helper()
	var held *shards.Held
	if epoch > 0 {
		held = &shards.Held{Shard: 0x2c, Epoch: epoch}
	}
	c, err := readCursors(background, store, held)
	testkit.Must(t, err)
	return &c
}

// mark saves one lane's mark.
func (c *cursors) mark(mark int64) error {
	return c.save(background, here, appendCursor(beginCursors(c.epoch, 1), "lane", mark))
}

// wantStored compares what the store has.
func wantStored(t testkit.T, store meta.Store, key string, epoch shards.Epoch, mark int64) {
	t.Helper()
	e, err := store.Get(background, key)
	testkit.Must(t, err)
	found, marks, err := parseCursors(e.Value)
	testkit.Must(t, err)
	testkit.Equal(t, found, epoch, "the epoch of %s", key)
	testkit.Equal(t, fmt.Sprint(marks), fmt.Sprint(saved{"lane": mark}), "the marks of %s", key)
}

const shardKey = cursorPrefix + "2c/source/0"

// C2: once a later holder has begun, the one before writes nothing.
func TestCursorsAreNotMovedUnderAnOldEpoch(t *testing.T) {
	store := storagetest.Entries(t)
	before := holder(t, store, 3)
	testkit.Must(t, before.mark(10))
	now := holder(t, store, 5)
	wantStored(t, store, shardKey, 5, 10)
	for range 2 {
		testkit.ErrorIs(t, before.mark(20), shards.ErrLost, "the holder before saves")
	}
	wantStored(t, store, shardKey, 5, 10)
	testkit.Must(t, now.mark(11))
	before.remove(t.Context(), here)
	wantStored(t, store, shardKey, 5, 11)
	_, err := readCursors(t.Context(), store, &shards.Held{Shard: 0x2c, Epoch: 4})
	testkit.ErrorIs(t, err, shards.ErrLost, "one in between begins late")
}

// C2: what is no later holder's is no rival.
func TestWhatAHolderWritesOver(t *testing.T) {
	for name, c := range map[string]struct {
		epoch shards.Epoch
		key   string
		rival func(t *testing.T, store *metatest.Faulty, own *cursors)
	}{
		"its own write, whose answer was lost, on one machine": {0, cursorPrefix + "source/0", unheard},
		"its own write, whose answer was lost":                 {2, shardKey, unheard},
		"a first write of who held the shard before": {2, shardKey, func(t *testing.T, store *metatest.Faulty, _ *cursors) {
			late := cursors{meta: store, prefix: cursorPrefix + "2c/", epoch: 1, records: map[cursorRef]*cursorRecord{}}
			testkit.Must(t, late.mark(99))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			store := metatest.NewFaulty(storagetest.Entries(t))
			own := holder(t, store, c.epoch)
			c.rival(t, store, own)
			testkit.Must(t, own.mark(7))
			wantStored(t, store, c.key, c.epoch, 7)
		})
	}
}

func unheard(t *testing.T, store *metatest.Faulty, own *cursors) {
	t.Helper()
	store.InjectOnce(metatest.Op.Changes, func(metatest.Op) error { return metatest.Unheard(meta.ErrUncertain) })
	testkit.ErrorIs(t, own.mark(3), meta.ErrUncertain)
}

// C2: who begins has the last that the one before has written, however late that was.
func TestWhoBeginsHasTheLastMarks(t *testing.T) {
	memory := storagetest.Entries(t)
	before, store := holder(t, memory, 1), metatest.NewFaulty(memory)
	testkit.Must(t, before.mark(10))
	store.InjectOnce(metatest.Op.Changes, func(metatest.Op) error { return before.mark(15) })
	now := holder(t, store, 2)
	testkit.Equal(t, now.records[here].marks["lane"], 15)
	wantStored(t, store, shardKey, 2, 15)
	testkit.ErrorIs(t, before.mark(16), shards.ErrLost)
}

// C2: whoever writes when, under whatever epoch: stored epochs never fall, and marks are those of the
// highest epoch that has begun.
func TestOfManyHoldersTheNewestCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := metatest.NewMemory()
		newest := holder(t, store, 1)
		holders, want := []*cursors{newest}, int64(0)
		testkit.Must(t, newest.mark(want))
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.IntRange(0, 4).Draw(t, "what") == 0 {
				newest = holder(t, store, newest.epoch+shards.Epoch(rapid.IntRange(1, 3).Draw(t, "more")))
				holders = append(holders, newest)
				testkit.Equal(t, newest.records[here].marks["lane"], want, "found by the next holder")
				continue
			}
			c, mark := rapid.SampledFrom(holders).Draw(t, "holder"), rapid.Int64Range(0, 9).Draw(t, "mark")
			switch err := c.mark(mark); {
			case c == newest:
				testkit.Must(t, err)
				want = mark
			case err == nil && c.records[here] != nil && string(c.records[here].value) == string(appendCursor(beginCursors(c.epoch, 1), "lane", mark)):
				// it has written just that before, and asks nobody
			default:
				testkit.ErrorIs(t, err, shards.ErrLost)
			}
			wantStored(t, store, shardKey, newest.epoch, want)
		}
	})
}

// stale is a store of a node that has not heard of anything until it asks for what is fresh.
type stale struct {
	meta.Store
	fresh bool
}

func (s *stale) Fresh(ctx context.Context, prefix string) error {
	s.fresh = true
	return s.Store.Fresh(ctx, prefix)
}

func (s *stale) List(ctx context.Context, prefix string) ([]meta.Entry, error) {
	if !s.fresh {
		return nil, nil
	}
	return s.Store.List(ctx, prefix)
}

// C2: a value that the holder before has just made is not missed by a node that is behind, and one
// machine asks for nothing.
func TestWhoBeginsReadsAfresh(t *testing.T) {
	memory := storagetest.Entries(t)
	testkit.Must(t, holder(t, memory, 1).mark(10))
	testkit.MustEqual(t, len(holder(t, &stale{Store: memory}, 2).records), 1, "values that are found")
	store := metatest.NewFaulty(memory)
	holder(t, store, 0)
	testkit.Equal(t, store.Count(metatest.OpFresh), 0, "what one machine asks for")
	store.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpFresh {
			return meta.ErrUnavailable
		}
		return nil
	})
	_, err := readCursors(t.Context(), store, &shards.Held{Shard: 0x2c, Epoch: 3})
	testkit.ErrorIs(t, err, meta.ErrUnavailable, "begun with what may be old")
}

// Older values have no epoch, and one machine goes on writing them so.
func TestOneMachineStoresNoEpoch(t *testing.T) {
	store := storagetest.Entries(t)
	value := appendCursor([]byte{1}, "lane", 4)
	testkit.Must(t, testkit.Err(store.CompareAndSet(t.Context(), cursorPrefix+"source/0", 0, value)))
	revision := testkit.Value(store.Get(t.Context(), cursorPrefix+"source/0"))(t).Revision
	own := holder(t, store, 0)
	testkit.Equal(t, testkit.Value(store.Get(t.Context(), cursorPrefix+"source/0"))(t).Revision, revision, "written at the start")
	testkit.Must(t, own.mark(4))
	testkit.Equal(t, testkit.Value(store.Get(t.Context(), cursorPrefix+"source/0"))(t).Revision, revision, "written though nothing has changed")
	testkit.Must(t, own.mark(5))
	testkit.Equal(t, string(testkit.Value(store.Get(t.Context(), cursorPrefix+"source/0"))(t).Value), string(appendCursor([]byte{1}, "lane", 5)))
}
