package disk_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

var first = eventlog.PartitionID{Log: "orders-1", Number: 0}

func mustPartition(t *testing.T, e *disk.Engine, r eventlog.Retention) eventlog.Partition {
	t.Helper()
	testkit.Must(t, e.Provide(t.Context(), first.Log, eventlog.Shape{Partitions: 64, Retention: r}))
	p := testkit.Value(e.Partition(first))(t)
	return p
}

func text(s string) eventlog.Batch {
	return eventlog.Batch{Events: []eventlog.Event{{Message: []byte(s)}}}
}

func mustAppend(t *testing.T, p eventlog.Partition, s string) {
	t.Helper()
	testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), p, text(s))))
}

// fill appends numbered events of about 1 KiB.
func fill(t *testing.T, p eventlog.Partition, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		mustAppend(t, p, fmt.Sprintf("%04d%s", i, strings.Repeat("x", 1000)))
	}
}

// readFrom gives the texts from a position to the end, one of a frame, and the error that ended it.
func readFrom(t *testing.T, p eventlog.Partition, at eventlog.Position) (texts []string, err error) {
	t.Helper()
	c, err := p.Cursor(t.Context(), at)
	testkit.Must(t, err)
	defer c.Close()
	for {
		run, err := c.TryNext(t.Context())
		if err != nil || run.Len() == 0 {
			return texts, err
		}
		for _, e := range run.Events {
			texts = append(texts, string(e.Message))
		}
		if run.Form != eventlog.FormEvents {
			texts = append(texts, testkit.Value(logtest.OpaqueText(run))(t))
		}
	}
}

func wantTexts(t *testing.T, p eventlog.Partition, want ...string) {
	t.Helper()
	if got, err := readFrom(t, p, eventlog.Earliest()); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestAFullDiskRefusesWritesAndRecoversByItself(t *testing.T) {
	mem := vfs.NewMem()
	cfg := config(disk.Always, mem)
	p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
	mustAppend(t, p, "before")
	mem.SetCapacity(1)
	for range 3 {
		_, err := eventlog.Append(t.Context(), p, text(strings.Repeat("refused", 20000)))
		if !errors.Is(err, eventlog.ErrNoSpace) || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("got %v, want ErrNoSpace with its cause", err)
		}
	}
	wantTexts(t, p, "before")
	mem.SetCapacity(0)
	mustAppend(t, p, "after")
	wantTexts(t, p, "before", "after")
	wantTexts(t, mustPartition(t, mustOpen(t, config(disk.Always, mem.CrashProcess())), eventlog.Retention{}), "before", "after")
}

func TestAFailedSyncFencesAndIsNeverTriedAgain(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	p := mustPartition(t, mustOpen(t, config(disk.Always, faulty)), eventlog.Retention{})
	mustAppend(t, p, "before")
	var failed string
	faulty.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && failed == "" {
			failed = op.Name
			return syscall.EIO
		}
		if op.Kind == vfs.OpSync && op.Name == failed {
			t.Errorf("%s was synced again", op.Name)
		}
		return nil
	})
	if _, err := eventlog.Append(t.Context(), p, text("in doubt")); !errors.Is(err, eventlog.ErrUncertain) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v, want ErrUncertain with its cause", err)
	}
	wantTexts(t, p, "before")
	mustAppend(t, p, "after")
	wantTexts(t, p, "before", "after")
	b, err := p.Bounds(t.Context())
	if err != nil || b.Next != 2 {
		t.Errorf("the number of what was never stored is given again: %+v, %v", b, err)
	}
}

func TestWhatGathersBehindAFailedSyncIsRefused(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	p := mustPartition(t, mustOpen(t, config(disk.Always, faulty)), eventlog.Retention{})
	mustAppend(t, p, "before")
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	faulty.Inject(func(op vfs.Op) error {
		if op.Kind != vfs.OpSync {
			return nil
		}
		var err error
		once.Do(func() { close(held); <-release; err = syscall.EIO })
		return err
	})
	result := make(chan error)
	go func() { _, err := eventlog.Append(t.Context(), p, text("in doubt")); result <- err }()
	<-held
	behind, err := p.Submit(t.Context(), text("behind"))
	testkit.Must(t, err)
	close(release)
	testkit.ErrorIs(t, <-result, eventlog.ErrUncertain, "the group under the sync")
	testkit.ErrorIs(t, testkit.Err(behind.Wait(t.Context())), eventlog.ErrFenced, "what gathered behind it")
	mustAppend(t, p, "after")
	wantTexts(t, p, "before", "after")
}

func TestAppendsThatArriveDuringASyncShareTheNext(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	p := mustPartition(t, mustOpen(t, config(disk.Always, faulty)), eventlog.Retention{})
	mustAppend(t, p, "before")
	before := faulty.Count(vfs.OpSync)
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	faulty.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			once.Do(func() { close(held); <-release })
		}
		return nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { mustAppend(t, p, "first") })
	<-held
	for i := range 50 {
		r := testkit.Value(p.Submit(t.Context(), text(fmt.Sprint(i))))(t)
		wg.Go(func() {
			testkit.Check(t, testkit.Err(r.Wait(t.Context())))
		})
	}
	close(release)
	wg.Wait()
	if n := faulty.Count(vfs.OpSync) - before; n != 2 {
		t.Errorf("51 appends took %d syncs, want 2", n)
	}
}

