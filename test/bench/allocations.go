package main

import (
	"context"
	"errors"
	"os"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/test/bench/measure"
)

// measureAllocations counts what the engine allocates for each event. The counts are
// the process's, so they hold the benchmark's own few as well.
func measureAllocations(ctx context.Context, b *bench) (err error) {
	b.progress("allocations: of appends and cursor reads")
	lim := limit{period: b.period, bytes: cachedBytes / 2}
	appends, err := b.compare(ctx, lim,
		engineAppends("append, batches of 100, `os`, 1 writer", disk.OS, shape{1, 1, batchEvents}),
		engineAppends("append, batches of 100, `always`, 16 writers on 16 partitions", disk.Always, shape{partitions, partitions, batchEvents}),
		engineAppends("append, single events, `os`, 1 writer", disk.OS, shape{1, 1, 1}),
		engineAppends("append, single events, `always`, 64 writers on 1 partition", disk.Always, shape{1, 64, 1}))
	if err != nil {
		return err
	}
	reads, err := b.allocationsOfReads(ctx, lim)
	if err != nil {
		return err
	}
	b.report.goal("allocations per event appended, batches of 100, `os`", appends[0].allocationsPerEvent(), "", atMost(0.01))
	b.report.goal("allocations per event appended, batches of 100, `always`", appends[1].allocationsPerEvent(), "", atMost(0.01))
	s := measure.Table{Title: "Allocations", Head: []string{"what", "ns per event", "allocations per event", "bytes allocated per event"}}
	for _, r := range append(appends, reads...) {
		s.Rows = append(s.Rows, []string{r.name, measure.Number(r.nanosecondsPerEvent().Median()),
			measure.Number(r.allocationsPerEvent().Median()), measure.Number(r.allocatedPerEvent().Median())})
	}
	b.report.table(s)
	return nil
}

// allocationsOfReads reads both what was appended in batches and one by one.
func (b *bench) allocationsOfReads(ctx context.Context, lim limit) (all []result, err error) {
	for _, kind := range []struct {
		name  string
		batch int
	}{{"cursor read, batches of 100", batchEvents}, {"cursor read, single events", 1}} {
		r, err := b.readsOf(ctx, lim, kind.name, kind.batch)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func (b *bench) readsOf(ctx context.Context, lim limit, name string, batch int) (r result, err error) {
	dir, err := b.newFolder()
	if err != nil {
		return result{}, err
	}
	e, parts, err := openEngine(disk.Config{Dir: dir, Sync: disk.OS}, 1)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, e.Close(), os.RemoveAll(dir)) }()
	if err := fill(ctx, parts, batch, readBytes/16); err != nil {
		return result{}, err
	}
	results, err := b.compare(ctx, lim, cursorReads(name, parts))
	if err != nil {
		return result{}, err
	}
	return results[0], nil
}
