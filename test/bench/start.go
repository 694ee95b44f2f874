package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/bolt"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/test/bench/measure"
)

// hubName is the hub that a yard starts with.
const hubName = "bench"

// measureStart starts the real program on a data folder that is already large.
func measureStart(ctx context.Context, b *bench) (err error) {
	size, err := b.startSize()
	if err != nil {
		return err
	}
	dir, err := b.newFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b.progress("start: building eventyard")
	program, err := buildProgram(ctx, dir)
	if err != nil {
		return err
	}
	b.progress("start: filling %.2f GiB", float64(size)/(1<<30))
	data := filepath.Join(dir, "data")
	if err := fillYard(ctx, data, size); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	cold, warm := startFigures{}, startFigures{}
	for range b.rounds {
		if err := errors.Join(quiesce(ctx), forgetCached(data)); err != nil {
			return err
		}
		if err := cold.take(ctx, b, program, data); err != nil {
			return err
		}
		if err := warm.take(ctx, b, program, data); err != nil {
			return err
		}
	}
	b.reportStart(size, cold, warm)
	return nil
}

// startSize is how much to start with: 10 GiB, if that leaves as much room again.
func (b *bench) startSize() (int64, error) {
	if b.startBytes > 0 {
		return b.startBytes, nil
	}
	free, err := vfs.FreeBytes(b.folder)
	if err != nil {
		return 0, err
	}
	if free < 20<<30 {
		b.progress("start: little room on the disk, so only 2 GiB")
		return 2 << 30, nil
	}
	return 10 << 30, nil
}

func (b *bench) reportStart(size int64, cold, warm startFigures) {
	b.report.goal("start until ready, files not in the page cache", cold.ready, "s", atMost(1))
	b.report.goal("start until all partitions have told their bounds, files not in the page cache", cold.bounds, "s", atMost(1))
	b.report.goal("resident memory, idle", cold.resident, "MiB", atMost(40))
	s := measure.Table{
		Title: fmt.Sprintf("Start with %.1f GiB in 16 partitions, sync `always`", float64(size)/(1<<30)),
		Head:  []string{"what", "median", "spread", "unit"},
		Notes: []string{"Bounds are asked for over HTTP, which opens every partition and recovers its newest segment."},
	}
	for _, row := range []struct {
		what, unit string
		values     measure.Series
	}{
		{"until ready, files not in the page cache", "s", cold.ready},
		{"until all partitions have told their bounds, files not in the page cache", "s", cold.bounds},
		{"until ready, files in the page cache", "s", warm.ready},
		{"until all partitions have told their bounds, files in the page cache", "s", warm.bounds},
		{"resident memory, idle after that", "MiB", cold.resident},
	} {
		s.Rows = append(s.Rows, []string{row.what, measure.Number(row.values.Median()), row.values.Spread(), row.unit})
	}
	b.report.table(s)
}

// fillYard makes a hub and fills it, fast; then it appends a little durably, so that the
// folder is as a yard leaves it that ran with sync always.
func fillYard(ctx context.Context, dir string, size int64) error {
	const segmentBatches = disk.DefaultSegmentBytes / (batchEvents * eventBytes)
	mean := max(size/(partitions*batchEvents*eventBytes), 1)
	// Recovery reads the newest segment of each partition: they are to be anything from
	// empty to full.
	spread := min(mean, segmentBatches)
	batches := func(partition int) int64 { return mean - spread/2 + int64(partition)*spread/partitions }
	if err := publish(ctx, dir, disk.OS, batches); err != nil {
		return err
	}
	return publish(ctx, dir, disk.Always, func(int) int64 { return 1 })
}

// publish appends batches to each partition of the hub, as many as it is told.
func publish(ctx context.Context, dir string, sync disk.SyncMode, batches func(partition int) int64) (err error) {
	engine, err := disk.Open(disk.Config{Dir: dir, Sync: sync, Log: quiet()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(dir, "meta.db"), Log: quiet()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	yard, err := broker.Open(ctx, broker.Config{Engine: engine, Meta: store, Log: quiet()})
	if err != nil {
		return err
	}
	if _, err := yard.EnsureHub(ctx, broker.HubConfig{Name: hubName, Partitions: partitions}, nil); err != nil {
		return err
	}
	return each(partitions, func(i int) error { return publishTo(ctx, yard, i, batches(i)) })
}

func publishTo(ctx context.Context, yard *broker.Broker, partition int, batches int64) error {
	to := broker.Target{Partition: strconv.Itoa(partition)}
	events := newBatches(1, batchEvents)[0].Events
	for range batches {
		if _, err := yard.Publish(ctx, hubName, to, events); err != nil {
			return err
		}
	}
	return nil
}

// startFigures are what several starts showed.
type startFigures struct {
	ready, bounds, resident measure.Series
}

// take starts the program once.
func (f *startFigures) take(ctx context.Context, b *bench, program, data string) (err error) {
	began := time.Now()
	y, err := startProgram(ctx, program, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, y.stop()) }()
	f.ready = append(f.ready, time.Since(began).Seconds())
	if err := y.askBounds(ctx); err != nil {
		return err
	}
	f.bounds = append(f.bounds, time.Since(began).Seconds())
	select { // let it come to rest
	case <-time.After(max(b.period, time.Second)):
	case <-ctx.Done():
		return ctx.Err()
	}
	if kib, ok := measure.ResidentKiB(y.cmd.Process.Pid); ok {
		f.resident = append(f.resident, kib/1024)
	}
	b.progress("  ready after %.3f s, all bounds after %.3f s", f.ready[len(f.ready)-1], f.bounds[len(f.bounds)-1])
	return nil
}
