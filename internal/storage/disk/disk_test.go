package disk_test

import (
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestConformance(t *testing.T) {
	for _, mode := range []disk.SyncMode{disk.Always, disk.Interval, disk.OS} {
		t.Run("memory/"+mode.String(), func(t *testing.T) {
			logtest.Run(t, func(t *testing.T) (eventlog.Engine, func() eventlog.Engine) {
				return reopenable(t, config(mode, vfs.NewMem()))
			})
		})
		t.Run("disk/"+mode.String(), func(t *testing.T) {
			logtest.Run(t, func(t *testing.T) (eventlog.Engine, func() eventlog.Engine) {
				return reopenable(t, config(mode, vfs.OS(t.TempDir())))
			})
		})
	}
}

// config has small segments, so that tests roll often, few of them open, so that they are closed and
// opened again in the midst of everything, and quick background work.
func config(mode disk.SyncMode, fs vfs.FS) disk.Config {
	return disk.Config{
		FS: fs, Sync: mode, SyncInterval: time.Millisecond,
		SegmentBytes: 32 << 10, RetentionInterval: time.Millisecond, OpenSegments: 2,
		Log: testkit.Quiet(),
	}
}

func reopenable(t *testing.T, cfg disk.Config) (eventlog.Engine, func() eventlog.Engine) {
	e := mustOpen(t, cfg)
	return e, func() eventlog.Engine {
		testkit.Must(t, e.Close())
		e = mustOpen(t, cfg)
		return e
	}
}

func mustOpen(t *testing.T, cfg disk.Config) *disk.Engine {
	t.Helper()
	e := testkit.Value(disk.Open(cfg))(t)
	t.Cleanup(func() { e.Close() })
	return e
}
