package disk_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestAppendsStayWhenRetentionCouldNotRoll: retention rolls the active segment and the
// storage fails under it; what is appended next must not go where a newer segment's name
// voids it. // H2, H4
func TestAppendsStayWhenRetentionCouldNotRoll(t *testing.T) {
	for name, failing := range map[string][]vfs.OpKind{
		"and the new name stays":  {vfs.OpSyncDir, vfs.OpRemove},
		"and the new name may go": {vfs.OpSyncDir},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := vfs.NewMem()
				faulty := vfs.NewFaulty(mem)
				e := mustOpen(t, config(disk.Always, faulty))
				p := mustPartition(t, e, eventlog.Retention{Age: time.Millisecond})
				mustAppend(t, p, "old")
				time.Sleep(5 * time.Millisecond)
				failAll(faulty, syscall.EIO, failing...)
				_ = p.Trim(t.Context(), 0) // a round of retention
				faulty.Inject(nil)
				mustPartition(t, e, eventlog.Retention{}) // nothing more is to be removed
				mustAppend(t, p, "acknowledged")
				for seed := range uint64(40) {
					wantLast(t, config(disk.Always, mem.CutPower(newRand(seed))), "acknowledged")
				}
				wantLast(t, config(disk.Always, mem.CrashProcess()), "acknowledged")
			})
		})
	}
}

// wantLast opens what is left and wants the newest event to be this one.
func wantLast(t *testing.T, cfg disk.Config, want string) {
	t.Helper()
	got, err := readFrom(t, mustPartition(t, mustOpen(t, cfg), eventlog.Retention{}), eventlog.Earliest())
	if err != nil || len(got) == 0 || got[len(got)-1] != want {
		t.Errorf("got %q, %v, want %q at the end", got, err, want)
	}
}

// TestABrokenPartitionStillFreesRoom: a full disk may show itself at a sync, and then
// retention is what makes room for the partition to go on. // H4
func TestABrokenPartitionStillFreesRoom(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	e := mustOpen(t, config(disk.Always, faulty))
	p := mustPartition(t, e, eventlog.Retention{})
	fill(t, p, 0, 200)
	failAll(faulty, syscall.ENOSPC, vfs.OpSync, vfs.OpCreate)
	for range 2 {
		if _, err := eventlog.Append(t.Context(), p, text("x")); err == nil {
			t.Fatal("an append succeeded on a full disk")
		}
	}
	testkit.Must(t, p.Trim(t.Context(), 150))
	if b, err := p.Bounds(t.Context()); err != nil || b.First < 100 || b.First > 150 {
		t.Errorf("bounds %+v, %v: nothing was freed", b, err)
	}
	faulty.Inject(nil)
	fill(t, p, 200, 201)
}

// H4
func TestASegmentThatCannotBeReadForAMomentIsNotTakenForOld(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	cfg := config(disk.Always, faulty)
	e := mustOpen(t, cfg)
	fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 100)
	e.Close()
	p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{Age: 24 * time.Hour})
	testkit.Must(t, testkit.Err(p.Bounds(t.Context())))
	failAll(faulty, syscall.EIO, vfs.OpRead)
	_ = p.Trim(t.Context(), 0) // a round of retention
	faulty.Inject(nil)
	if got, err := readFrom(t, p, eventlog.Earliest()); err != nil || len(got) != 100 {
		t.Errorf("%d events are left, %v", len(got), err)
	}
}

// TestRetentionReachesPartitionsThatNobodyUses, a few in each round. // H4
func TestRetentionReachesPartitionsThatNobodyUses(t *testing.T) {
	const partitions = 600
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		id := func(n int) eventlog.PartitionID { return eventlog.PartitionID{Log: "many-1", Number: n} }
		e := mustOpen(t, config(disk.Always, mem))
		for n := range partitions {
			p := testkit.Value(e.Partition(id(n)))(t)
			mustAppend(t, p, "x")
		}
		e.Close()
		time.Sleep(2 * time.Hour)
		faulty := vfs.NewFaulty(mem)
		cfg := config(disk.Always, faulty)
		cfg.RetentionInterval = 10 * time.Second
		cfg.OpenSegments = partitions
		e = mustOpen(t, cfg)
		testkit.Must(t, e.Provide(t.Context(), "many-1", eventlog.Shape{Partitions: partitions, Retention: eventlog.Retention{Age: time.Hour}}))
		for n := range partitions {
			testkit.Must(t, testkit.Err(e.Partition(id(n))))
		}
		before := faulty.Count(vfs.OpOpen)
		runFor(t, e, 15*time.Second) // one round
		if n := faulty.Count(vfs.OpOpen) - before; n == 0 || n > partitions/4 {
			t.Errorf("a round of retention opened %d partitions", n)
		}
		runFor(t, e, 5*time.Minute)
		for n := range partitions {
			p := testkit.Value(e.Partition(id(n)))(t)
			if b, err := p.Bounds(t.Context()); err != nil || !b.Empty() || b.Next != 1 {
				t.Errorf("partition %d: %+v, %v: what is old was to go", n, b, err)
			}
		}
	})
}

// runFor runs the engine's background work for a time, within a synctest bubble.
func runFor(t *testing.T, e *disk.Engine, d time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	testkit.Check(t, e.Run(ctx))
}

// TestZeroingAheadTakesNobodysRoom: room that was only taken to be faster is still room for events.
func TestZeroingAheadTakesNobodysRoom(t *testing.T) {
	mem := vfs.NewMem()
	cfg := config(disk.Always, mem)
	cfg.SegmentBytes = 64 << 20
	p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
	mem.SetCapacity(100 << 10)
	for i := range 80 {
		if _, err := eventlog.Append(t.Context(), p, text(fmt.Sprintf("%03d%s", i, strings.Repeat("x", 1000)))); err != nil {
			t.Fatalf("append %d of 1 KiB into 100 KiB: %v", i, err)
		}
	}
}
