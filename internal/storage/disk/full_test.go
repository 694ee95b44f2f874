package disk_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// R6: without a byte of room retention removes also the only segment of a partition, one after
// another, and over a restart.
func TestAFullDiskCanBeTrimmed(t *testing.T) {
	for _, mode := range []disk.SyncMode{disk.Always, disk.Interval, disk.OS} {
		t.Run(mode.String(), func(t *testing.T) {
			mem := vfs.NewMem()
			cfg := config(mode, mem)
			cfg.SegmentBytes = 1 << 20
			e := mustOpen(t, cfg)
			for n := range 3 {
				fill(t, numbered(t, e, n), 0, 10)
			}
			mem.SetCapacity(1)
			trim := func(e *disk.Engine, n int) {
				t.Helper()
				p := numbered(t, e, n)
				if _, err := eventlog.Append(t.Context(), p, text(strings.Repeat("x", 300<<10))); !errors.Is(err, eventlog.ErrNoSpace) {
					t.Fatalf("an append gave %v", err)
				}
				testkit.Must(t, p.Trim(t.Context(), 10))
				mem.SetCapacity(1)
				bounds := testkit.Value(p.Bounds(t.Context()))(t)
				testkit.Equal(t, fmt.Sprint(bounds.First, bounds.Next), "10 10", "partition %d is from, to", n)
			}
			trim(e, 0)
			trim(e, 1)
			testkit.Must(t, e.Close())
			e = mustOpen(t, cfg)
			trim(e, 2)
			mem.SetCapacity(0)
			for n := range 3 {
				mustAppend(t, numbered(t, e, n), "after")
				wantTexts(t, numbered(t, e, n), "after")
			}
		})
	}
}

func numbered(t *testing.T, e *disk.Engine, n int) eventlog.Partition {
	t.Helper()
	return testkit.Value(e.Partition(eventlog.PartitionID{Log: first.Log, Number: n}))(t)
}

// R6: a folder of an older version, without trash, is opened on a full disk: its spares go first,
// and logs can be removed.
func TestAFullDiskWithoutTrash(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		mem := vfs.NewMem()
		e := mustOpen(t, config(disk.Always, mem))
		fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 50)
		testkit.Must(t, e.Close())
		testkit.Must(t, mem.Remove("trash"))
		spare := testkit.Value(mem.Create("spare/000001.seg"))(t)
		testkit.Must(t, spare.Close())
		faulty := vfs.NewFaulty(mem)
		freed := false
		faulty.Inject(func(op vfs.Op) error {
			switch {
			case op.Kind == vfs.OpRemove:
				freed = true
			case op.Kind == vfs.OpMkdirAll && op.Name == "trash":
				testkit.Equal(t, freed, true, "spares were removed before trash is made")
				return full
			}
			return nil
		})
		e = mustOpen(t, config(disk.Always, faulty))
		testkit.Must(t, e.Remove(t.Context(), first.Log))
		testkit.Equal(t, len(testkit.Value(mem.List("log"))(t)), 0, "folders of logs")
		testkit.Must(t, e.Close())
	}
}

// R6: a log goes although there is no room to move it aside.
func TestAFullDiskLetsALogBeRemoved(t *testing.T) {
	mem := vfs.NewMem()
	faulty := vfs.NewFaulty(mem)
	e := mustOpen(t, config(disk.Always, faulty))
	fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 50)
	mem.SetCapacity(1)
	faulty.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpRename || op.Kind == vfs.OpCreate || op.Kind == vfs.OpMkdirAll {
			return syscall.ENOSPC
		}
		return nil
	})
	testkit.Must(t, e.Remove(t.Context(), first.Log))
	left := testkit.Value(mem.List("log"))(t)
	testkit.Equal(t, len(left), 0, "folders of logs")
}
