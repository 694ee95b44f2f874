package main

import (
	"context"
	"errors"

	"github.com/eventyard/eventyard/internal/engine/disk"
)

// measureLayouts compares the engine's layout, a sync per dirty partition file, with
// one journal for all partitions.
func measureLayouts(ctx context.Context, b *bench) error {
	b.progress("layouts: a sync per partition file, or one shared journal")
	single, bulk := shape{partitions, 64, 1}, shape{partitions, partitions, batchEvents}
	lone := shape{partitions, 1, 1}
	r, err := b.compare(ctx, limit{period: b.period},
		engineAppends("single events, 1 writer: file per partition (engine)", disk.Always, lone),
		journalAppends("single events, 1 writer: shared journal (prototype)", lone),
		engineAppends("single events, 64 writers: file per partition (engine)", disk.Always, single),
		journalAppends("single events, 64 writers: shared journal (prototype)", single),
		engineAppends("batches of 100, 16 writers: file per partition (engine)", disk.Always, bulk),
		journalAppends("batches of 100, 16 writers: shared journal (prototype)", bulk))
	if err != nil {
		return err
	}
	b.report.goal("layouts, single events, 1 writer: file per partition / shared journal", r[0].rate().over(r[1].rate()), "×", target{})
	b.report.goal("layouts, single events, 64 writers: file per partition / shared journal", r[2].rate().over(r[3].rate()), "×", target{})
	b.report.goal("layouts, batches of 100: file per partition / shared journal", r[4].rate().over(r[5].rate()), "×", target{})
	b.report.rates("Two layouts: 1 KiB events, 16 partitions, sync `always`", r,
		"The shared journal is a prototype without segments, indexes, readers and recovery, which the engine has and pays for.")
	return nil
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
