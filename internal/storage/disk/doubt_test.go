package disk_test

import (
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// failAll makes all operations of some kinds fail until the next Inject.
func failAll(faulty *vfs.Faulty, err error, kinds ...vfs.OpKind) {
	faulty.Inject(func(op vfs.Op) error {
		for _, kind := range kinds {
			if op.Kind == kind {
				return err
			}
		}
		return nil
	})
}

// failNext makes the next operation of a kind fail.
func failNext(faulty *vfs.Faulty, kind vfs.OpKind, err error) {
	var once sync.Once
	faulty.Inject(func(op vfs.Op) (failure error) {
		if op.Kind == kind {
			once.Do(func() { failure = err })
		}
		return failure
	})
}

// wantDoubt appends and wants nobody to know the outcome.
func wantDoubt(t *testing.T, p eventlog.Partition, b eventlog.Batch) {
	t.Helper()
	testkit.MustErrorIs(t, testkit.Err(eventlog.Append(t.Context(), p, b)), eventlog.ErrUncertain)
}

// TestWhatWasFoundMissingStaysMissing: an append in doubt is voided by the next segment;
// once readers were told so, that segment's name never goes away again, though it has
// nothing in it and storage fails under it too. // H2, H3
func TestWhatWasFoundMissingStaysMissing(t *testing.T) {
	mem := vfs.NewMem()
	faulty := vfs.NewFaulty(mem)
	p := mustPartition(t, mustOpen(t, config(disk.Always, faulty)), eventlog.Retention{})
	mustAppend(t, p, "before")
	failNext(faulty, vfs.OpSync, syscall.EIO)
	wantDoubt(t, p, text("missing"))
	faulty.Inject(nil)
	if _, err := p.Submit(t.Context(), text("never waited for")); err != nil { // begins the new segment
		t.Fatal(err)
	}
	mem = mem.CrashProcess()
	faulty = vfs.NewFaulty(mem)
	p = mustPartition(t, mustOpen(t, config(disk.Always, faulty)), eventlog.Retention{})
	wantTexts(t, p, "before")
	failNext(faulty, vfs.OpSync, syscall.EIO)
	wantDoubt(t, p, text("maybe"))
	failAll(faulty, syscall.EMFILE, vfs.OpCreate)
	if _, err := eventlog.Append(t.Context(), p, text("refused")); err == nil {
		t.Fatal("an append without a segment to go to")
	}
	for seed := range uint64(40) {
		wantNever(t, config(disk.Always, mem.CutPower(newRand(seed))), "before", "missing", "refused")
	}
	wantNever(t, config(disk.Always, mem.CrashProcess()), "before", "missing", "refused")
}

// wantNever opens what is left, and wants the first text to be there and none of the others.
func wantNever(t *testing.T, cfg disk.Config, there string, never ...string) {
	t.Helper()
	got, err := readFrom(t, mustPartition(t, mustOpen(t, cfg), eventlog.Retention{}), eventlog.Earliest())
	if err != nil || len(got) == 0 || got[0] != there {
		t.Errorf("got %.20q, %v, want %q first", got, err, there)
	}
	for _, g := range got {
		for _, n := range never {
			if g == n {
				t.Errorf("%.20q is there", g)
			}
		}
	}
}

// TestWhatStandsBehindTheEndIsNotFoundLater: of two batches written at once power loss may
// leave the second only. It was found missing, so it must not come back when a batch of
// the first one's size has closed the gap. // H2, H3
func TestWhatStandsBehindTheEndIsNotFoundLater(t *testing.T) {
	mem := vfs.NewMem()
	faulty := vfs.NewFaulty(mem)
	p := mustPartition(t, mustOpen(t, config(disk.Always, faulty)), eventlog.Retention{})
	mustAppend(t, p, "before")
	var torn vfs.Op
	faulty.Inject(func(op vfs.Op) error {
		switch {
		case op.Kind == vfs.OpWrite && torn.Name == "":
			torn = op
		case op.Kind == vfs.OpSync:
			return syscall.EIO
		}
		return nil
	})
	same := strings.Repeat("x", 100)
	var receipts []eventlog.Receipt
	for _, s := range []string{"gone" + same, "left" + same} {
		r := testkit.Value(p.Submit(t.Context(), text(s)))(t)
		receipts = append(receipts, r)
	}
	for _, r := range receipts {
		testkit.MustErrorIs(t, testkit.Err(r.Wait(t.Context())), eventlog.ErrUncertain)
	}
	mem = mem.CrashProcess()
	testkit.Must(t, mem.Corrupt(segments(t, mem)[0], torn.Offset+70, 0xff))
	// By way of the journal nothing is zeroed ahead, which would hide it.
	p = mustPartition(t, mustOpen(t, disk.Journaling(config(disk.Always, mem), 64<<10, true)), eventlog.Retention{})
	wantTexts(t, p, "before")
	mustAppend(t, p, "anew"+same)
	for seed := range uint64(20) {
		wantNever(t, config(disk.Always, mem.CutPower(newRand(seed))), "before", "left"+same)
	}
	wantTexts(t, mustPartition(t, mustOpen(t, config(disk.Always, mem.CrashProcess())), eventlog.Retention{}), "before", "anew"+same)
}

// TestWhatAFullDiskRefusedIsNotFoundLater: of a group that did not fit, some was written,
// and power loss may keep what was cut off again. // H2
func TestWhatAFullDiskRefusedIsNotFoundLater(t *testing.T) {
	mem := vfs.NewMem()
	faulty := vfs.NewFaulty(mem)
	p := mustPartition(t, mustOpen(t, config(disk.Always, faulty)), eventlog.Retention{})
	mustAppend(t, p, "before")
	failNext(faulty, vfs.OpWrite, vfs.ShortWrite(2000, syscall.ENOSPC))
	var receipts []eventlog.Receipt
	for range 10 {
		r := testkit.Value(p.Submit(t.Context(), text("refused")))(t)
		receipts = append(receipts, r)
	}
	for _, r := range receipts {
		testkit.MustErrorIs(t, testkit.Err(r.Wait(t.Context())), eventlog.ErrNoSpace)
	}
	for seed := range uint64(100) {
		wantNever(t, config(disk.Always, mem.CutPower(newRand(seed))), "before", "refused")
	}
}

// TestWhatWasFoundAfterARestartStays: an append in doubt is found in the page cache, which
// takes it for written though its sync had failed. Once readers were shown it, power loss
// must not take it away. // H2, H3
func TestWhatWasFoundAfterARestartStays(t *testing.T) {
	mem := vfs.NewMem()
	faulty := vfs.NewFaulty(mem)
	p := mustPartition(t, mustOpen(t, config(disk.Always, faulty)), eventlog.Retention{})
	mustAppend(t, p, "before")
	failNext(faulty, vfs.OpSync, syscall.EIO)
	maybe := "maybe" + strings.Repeat("x", 2000)
	wantDoubt(t, p, text(maybe))
	mem = mem.CrashProcess()
	wantTexts(t, mustPartition(t, mustOpen(t, config(disk.Always, mem)), eventlog.Retention{}), "before", maybe)
	for seed := range uint64(40) {
		after := mem.CutPower(newRand(seed))
		wantTexts(t, mustPartition(t, mustOpen(t, config(disk.Always, after)), eventlog.Retention{}), "before", maybe)
	}
}
