package disk_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// TestASubmitterThatWaitsForRoomIsWokenByAFailure: what it waited for is refused. // H2
func TestASubmitterThatWaitsForRoomIsWokenByAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := vfs.NewFaulty(vfs.NewMem())
		p := mustPartition(t, mustOpen(t, config(disk.Always, faulty)), eventlog.Retention{})
		mustAppend(t, p, "before")
		held, release := make(chan struct{}), make(chan struct{})
		var once sync.Once
		faulty.Inject(func(op vfs.Op) (err error) {
			if op.Kind == vfs.OpSync {
				once.Do(func() { close(held); <-release; err = syscall.EIO })
			}
			return err
		})
		go eventlog.Append(t.Context(), p, text("in doubt"))
		<-held
		huge := text(strings.Repeat("x", 1<<20))
		for range 3 {
			testkit.Must(t, testkit.Err(p.Submit(t.Context(), huge)))
		}
		done := make(chan error)
		go func() { _, err := eventlog.Append(t.Context(), p, huge); done <- err }()
		synctest.Wait() // it waits for room
		close(release)
		testkit.Check(t, <-done)
	})
}

// TestSteadyLoadHoldsNobodyUp: appends come without a pause and each sync takes 10 ms, but
// who needs the partition for something else has its turn. // H4
func TestSteadyLoadHoldsNobodyUp(t *testing.T) {
	for name, do := range map[string]func(*disk.Engine, eventlog.Partition){
		"trim":  func(_ *disk.Engine, p eventlog.Partition) { _ = p.Trim(context.Background(), 1) },
		"close": func(e *disk.Engine, _ eventlog.Partition) { e.Close() },
		"retention": func(e *disk.Engine, _ eventlog.Partition) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			_ = e.Run(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faulty := vfs.NewFaulty(vfs.NewMem())
				e := mustOpen(t, config(disk.Always, faulty))
				p := mustPartition(t, e, eventlog.Retention{Bytes: 1 << 20})
				mustAppend(t, p, "before")
				faulty.Inject(func(op vfs.Op) error {
					if op.Kind == vfs.OpSync {
						time.Sleep(10 * time.Millisecond)
					}
					return nil
				})
				stop := steadyLoad(p)
				time.Sleep(100 * time.Millisecond)
				began := time.Now()
				do(e, p)
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %v", took)
				}
				stop()
			})
		})
	}
}

// steadyLoad has 16 clients that append each millisecond, whatever becomes of it.
func steadyLoad(p eventlog.Partition) (stop func()) {
	var stopped atomic.Bool
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for !stopped.Load() {
				r, err := p.Submit(context.Background(), text("x"))
				if err != nil {
					return
				}
				wg.Go(func() { _, _ = r.Wait(context.Background()) })
				time.Sleep(time.Millisecond)
			}
		})
	}
	time.AfterFunc(time.Minute, func() { stopped.Store(true) })
	return func() { stopped.Store(true); wg.Wait() }
}

// TestWhoCommitsItsOwnBatchKnowsTheOutcome, whatever its context says. // H2
func TestWhoCommitsItsOwnBatchKnowsTheOutcome(t *testing.T) {
	p := mustPartition(t, mustOpen(t, config(disk.Always, vfs.NewMem())), eventlog.Retention{})
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		r := testkit.Value(p.Submit(ctx, text("x")))(t)
		cancel()
		testkit.Must(t, testkit.Err(r.Wait(ctx)))
	}
}

// TestASlowDiskOfOnePartitionHoldsUpNoOther, which would show as a test that never ends.
func TestASlowDiskOfOnePartitionHoldsUpNoOther(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	e := mustOpen(t, config(disk.Always, faulty))
	p := mustPartition(t, e, eventlog.Retention{})
	held, release := make(chan struct{}), make(chan struct{})
	faulty.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpList && strings.HasSuffix(op.Name, "orders-1/0") {
			close(held)
			<-release
		}
		return nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = p.Bounds(t.Context()) })
	<-held
	for range 4 { // the same handle again, and a changed retention
		wg.Go(func() {
			_ = e.Provide(t.Context(), first.Log, eventlog.Shape{Partitions: 64, Retention: eventlog.Retention{Bytes: 1}})
			_, _ = e.Partition(first)
		})
	}
	for n := range 100 {
		runtime.Gosched()
		other := testkit.Value(e.Partition(eventlog.PartitionID{Log: "others-1", Number: n}))(t)
		mustAppend(t, other, "x")
	}
	close(release)
	wg.Wait()
}