func TestReadersSeeNothingBeforeItIsDurable(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	p := mustPartition(t, mustOpen(t, config(disk.Always, faulty)), eventlog.Retention{})
	mustAppend(t, p, "before")
	faulty.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			wantTexts(t, p, "before")
		}
		return nil
	})
	mustAppend(t, p, "after")
	faulty.Inject(nil)
	wantTexts(t, p, "before", "after")
}

func TestSubmittersWaitWhileTooMuchIsUnderWay(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	p := mustPartition(t, mustOpen(t, config(disk.Always, faulty)), eventlog.Retention{})
	mustAppend(t, p, "before")
	release := make(chan struct{})
	faulty.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			<-release
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	var receipts []eventlog.Receipt
	var err error
	for err == nil && len(receipts) < 100 {
		var r eventlog.Receipt
		if r, err = p.Submit(ctx, text(strings.Repeat("x", 1<<20))); err == nil {
			receipts = append(receipts, r)
		}
	}
	testkit.ErrorIs(t, err, context.Canceled, "after %d MiB", len(receipts))
	close(release)
	for _, r := range receipts {
		testkit.Check(t, testkit.Err(r.Wait(t.Context())))
	}
}

func TestBitRotCostsOnlyWhatItTouched(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		t.Run(fmt.Sprintf("sealed %v", sealed), func(t *testing.T) {
			mem := vfs.NewMem()
			cfg := config(disk.Always, mem)
			e := mustOpen(t, cfg)
			p := mustPartition(t, e, eventlog.Retention{})
			fill(t, p, 0, 20)
			if sealed {
				fill(t, p, 20, 60)
			}
			e.Close()
			name := path.Join("log", "orders-1", "0", fmt.Sprintf("%020d.seg", 0))
			testkit.Must(t, mem.Corrupt(name, 7000, 0x10))
			report, err := disk.Check(t.Context(), cfg, nil)
			if err != nil || len(report.Problems) != 1 {
				t.Errorf("check found %q, %v, want the one problem", report.Problems, err)
			}
			p = mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
			got, err := readFrom(t, p, eventlog.Earliest())
			var corrupt *eventlog.CorruptError
			if !errors.As(err, &corrupt) || corrupt.First != eventlog.Sequence(len(got)) || !strings.Contains(corrupt.Where, name) {
				t.Fatalf("after %d events: %v", len(got), err)
			}
			if lost := corrupt.Next - corrupt.First; lost != 1 {
				t.Errorf("%d events are lost, want 1", lost)
			}
			all := 20
			if sealed {
				all = 60
			}
			behind, err := readFrom(t, p, eventlog.At(corrupt.Next))
			if err != nil || len(got)+1+len(behind) != all {
				t.Errorf("behind the damage: %d events, %v", len(behind), err)
			}
			fill(t, p, all, all+1)
		})
	}
}

func TestADamagedHeaderIsRebuiltFromTheFirstBatch(t *testing.T) {
	mem := vfs.NewMem()
	cfg := config(disk.Always, mem)
	e := mustOpen(t, cfg)
	fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 10)
	e.Close()
	testkit.Must(t, mem.Corrupt("log/orders-1/0/00000000000000000000.seg", 20, 0xff))
	got, err := readFrom(t, mustPartition(t, mustOpen(t, cfg), eventlog.Retention{}), eventlog.Earliest())
	if err != nil || len(got) != 10 {
		t.Errorf("%d events, %v", len(got), err)
	}
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	mem := vfs.NewMem()
	cfg := config(disk.Always, mem)
	e := mustOpen(t, cfg)
	fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 3)
	e.Close()
	for _, name := range []string{"log/orders-1/0/notes.txt", "log/orders-1/0/1.seg", "log/README"} {
		f, err := mem.Create(name)
		testkit.Must(t, err)
		f.Close()
	}
	report, err := disk.Check(t.Context(), cfg, nil)
	if err != nil || len(report.Foreign) != 3 || len(report.Problems) != 0 || report.Events != 3 {
		t.Errorf("check: %+v, %v", report, err)
	}
	p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
	fill(t, p, 3, 5)
	if got, err := readFrom(t, p, eventlog.Earliest()); err != nil || len(got) != 5 {
		t.Errorf("%d events, %v", len(got), err)
	}
	testkit.Check(t, testkit.Err(mem.Open("log/orders-1/0/notes.txt")))
}

func TestTwoEnginesCannotShareAFolder(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.OS(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			cfg := config(disk.Always, fs)
			e := mustOpen(t, cfg)
			testkit.ErrorIs(t, testkit.Err(disk.Open(cfg)), vfs.ErrLocked, "a second engine")
			testkit.ErrorIs(t, testkit.Err(disk.Check(t.Context(), cfg, nil)), vfs.ErrLocked, "a check")
			e.Close()
			mustOpen(t, cfg)
		})
	}
}

