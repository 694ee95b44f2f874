package disk_test

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestAClosedEngineRemovesNothing: the folder may be another's by now. // H1
func TestAClosedEngineRemovesNothing(t *testing.T) {
	mem := vfs.NewMem()
	closed := mustOpen(t, config(disk.Always, mem))
	closed.Close()
	e := mustOpen(t, config(disk.Always, mem))
	mustAppend(t, mustPartition(t, e, eventlog.Retention{}), "acknowledged")
	testkit.ErrorIs(t, closed.Remove(t.Context(), first.Log), eventlog.ErrClosed)
	e.Close()
	wantTexts(t, mustPartition(t, mustOpen(t, config(disk.Always, mem)), eventlog.Retention{}), "acknowledged")
}

// TestNobodyGetsAHandleOfALogThatIsBeingRemoved: its files are about to go. // H1
func TestNobodyGetsAHandleOfALogThatIsBeingRemoved(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	e := mustOpen(t, config(disk.Always, faulty))
	mustAppend(t, mustPartition(t, e, eventlog.Retention{}), "a")
	asked := false
	faulty.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpRename && strings.HasPrefix(op.To, "trash") {
			asked = true
			testkit.ErrorIs(t, testkit.Err(e.Partition(first)), eventlog.ErrRemoved,
				"a handle while the log goes")
		}
		return nil
	})
	testkit.Must(t, e.Remove(t.Context(), first.Log))
	if !asked {
		t.Error("the log was not moved aside")
	}
	testkit.ErrorIs(t, testkit.Err(e.Partition(first)), eventlog.ErrRemoved,
		"a handle afterwards")
}

// TestARemovedLogNeverComesBack, whatever power loss makes of its folder. // H1
func TestARemovedLogNeverComesBack(t *testing.T) {
	for _, mode := range []disk.SyncMode{disk.Always, disk.OS} {
		mem := vfs.NewMem()
		e := mustOpen(t, disk.Journaling(config(mode, mem), 64<<10, true))
		fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 50)
		testkit.Must(t, e.Remove(t.Context(), first.Log))
		for seed := range uint64(30) {
			wantTexts(t, mustPartition(t, mustOpen(t, config(mode, mem.CutPower(newRand(seed)))), eventlog.Retention{}))
		}
	}
}

// TestAnInterruptedRemovalIsDoneAgain after any of its operations. // H1
func TestAnInterruptedRemovalIsDoneAgain(t *testing.T) {
	for ops := range 12 {
		mem := vfs.NewMem()
		e := mustOpen(t, config(disk.Always, mem))
		fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 50)
		mem.FailAfter(ops)
		err := e.Remove(t.Context(), first.Log)
		after := mem.CutPower(newRand(uint64(ops)))
		e = mustOpen(t, config(disk.Always, after))
		got, readErr := readFrom(t, mustPartition(t, e, eventlog.Retention{}), eventlog.Earliest())
		if readErr != nil || len(got) != 50 && len(got) != 0 || err == nil && len(got) != 0 {
			t.Errorf("after %d operations (%v): %d events, %v, want all or none", ops, err, len(got), readErr)
		}
		testkit.Check(t, e.Remove(t.Context(), first.Log))
		e.Close()
		wantTexts(t, mustPartition(t, mustOpen(t, config(disk.Always, after)), eventlog.Retention{}))
	}
}
