package main

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/test/bench/measure"
)

// measureLayouts compares a sync per dirty partition file (the engine without its journal),
// one journal for everything (a prototype), and what the engine does: a journal for small
// groups when several partitions commit at once, a sync of their own for the rest.
func measureLayouts(ctx context.Context, b *bench) error {
	b.progress("layouts: a sync per partition file, one shared journal, or each where it pays")
	loads := []struct {
		name string
		shape
	}{
		{"single events, 1 writer", shape{partitions, 1, 1}},
		{"single events, 64 writers", shape{partitions, 64, 1}},
		{"batches of 100, 16 writers", shape{partitions, partitions, batchEvents}},
	}
	var contenders []contender
	for _, l := range loads {
		contenders = append(contenders,
			configuredAppends(l.name+": file per partition (engine without its journal)", disk.Config{Sync: disk.Always, NoJournal: true}, l.shape),
			journalAppends(l.name+": shared journal for everything (prototype)", l.shape),
			engineAppends(l.name+": the engine", disk.Always, l.shape))
	}
	r, err := b.compare(ctx, limit{period: b.period}, contenders...)
	if err != nil {
		return err
	}
	for i, l := range loads {
		files, journal, engine := r[3*i], r[3*i+1], r[3*i+2]
		b.report.goal("layouts, "+l.name+": file per partition / shared journal", files.rate().Over(journal.rate()), "×", target{})
		b.report.goal("layouts, "+l.name+": engine / the better of the two", engine.rate().Over(better(files.rate(), journal.rate())), "×", target{})
	}
	b.report.rates("Two layouts: 1 KiB events, 16 partitions, sync `always`", r,
		"The shared journal is a prototype without segments, indexes, readers and recovery, which the engine has and pays for.")
	return nil
}

// better is the one with the higher median.
func better(a, b measure.Series) measure.Series {
	if a.Median() >= b.Median() {
		return a
	}
	return b
}

// journalAppends is the prototype under a load.
func journalAppends(name string, s shape) contender {
	return contender{name, func(ctx context.Context, dir string, lim limit) (t tally, err error) {
		j, err := openJournal(dir, s.partitions)
		if err != nil {
			return tally{}, err
		}
		defer func() { err = errors.Join(err, j.close()) }()
		batches := newBatches(s.writers, s.batch)
		return drive(ctx, lim, job{writers: s.writers, events: s.batch, bytes: s.batch * eventBytes,
			do: func(_ context.Context, w int) error { return j.append(w%s.partitions, batches[w]) }})
	}}
}
