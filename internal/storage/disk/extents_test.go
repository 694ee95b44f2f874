package disk_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K6: extents of large frames cost a small read for each, those of small ones a read for many, and
// bodies are then read in one piece.
func TestExtentsReadHeadersOnly(t *testing.T) {
	for _, tt := range []struct {
		name           string
		frames, length int
		most           int // reads for extents
	}{
		{"large", 8, 100 << 10, 8 + 1},
		{"small", 500, 200, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faulty := vfs.NewFaulty(vfs.NewMem())
			cfg := config(disk.OS, faulty)
			cfg.SegmentBytes, cfg.OpenSegments = 8<<20, 8
			p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
			text := strings.Repeat("x", tt.length)
			for range tt.frames {
				mustAppendFrame(t, p, 3, text)
			}
			reads := 0
			faulty.Inject(func(op vfs.Op) error {
				if op.Kind == vfs.OpRead {
					reads++
				}
				return nil
			})
			c := testkit.Value(p.Cursor(t.Context(), eventlog.Earliest()))(t)
			defer c.Close()
			extents := testkit.Value(c.Extents(t.Context(), nil, 1<<20))(t)
			testkit.Equal(t, len(extents), tt.frames, "extents")
			testkit.That(t, reads <= tt.most, "%d reads for extents", reads)
			reads = 0
			runs := testkit.Value(c.TryNextAll(t.Context(), nil, 1<<20))(t)
			testkit.Equal(t, len(runs), tt.frames, "runs")
			testkit.Equal(t, reads, 1, "reads for runs")
		})
	}
}

// H3, K4: damage of a header ends extents before it, and is an error at it; damage of a body is
// found by who reads it.
func TestExtentsOfDamagedFrames(t *testing.T) {
	const frame = segment.FormHeaderBytes + 24
	for name, tt := range map[string]struct {
		at      int64
		extents int
	}{"header": {30, 2}, "body": {segment.FormHeaderBytes + 20, 4}} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			cfg := config(disk.Always, mem)
			e := mustOpen(t, cfg)
			p := mustPartition(t, e, eventlog.Retention{})
			for range 4 {
				mustAppendFrame(t, p, 4, "frame")
			}
			testkit.Must(t, e.Close())
			testkit.Must(t, mem.Corrupt(segments(t, mem)[0], segment.HeaderBytes+2*frame+tt.at, 1))
			p = mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
			c := testkit.Value(p.Cursor(t.Context(), eventlog.Earliest()))(t)
			defer c.Close()
			testkit.Equal(t, len(testkit.Value(c.Extents(t.Context(), nil, 1<<20))(t)), tt.extents, "extents")
			runs := testkit.Value(c.TryNextAll(t.Context(), nil, 1<<20))(t)
			testkit.Equal(t, len(runs), 2, "runs before the damage")
			_, err := c.TryNextAll(t.Context(), nil, 1<<20)
			if damage, ok := errors.AsType[*eventlog.CorruptError](err); !ok || damage.First != 8 || damage.Next != 12 {
				t.Errorf("at the damage: %v", err)
			}
			_, err = c.Extents(t.Context(), nil, 1<<20)
			if damage, ok := errors.AsType[*eventlog.CorruptError](err); tt.extents == 2 && (!ok || damage.First != 8 || damage.Next != 12) {
				t.Errorf("extents at the damage: %v", err)
			}
			testkit.Equal(t, c.At(), 8, "where the cursor stands")
			behind := testkit.Value(p.Cursor(t.Context(), eventlog.At(12)))(t)
			defer behind.Close()
			testkit.Equal(t, len(testkit.Value(behind.Extents(t.Context(), nil, 1<<20))(t)), 1, "extents behind the damage")
		})
	}
}
