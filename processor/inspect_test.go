package processor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

// P6: for any store.
func TestInspectGivesTheTableOfAGroup(t *testing.T) {
	bubble(t, 3, func(w *world) {
		a := w.start(w.config("a"), w.note)
		w.hub.SendN("0", 4)
		w.feed(time.Second, "1", 2)
		w.hub.Trim("0", 2)
		b := w.start(w.config("b"), w.note)
		after(time.Minute)
		wantTable(t, w, `
			0 b/2 saved 3 of 2-3 lag 0 0s
			1 a/1 saved 1 of 0-1 lag 0 0s
			2 a/1 saved - of 0--1 lag 0 0s
			a present true partitions 2
			b present true partitions 1
			lag 0 worth 0`)
		a.stop()
		b.stop()
		w.hub.SendN("0", 10)
		w.feed(time.Minute, "2", 5)
		wantTable(t, w, `
			0 /2 saved 3 of 2-13 lag 10 1m0s
			1 /1 saved 1 of 0-1 lag 0 0s
			2 /1 saved - of 0-4 lag 5 1m0s
			lag 15 worth 2`)
		w.force("1", 9)
		after(0)
		if table := w.inspect(); table.Partitions[1].Lag.Events != 0 || table.Partitions[1].Checkpoint.Sequence != 9 {
			t.Errorf("a checkpoint beyond the end gives %+v", table.Partitions[1])
		}
	})
}

func TestInspectReadsNothingBesideAnOwner(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.start(w.config("a"), func(ctx context.Context, b *processor.Batch) error { <-ctx.Done(); return ctx.Err() })
		w.feed(10*time.Second, "0", 3)
		testkit.Equal(t, *w.inspect().Partitions[0].Lag, (processor.Lag{Events: 3, Oldest: -1}), "lag")
		if w.hub.Readers("0") != 1 || len(w.errs) > 0 {
			t.Errorf("%d readers, errors %v", w.hub.Readers("0"), w.errs)
		}
	})
}

func TestInspectWantsAStoreAndAllOfItsAnswers(t *testing.T) {
	bubble(t, 1, func(w *world) {
		if _, err := processor.Inspect(t.Context(), w.hub, nil, ""); err == nil {
			t.Error("no store is no error")
		}
		down := newFaulty(w.store)
		for _, op := range []string{"entries", "leases", "checkpoints"} {
			down.set(down.deny, op, 1)
			if table, err := processor.Inspect(t.Context(), w.hub, down, ""); err == nil {
				t.Errorf("%s are not to be had: %+v", op, table)
			}
		}
	})
}

func (w *world) inspect() processor.Table {
	w.t.Helper()
	table, err := processor.Inspect(w.t.Context(), w.hub, w.store, "")
	testkit.Must(w.t, err)
	return table
}

func wantTable(t *testing.T, w *world, want string) {
	t.Helper()
	table := w.inspect()
	var lines []string
	for _, row := range table.Partitions {
		saved := "-"
		if row.Checkpoint != nil {
			saved = fmt.Sprint(row.Checkpoint.Sequence)
		}
		old := row.Lease.Presence == "" && table.At.Sub(row.Lease.Renewed) > 11*time.Second
		if row.Lease.Owner != "" && (row.Lease.Renewed.Before(row.Lease.Acquired) || old) {
			t.Errorf("lease %+v at %v", row.Lease, table.At)
		}
		lines = append(lines, fmt.Sprintf("%s %s/%d saved %s of %d-%d lag %d %v", row.Partition, row.Lease.Owner, row.Lease.Epoch, saved,
			row.First, row.Last, row.Lag.Events, row.Lag.Oldest))
	}
	for _, i := range table.Instances {
		lines = append(lines, fmt.Sprintf("%s present %v partitions %d", i.ID, i.Present, i.Partitions))
	}
	lines = append(lines, fmt.Sprintf("lag %d worth %d", table.TotalLag(), table.Recommended(10)))
	got, want := strings.Join(lines, "\n"), strings.ReplaceAll(strings.TrimSpace(want), "\t", "")
	testkit.Equal(t, got, want, "table")
}
