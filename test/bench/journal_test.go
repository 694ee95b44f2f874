package main

import (
	"errors"
	"io"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestTheJournalPrototypeStoresWhatItAcknowledges: a prototype that loses events would
// be fast for the wrong reason.
func TestTheJournalPrototypeStoresWhatItAcknowledges(t *testing.T) {
	const parts, writers, appends = 4, 8, 60 // more than one journal file in all
	j, err := openJournal(t.TempDir(), parts)
	testkit.Must(t, err)
	large, small := newBatches(1, batchEvents)[0], newBatches(1, 1)[0]
	err = each(writers, func(w int) error {
		for range appends {
			if err := errors.Join(j.append(w%parts, large), j.append(w%parts, small)); err != nil {
				return err
			}
		}
		return nil
	})
	testkit.Must(t, err)
	for i, p := range j.parts {
		want := int64(writers / parts * appends * (batchEvents + 1))
		testkit.Equal(t, countEvents(t, p), want, "partition %d holds", i)
	}
	testkit.Must(t, j.close())
}

// countEvents reads a partition's file through, checking sums and numbering.
func countEvents(t *testing.T, p *journalPart) int64 {
	t.Helper()
	scan := segment.NewScanner(p.file, partSalt, 0, p.offset, nil)
	next := int64(0)
	for {
		batch, err := scan.Next()
		if errors.Is(err, io.EOF) {
			return next
		}
		testkit.Must(t, err, "at %d", scan.Offset())
		testkit.MustEqual(t, batch.First, next, "batch begins with event")
		next += int64(batch.Count)
	}
}
