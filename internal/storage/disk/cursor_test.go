package disk_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H4
func TestLookingForATimeEndsWhenTheEngineCloses(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	cfg := config(disk.Always, faulty)
	e := mustOpen(t, cfg)
	fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 100)
	e.Close()
	e = mustOpen(t, cfg)
	p := mustPartition(t, e, eventlog.Retention{})
	testkit.Must(t, testkit.Err(p.Bounds(t.Context())))
	closed := make(chan error, 1)
	var once sync.Once
	faulty.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpOpen { // by the search, which has seen a partition in use
			once.Do(func() {
				go func() { closed <- e.Close() }()
				for testkit.Err(p.Bounds(t.Context())) == nil { // until it has ended
					runtime.Gosched()
				}
			})
		}
		return nil
	})
	c, err := p.Cursor(t.Context(), eventlog.Since(time.Time{}))
	if err == nil { // it was found in time
		_, err = c.TryNext(t.Context())
	}
	testkit.ErrorIs(t, err, eventlog.ErrClosed)
	testkit.Check(t, <-closed)
}

// H4
func TestADamagedSegmentDoesNotCloseTheSearchForATime(t *testing.T) {
	mem := vfs.NewMem()
	cfg := config(disk.Always, mem)
	e := mustOpen(t, cfg)
	fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 300)
	e.Close()
	names := segments(t, mem)
	ruin(t, mem, names[(len(names)-1)/2])
	p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
	c := testkit.Value(p.Cursor(t.Context(), eventlog.Since(time.Now().Add(time.Hour))))(t)
	if c.At() != 300 {
		t.Errorf("in an hour begins with %d, want 300", c.At())
	}
}

// TestACursorAtTheEndHoldsNoMemory: there may be thousands of them. // H4
func TestACursorAtTheEndHoldsNoMemory(t *testing.T) {
	for name, size := range map[string]int{"a small batch": 1000, "a large batch": eventlog.MaxBatchBytes - 8} {
		t.Run(name, func(t *testing.T) {
			p := mustPartition(t, mustOpen(t, config(disk.Always, vfs.NewMem())), eventlog.Retention{})
			mustAppend(t, p, strings.Repeat("x", size))
			c := testkit.Value(p.Cursor(t.Context(), eventlog.Earliest()))(t)
			defer c.Close()
			memory := readOne(t, c)
			if run, err := c.TryNext(t.Context()); err != nil || len(run.Events) != 0 {
				t.Fatalf("%+v, %v, want the end", run, err)
			}
			for range 4 { // what lies in a pool takes two collections to go
				runtime.GC()
			}
			if memory.Value() != nil {
				t.Error("what was read is still in memory")
			}
			runtime.KeepAlive(c)
		})
	}
}

// readOne reads a run and points at it weakly.
func readOne(t *testing.T, c eventlog.Cursor) weak.Pointer[byte] {
	t.Helper()
	run, err := c.TryNext(t.Context())
	if err != nil || len(run.Events) != 1 {
		t.Fatalf("%d events, %v", len(run.Events), err)
	}
	return weak.Make(&run.Events[0].Message[0])
}
