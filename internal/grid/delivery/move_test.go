package delivery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// C7: a subscription's cursors are found by the shard that it is of, and by one machine when they were
// moved back.
func TestMovingCursors(t *testing.T) {
	store := storagetest.Entries(t)
	want := map[string]int64{}
	for source := range 3 {
		for partition := range 2 {
			position := fmt.Sprintf("topic-%d/%d", source, partition)
			value := beginCursors(0, 20)
			for i := range 20 {
				id := fmt.Sprint("sub-", i)
				value = appendCursor(value, id, int64(i*7+partition))
				want[position+" "+id] = int64(i*7 + partition)
			}
			testkit.Must(t, testkit.Err(store.CompareAndSet(t.Context(), cursorPrefix+position, 0, value)))
		}
	}
	check := func(step string, prefix func(id string) string) {
		t.Helper()
		found := 0
		for _, e := range testkit.Value(store.List(t.Context(), cursorPrefix))(t) {
			epoch, marks, err := parseCursors(e.Value)
			testkit.Must(t, err)
			for id, mark := range marks {
				rest, ok := strings.CutPrefix(e.Key, prefix(id))
				testkit.That(t, ok && epoch == 0 && want[rest+" "+id] == mark, "%s: %s has %s at %d", step, e.Key, id, mark)
				found++
			}
		}
		testkit.Equal(t, found, len(want), step)
	}
	ofShard := func(id string) string { return cursorPrefix + shards.Held{Shard: shards.Of(id)}.Name() + "/" }
	for range 2 { // again does no harm
		testkit.Must(t, DivideCursors(t.Context(), store))
		check("divided", ofShard)
	}
	for shard := range shards.Count { // their holders write them
		_, err := readCursors(t.Context(), store, &shards.Held{Shard: shard, Epoch: 2})
		testkit.Must(t, err)
	}
	for range 2 {
		testkit.Must(t, UniteCursors(t.Context(), store))
		check("united", func(string) string { return cursorPrefix })
	}
}
