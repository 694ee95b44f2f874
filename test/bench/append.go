package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// What is appended, unless said otherwise.
const (
	eventBytes  = 1 << 10
	batchEvents = 100
	partitions  = 16
)

// cachedBytes bounds what is written through the page cache in one go: past a share of the memory
// the operating system makes writers wait for the disk, and then only the disk is measured.
const cachedBytes = 3 << 29

// shape is how a load is spread.
type shape struct {
	partitions, writers, batch int
}

// measureAppendAlways compares durable appends in batches with raw writing.
func measureAppendAlways(ctx context.Context, b *bench) error {
	b.progress("append-always: batches of 100 x 1 KiB to 16 partitions, durable")
	r, err := b.compare(ctx, limit{period: b.period},
		engineAppends("engine, a writer per partition", disk.Always, shape{partitions, partitions, batchEvents}),
		engineAppends("engine, 2 writers per partition", disk.Always, shape{partitions, 2 * partitions, batchEvents}),
		rawWrites(true))
	if err != nil {
		return err
	}
	b.report.goal("append in batches, `always`: engine / raw", r[0].rate().Over(r[2].rate()), "×", atLeast(0.60))
	b.report.goal("the same with 2 writers per partition / raw", r[1].rate().Over(r[2].rate()), "×", target{})
	b.report.rates("Durable appends: batches of 100 × 1 KiB, 16 partitions, sync `always`", r)
	return nil
}

// measureAppendOS does the same without syncs.
func measureAppendOS(ctx context.Context, b *bench) error {
	b.progress("append-os: batches of 100 x 1 KiB to 16 partitions, page cache")
	r, err := b.compare(ctx, limit{period: b.period, bytes: cachedBytes},
		engineAppends("engine, a writer per partition", disk.OS, shape{partitions, partitions, batchEvents}),
		rawWrites(false))
	if err != nil {
		return err
	}
	b.report.goal("append in batches, `os`: engine / raw with CRC-32C", r[0].rate().Over(r[1].rate()), "×", atLeast(0.60))
	b.report.rates("Appends to the page cache: batches of 100 × 1 KiB, 16 partitions, sync `os`", r)
	return nil
}

// measureSingles shows group commit: many writers of single events against one.
func measureSingles(ctx context.Context, b *bench) error {
	b.progress("singles: one event of 1 KiB per append, durable")
	r, err := b.compare(ctx, limit{period: b.period},
		engineAppends("1 writer", disk.Always, shape{1, 1, 1}),
		engineAppends("64 writers, 1 partition", disk.Always, shape{1, 64, 1}),
		engineAppends("64 writers, 16 partitions", disk.Always, shape{partitions, 64, 1}))
	if err != nil {
		return err
	}
	one := r[0].rate()
	b.report.goal("single events, `always`: 64 writers on 1 partition / 1 writer", r[1].rate().Over(one), "×", atLeast(15))
	b.report.goal("single events, `always`: 64 writers on 16 partitions / 1 writer", r[2].rate().Over(one), "×", atLeast(15))
	b.report.rates("Single events of 1 KiB, sync `always`", r)
	return nil
}

// engineAppends is the engine under a load. Each append is waited for.
func engineAppends(name string, sync disk.SyncMode, s shape) contender {
	return configuredAppends(name, disk.Config{Sync: sync}, s)
}

// configuredAppends is the engine under a load, with other than its default settings.
func configuredAppends(name string, cfg disk.Config, s shape) contender {
	return contender{name, func(ctx context.Context, dir string, lim limit) (t tally, err error) {
		cfg.Dir = dir
		e, parts, err := openEngine(cfg, s.partitions)
		if err != nil {
			return tally{}, err
		}
		defer func() { err = errors.Join(err, e.Close()) }()
		batches := newBatches(s.writers, s.batch)
		return drive(ctx, lim, job{writers: s.writers, events: s.batch, bytes: s.batch * eventBytes,
			do: func(ctx context.Context, w int) error {
				_, err := eventlog.Append(ctx, parts[w%s.partitions], batches[w])
				return err
			}})
	}}
}

// logName is the log that everything is appended to.
const logName = "bench"

func openEngine(cfg disk.Config, n int) (*disk.Engine, []eventlog.Partition, error) {
	cfg.Log = quiet()
	e, err := disk.Open(cfg)
	if err != nil {
		return nil, nil, err
	}
	if err := e.Provide(context.Background(), logName, eventlog.Shape{Partitions: n}); err != nil {
		return nil, nil, errors.Join(err, e.Close())
	}
	parts := make([]eventlog.Partition, n)
	for i := range parts {
		id := eventlog.PartitionID{Log: logName, Number: i}
		if parts[i], err = e.Partition(id); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("partition %s: %w", id, err), e.Close())
		}
	}
	return e, parts, nil
}

// quiet drops all logs: what matters comes back as an error.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// newBatches gives each writer a batch of its own, so that none shares another's cache lines.
func newBatches(writers, events int) []eventlog.Batch {
	all := make([]eventlog.Batch, writers)
	for w := range all {
		bytes := randomBytes(events * eventBytes)
		for i := range events {
			all[w].Events = append(all[w].Events, eventlog.Event{Message: bytes[i*eventBytes:][:eventBytes:eventBytes]})
		}
	}
	return all
}

// randomBytes do not compress, should the disk try to.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(b) // never fails
	return b
}
