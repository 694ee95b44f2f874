package disk_test

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R3: a partition takes room for what is in it: one block for one event, and never much more than
// twice as much as its events. Zeros are written ahead in a few steps, not with each event.
func TestRoomGrowsWithThePartition(t *testing.T) {
	mem := vfs.NewMem()
	faulty := vfs.NewFaulty(mem)
	cfg := config(disk.Always, faulty)
	cfg.SegmentBytes = 8 << 20
	p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
	size := func() int64 {
		t.Helper()
		files := testkit.Value(mem.List("log/orders-1/0"))(t)
		testkit.Equal(t, len(files), 1, "segments")
		return files[0].Bytes
	}
	mustAppend(t, p, strings.Repeat("x", 100))
	testkit.Equal(t, size(), 4<<10, "bytes for one event of 100")
	writes, last, steps := faulty.Count(vfs.OpWrite), size(), 0
	const events = 1024
	for range events {
		mustAppend(t, p, strings.Repeat("x", 1000))
		held := testkit.Value(p.Bounds(t.Context()))(t).Bytes
		now := size()
		testkit.That(t, now < 2*held+8<<10, "%d bytes on disk for %d", now, held)
		if now != last {
			last, steps = now, steps+1
		}
	}
	testkit.That(t, steps < 16, "%d steps for 1 MiB", steps)
	testkit.Equal(t, faulty.Count(vfs.OpWrite)-writes, events+steps, "writes")
}
