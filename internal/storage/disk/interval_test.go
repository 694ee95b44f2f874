package disk_test

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestARollLeavesNothingUnsynced though the full segment's index could not be written.
func TestARollLeavesNothingUnsynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		faulty := vfs.NewFaulty(mem)
		e := mustOpen(t, config(disk.Interval, faulty))
		p := mustPartition(t, e, eventlog.Retention{})
		failAll(faulty, syscall.EIO, vfs.OpTruncate) // part of writing the index
		fill(t, p, 0, 50)
		runFor(t, e, 50*time.Millisecond)
		for seed := range uint64(20) {
			wantAll(t, mem.CutPower(newRand(seed)), disk.Interval, 50)
		}
	})
}

// wantAll wants all of what fill has appended.
func wantAll(t *testing.T, mem *vfs.Mem, mode disk.SyncMode, want int) {
	t.Helper()
	got, err := readFrom(t, mustPartition(t, mustOpen(t, config(mode, mem)), eventlog.Retention{}), eventlog.Earliest())
	if err != nil || len(got) != want {
		t.Errorf("after power loss: %d events, %v, want %d", len(got), err, want)
	}
}

// TestAFailedLateSyncCostsNoLaterEvents: no later sync of that segment proves anything, so
// writing has to go on in another.
func TestAFailedLateSyncCostsNoLaterEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		faulty := vfs.NewFaulty(mem)
		e := mustOpen(t, config(disk.Interval, faulty))
		p := mustPartition(t, e, eventlog.Retention{})
		fill(t, p, 0, 5)
		failNext(faulty, vfs.OpSync, syscall.EIO)
		runFor(t, e, 10*time.Millisecond)
		fill(t, p, 5, 10)
		runFor(t, e, 10*time.Millisecond)
		for seed := range uint64(20) {
			after := mem.CutPower(newRand(seed))
			p := mustPartition(t, mustOpen(t, config(disk.Interval, after)), eventlog.Retention{})
			got, err := readFrom(t, p, eventlog.At(5))
			if err != nil || len(got) != 5 {
				t.Errorf("after power loss: %d of 5 later events, %v", len(got), err)
			}
		}
	})
}

// TestACleanStopSyncs: nothing is left to be lost afterwards.
func TestACleanStopSyncs(t *testing.T) {
	for _, mode := range []disk.SyncMode{disk.Always, disk.Interval} {
		for _, events := range []int{5, 100} {
			mem := vfs.NewMem()
			e := mustOpen(t, config(mode, mem))
			fill(t, mustPartition(t, e, eventlog.Retention{}), 0, events)
			e.Close()
			for seed := range uint64(20) {
				wantAll(t, mem.CutPower(newRand(seed)), mode, events)
			}
		}
	}
}

// TestAFailedLateSyncGivesNoNumberTwice: a batch has its number and nobody has waited for
// it yet when the sync fails. // H3
func TestAFailedLateSyncGivesNoNumberTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := vfs.NewFaulty(vfs.NewMem())
		e := mustOpen(t, config(disk.Interval, faulty))
		p := mustPartition(t, e, eventlog.Retention{})
		mustAppend(t, p, "0")
		var receipts []eventlog.Receipt
		submit := func(s string) {
			r, err := p.Submit(t.Context(), text(s))
			testkit.Must(t, err)
			receipts = append(receipts, r)
		}
		submit("before the failure")
		failNext(faulty, vfs.OpSync, syscall.EIO)
		runFor(t, e, 10*time.Millisecond)
		submit("after it")
		want := []string{"0"}
		for i, r := range receipts {
			done, err := r.Wait(t.Context())
			if err != nil && !errors.Is(err, eventlog.ErrFenced) {
				t.Error(err)
			}
			if err != nil {
				continue
			}
			testkit.Equal(t, int(done.First), len(want), "batch %d got number %d", i, done.First)
			want = append(want, []string{"before the failure", "after it"}[i])
		}
		wantTexts(t, p, want...)
	})
}
