package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/test/bench/measure"
)

// readBytes is how much is read again and again: more than the processor's caches hold
// and less than the page cache does.
const readBytes = 1 << 30

// measureRead reads back what is in the page cache, with one goroutine.
func measureRead(ctx context.Context, b *bench) (err error) {
	size := int64(readBytes)
	if b.period.Seconds() < 1 {
		size /= 8
	}
	b.progress("read: filling %d MiB", size>>20)
	dir, err := b.newFolder()
	if err != nil {
		return err
	}
	e, parts, err := openEngine(disk.Config{Dir: dir, Sync: disk.OS}, partitions)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(), os.RemoveAll(dir)) }()
	if err := fill(ctx, parts, batchEvents, size); err != nil {
		return err
	}
	b.progress("read: sequentially from the page cache, one goroutine")
	r, err := b.compare(ctx, limit{period: b.period},
		cursorReads("engine: cursors, batches of 100", parts),
		rawReads("raw: read(2) of 256 KiB and CRC-32C", dir))
	if err != nil {
		return err
	}
	b.report.goal("sequential read from page cache, one goroutine", r[0].gigabytes(), "GB/s", atLeast(2))
	b.report.goal("allocations per event read", r[0].allocationsPerEvent(), "", atMost(0.001))
	b.report.goal("sequential read: engine / raw with CRC-32C", r[0].bytesPerSecond().Over(r[1].bytesPerSecond()), "×", target{})
	b.report.rates("Sequential reads of 1 KiB events from the page cache, one goroutine", r)
	return nil
}

func (r result) gigabytes() measure.Series {
	return r.series(func(t tally) float64 { return float64(t.bytes) / t.took.Seconds() / 1e9 })
}

// fill appends events of size bytes in all, the same number to each partition.
func fill(ctx context.Context, parts []eventlog.Partition, batch int, size int64) error {
	batches := newBatches(len(parts), batch)
	appends := max(size/int64(len(parts)*batch*eventBytes), 1)
	return each(len(parts), func(i int) error {
		for range appends {
			if _, err := eventlog.Append(ctx, parts[i], batches[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// cursorReads reads one partition after the other from its beginning to its end.
func cursorReads(name string, parts []eventlog.Partition) contender {
	return contender{name, func(ctx context.Context, _ string, lim limit) (tally, error) {
		bounds, err := parts[0].Bounds(ctx)
		if err != nil {
			return tally{}, err
		}
		events, next := int(bounds.Next-bounds.First), 0
		return drive(ctx, lim, job{writers: 1, events: events, bytes: events * eventBytes,
			do: func(ctx context.Context, _ int) error {
				next++
				return readThrough(ctx, parts[next%len(parts)], events)
			}})
	}}
}

// readThrough looks at every event's length, as little as anybody would.
func readThrough(ctx context.Context, p eventlog.Partition, want int) error {
	c, err := p.Cursor(ctx, eventlog.Earliest())
	if err != nil {
		return err
	}
	defer c.Close()
	events, bytes := 0, 0
	for {
		run, err := c.TryNext(ctx)
		if err != nil {
			return err
		}
		if len(run.Events) == 0 {
			break
		}
		for i := range run.Events {
			bytes += len(run.Events[i].Message)
		}
		events += len(run.Events)
	}
	if events != want || bytes != want*eventBytes {
		return fmt.Errorf("read %d events of %d bytes in all, want %d of %d", events, bytes, want, want*eventBytes)
	}
	return nil
}

// rawReads reads the same files as they are.
func rawReads(name, dir string) contender {
	return contender{name, func(ctx context.Context, _ string, lim limit) (tally, error) {
		files, err := filepath.Glob(filepath.Join(dir, "log", logName, "*", "*.seg"))
		if err != nil || len(files) == 0 {
			return tally{}, errors.Join(err, errors.New("no segments found"))
		}
		table := crc32.MakeTable(crc32.Castagnoli)
		buf := make([]byte, 256<<10)
		var sum uint32
		var bytes int64
		t, err := drive(ctx, lim, job{writers: 1, bytes: 1, do: func(context.Context, int) error {
			bytes = 0
			for _, name := range files {
				n, err := readFile(name, buf, func(b []byte) { sum ^= crc32.Checksum(b, table) })
				if err != nil {
					return err
				}
				bytes += n
			}
			return nil
		}})
		t.bytes *= bytes
		t.events = t.bytes / eventBytes
		return t, err
	}}
}

func readFile(name string, buf []byte, use func([]byte)) (int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for total := int64(0); ; {
		n, err := f.Read(buf)
		total += int64(n)
		use(buf[:n])
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}