func TestHandlesCostNothingUntilUsed(t *testing.T) {
	mem := vfs.NewMem()
	e := mustOpen(t, config(disk.Always, mem))
	before := mem.Ops()
	for i := range 10_000 {
		testkit.Must(t, testkit.Err(e.Partition(eventlog.PartitionID{Log: "many-1", Number: i})))
	}
	if n := mem.Ops() - before; n != 0 {
		t.Errorf("10,000 handles took %d operations on disk", n)
	}
}

func TestOpeningReadsOnlyTheNewestSegment(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	cfg := config(disk.Always, faulty)
	e := mustOpen(t, cfg)
	fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 400)
	e.Close()
	before := faulty.Count(vfs.OpOpen)
	p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
	if b, err := p.Bounds(t.Context()); err != nil || b.Next != 400 {
		t.Fatalf("%+v, %v", b, err)
	}
	fill(t, p, 400, 401)
	if n := faulty.Count(vfs.OpOpen) - before; n != 1 {
		t.Errorf("%d segments were opened, want 1", n)
	}
}

func TestRemovedSegmentsAreUsedAgain(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	e := mustOpen(t, config(disk.Always, faulty))
	p := mustPartition(t, e, eventlog.Retention{Bytes: 512 << 10})
	for round := range 20 {
		fill(t, p, round*100, round*100+100)
		testkit.Must(t, p.Trim(t.Context(), 0))
	}
	created := faulty.Count(vfs.OpCreate)
	for round := 20; round < 40; round++ {
		fill(t, p, round*100, round*100+100)
		testkit.Must(t, p.Trim(t.Context(), 0))
	}
	if n := faulty.Count(vfs.OpCreate) - created; n > 5 {
		t.Errorf("%d files were created though removed ones were at hand", n)
	}
	got, err := readFrom(t, p, eventlog.Earliest())
	if err != nil || len(got) == 0 || got[len(got)-1][:4] != "3999" {
		t.Errorf("%d events, %v", len(got), err)
	}
}

// H4
func TestRetentionByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(disk.Always, vfs.NewMem())
		cfg.RetentionInterval = 10 * time.Second
		e := mustOpen(t, cfg)
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- e.Run(ctx) }()
		p := mustPartition(t, e, eventlog.Retention{Age: time.Hour})
		fill(t, p, 0, 50)
		time.Sleep(40 * time.Minute)
		fill(t, p, 50, 100)
		time.Sleep(21 * time.Minute)
		b, err := p.Bounds(t.Context())
		if err != nil || b.First == 0 || b.First > 50 || b.Next != 100 {
			t.Errorf("after an hour: %+v, %v: the old have to go and the new to stay", b, err)
		}
		time.Sleep(time.Hour)
		b, err = p.Bounds(t.Context())
		if err != nil || !b.Empty() || b.Next != 100 || b.LastTime.IsZero() {
			t.Errorf("after two hours: %+v, %v: nothing is left but the numbers", b, err)
		}
		fill(t, p, 100, 101)
		if got, err := readFrom(t, p, eventlog.Earliest()); err != nil || len(got) != 1 {
			t.Errorf("%q, %v", got, err)
		}
		stop()
		testkit.Check(t, <-ran)
		e.Close()
	})
}

func TestIntervalSyncsInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		cfg := config(disk.Interval, mem)
		cfg.SyncInterval = time.Second
		e := mustOpen(t, cfg)
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- e.Run(ctx) }()
		p := mustPartition(t, e, eventlog.Retention{})
		fill(t, p, 0, 50)
		time.Sleep(2 * time.Second)
		stop()
		<-ran
		for seed := range uint64(20) {
			after := mem.CutPower(newRand(seed))
			got, err := readFrom(t, mustPartition(t, mustOpen(t, config(disk.Interval, after)), eventlog.Retention{}), eventlog.Earliest())
			if err != nil || len(got) != 50 {
				t.Fatalf("after power loss: %d events, %v, want those of before the last sync", len(got), err)
			}
		}
	})
}

func TestStartStopStorm(t *testing.T) {
	mem := vfs.NewMem()
	stored := 0
	for range 30 {
		e := mustOpen(t, config(disk.Always, mem))
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			testkit.Check(t, e.Run(ctx))
		})
		p := mustPartition(t, e, eventlog.Retention{})
		var mu sync.Mutex
		for range 4 {
			wg.Go(func() {
				for {
					_, err := eventlog.Append(t.Context(), p, text("x"))
					if errors.Is(err, eventlog.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if stored++; stored%20 == 0 {
						stop()
					}
					mu.Unlock()
				}
			})
		}
		<-ctx.Done()
		e.Close()
		wg.Wait()
		stop()
	}
	got, err := readFrom(t, mustPartition(t, mustOpen(t, config(disk.Always, mem)), eventlog.Retention{}), eventlog.Earliest())
	if err != nil || len(got) != stored {
		t.Errorf("%d events, %v, want the %d that were acknowledged", len(got), err, stored)
	}
}
