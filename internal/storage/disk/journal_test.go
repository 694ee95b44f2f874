package disk_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// manyPartitions appends from two writers to each of 16 partitions until it fails or is
// done, and gives what was acknowledged, by partition and number.
func manyPartitions(t *testing.T, e *disk.Engine, each int) (acked [16]map[eventlog.Sequence]string) {
	var wg sync.WaitGroup
	for n := range acked {
		acked[n] = map[eventlog.Sequence]string{}
		var mu sync.Mutex
		p, err := e.Partition(eventlog.PartitionID{Log: "many-1", Number: n})
		testkit.Must(t, err)
		for w := range 2 {
			wg.Go(func() {
				for i := range each {
					body := fmt.Sprintf("%d/%d/%d", n, w, i)
					done, err := eventlog.Append(t.Context(), p, text(body))
					if err != nil {
						return
					}
					mu.Lock()
					acked[n][done.First] = body
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	return acked
}

// wantAcked reads all partitions and misses nothing.
func wantAcked(t *testing.T, e *disk.Engine, acked [16]map[eventlog.Sequence]string) {
	t.Helper()
	for n := range acked {
		p, err := e.Partition(eventlog.PartitionID{Log: "many-1", Number: n})
		testkit.Must(t, err)
		got, err := readFrom(t, p, eventlog.Earliest())
		testkit.Check(t, err, "partition %d", n)
		for seq, want := range acked[n] {
			if int(seq) >= len(got) || got[seq] != want {
				t.Errorf("partition %d: event %d was acknowledged as %q and is gone", n, seq, want)
			}
		}
	}
}

// H2, H3
func TestSharedSyncsSurvivePowerLoss(t *testing.T) {
	for seed := range uint64(40) {
		mem := vfs.NewMem()
		mem.SetRand(newRand(seed))
		cfg := disk.Journaling(config(disk.Always, mem), 8<<10, false)
		e := mustOpen(t, cfg)
		mem.FailAfter(int(300 + newRand(seed).IntN(2000)))
		acked := manyPartitions(t, e, 40)
		after := mem.CutPower(newRand(seed))
		wantAcked(t, mustOpen(t, config(disk.Always, after)), acked)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestPartitionsShareSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := vfs.NewFaulty(vfs.NewMem())
		cfg := disk.Journaling(config(disk.Always, faulty), 1<<20, true)
		cfg.OpenSegments = 100 // all of them: to close one takes a sync
		e := mustOpen(t, cfg)
		manyPartitions(t, e, 1) // opens them
		before := faulty.Count(vfs.OpSync)
		release := make(chan struct{})
		var once sync.Once
		faulty.Inject(func(op vfs.Op) error {
			if op.Kind == vfs.OpSync {
				once.Do(func() { <-release })
			}
			return nil
		})
		var wg sync.WaitGroup
		for n := range 16 {
			p := testkit.Value(e.Partition(eventlog.PartitionID{Log: "many-1", Number: n}))(t)
			wg.Go(func() { mustAppend(t, p, "x") })
			synctest.Wait() // it waits for its sync, or for that of those before it
		}
		close(release)
		wg.Wait()
		if n := faulty.Count(vfs.OpSync) - before; n != 2 {
			t.Errorf("16 partitions took %d syncs, want 2: the first one's, and one for all that came meanwhile", n)
		}
	})
}

func TestACleanStopLeavesNoJournal(t *testing.T) {
	mem := vfs.NewMem()
	cfg := disk.Journaling(config(disk.Always, mem), 8<<10, false)
	e := mustOpen(t, cfg)
	acked := manyPartitions(t, e, 20)
	e.Close()
	if entries, err := mem.List("journal"); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	wantAcked(t, mustOpen(t, config(disk.Always, mem.CutPower(newRand(1)))), acked)
}

func TestAFailedJournalSyncFencesAndEveryoneSyncsForItself(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	cfg := disk.Journaling(config(disk.Always, faulty), 1<<20, true)
	p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
	mustAppend(t, p, "one")
	mustAppend(t, p, "two")
	var once sync.Once
	faulty.Inject(func(op vfs.Op) (err error) {
		if op.Kind == vfs.OpSync {
			once.Do(func() { err = errors.New("no") })
		}
		return err
	})
	testkit.ErrorIs(t, testkit.Err(eventlog.Append(t.Context(), p, text("in doubt"))), eventlog.ErrUncertain)
	mustAppend(t, p, "three")
	wantTexts(t, p, "one", "two", "three")
}

// TestOddJournalFilesAreHarmless: what is in the journal's folder may be anything.
func TestOddJournalFilesAreHarmless(t *testing.T) {
	for name, content := range map[string][]byte{
		"empty": nil, "zeros": make([]byte, 500), "text": slices.Repeat([]byte("EYJ1 and more "), 50),
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			testkit.Must(t, mem.MkdirAll("journal"))
			f := testkit.Value(mem.Create("journal/ABCDEFGHIJKLMNOPQRSTUVWXYZ.jnl"))(t)
			testkit.Must(t, testkit.Err(f.WriteAt(content, 0)))
			p := mustPartition(t, mustOpen(t, config(disk.Always, mem)), eventlog.Retention{})
			mustAppend(t, p, name)
		})
	}
}

// TestAJournalThatCannotBeDoneAgainIsKept: the storage fails during the start; the next one
// finds all that was acknowledged. // H2
func TestAJournalThatCannotBeDoneAgainIsKept(t *testing.T) {
	body := strings.Repeat("acknowledged", 50)
	mem := vfs.NewMem()
	p := mustPartition(t, mustOpen(t, disk.Journaling(config(disk.Always, mem), 64<<10, true)), eventlog.Retention{})
	want := slices.Repeat([]string{body}, 5)
	for range want {
		mustAppend(t, p, body)
	}
	for name, fail := range map[string]func(*vfs.Mem, *vfs.Faulty){
		"segments cannot be read":   func(_ *vfs.Mem, f *vfs.Faulty) { failAll(f, syscall.EIO, vfs.OpRead) },
		"segments cannot be opened": func(_ *vfs.Mem, f *vfs.Faulty) { failAll(f, syscall.EMFILE, vfs.OpOpen) },
		"segments cannot be synced": func(_ *vfs.Mem, f *vfs.Faulty) { failAll(f, syscall.EIO, vfs.OpSync) },
		"the disk is full":          func(m *vfs.Mem, _ *vfs.Faulty) { m.SetCapacity(1) },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				after := mem.CutPower(newRand(seed))
				faulty := vfs.NewFaulty(after)
				fail(after, faulty)
				if e, err := disk.Open(config(disk.Always, faulty)); err == nil {
					_, _ = mustPartition(t, e, eventlog.Retention{}).Bounds(t.Context())
					e.Close()
				}
				after.SetCapacity(0)
				again := after.CutPower(newRand(seed))
				wantTexts(t, mustPartition(t, mustOpen(t, config(disk.Always, again)), eventlog.Retention{}), want...)
			}
		})
	}
}

// TestTheJournalOutlivesAFailedSyncOfASegment: what it holds of that segment may be nowhere
// else, though a later sync of the segment reports success. // H2
func TestTheJournalOutlivesAFailedSyncOfASegment(t *testing.T) {
	mem := vfs.NewMem()
	faulty := vfs.NewFaulty(mem)
	cfg := disk.Journaling(config(disk.Always, faulty), 4<<10, true)
	cfg.SegmentBytes = 1 << 20
	p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
	fill(t, p, 0, 3)
	failNext(faulty, vfs.OpSync, syscall.EIO)
	wantDoubt(t, p, text(strings.Repeat("x", 100<<10))) // too large for the journal
	faulty.Inject(nil)
	fill(t, p, 3, 30) // the journal's files are full, again and again
	for seed := range uint64(30) {
		got, err := readFrom(t, mustPartition(t, mustOpen(t, config(disk.Always, mem.CutPower(newRand(seed)))), eventlog.Retention{}), eventlog.Earliest())
		if err != nil || len(got) != 30 {
			t.Fatalf("seed %d: %d of 30 events, %v", seed, len(got), err)
		}
	}
}

// TestAFullJournalIsUsedAgain also where nobody came while its last group was written.
func TestAFullJournalIsUsedAgain(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	p := mustPartition(t, mustOpen(t, disk.Journaling(config(disk.Always, faulty), 4<<10, true)), eventlog.Retention{})
	fill(t, p, 0, 20)
	shared := 0
	faulty.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync && strings.HasPrefix(op.Name, "journal/") {
			shared++
		}
		return nil
	})
	fill(t, p, 20, 30)
	if shared < 5 {
		t.Errorf("%d of 10 appends went by way of the journal", shared)
	}
}

// R3: a stop syncs what it owes to many partitions together, whoever owes it.
func TestAStopSyncsManySegmentsAtOnce(t *testing.T) {
	for _, mode := range []disk.SyncMode{disk.Always, disk.Interval} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const partitions = 128
				mem := vfs.NewMem()
				faulty := vfs.NewFaulty(mem)
				cfg := disk.Journaling(config(mode, faulty), 1<<20, false)
				cfg.OpenSegments = 2 * partitions // all of them: to close one takes a sync
				e := mustOpen(t, cfg)
				for range 2 { // the first of all has the journal made
					for n := range partitions {
						mustAppend(t, numbered(t, e, n), "x")
					}
					synctest.Wait()
				}
				before, began := faulty.Count(vfs.OpSync), time.Now()
				faulty.Inject(func(op vfs.Op) error {
					if op.Kind == vfs.OpSync {
						time.Sleep(time.Second)
					}
					return nil
				})
				testkit.Must(t, e.Close())
				testkit.Equal(t, faulty.Count(vfs.OpSync)-before, partitions, "syncs")
				testkit.Equal(t, time.Since(began), partitions/32*time.Second, "with 32 at once they take")
				e = mustOpen(t, config(mode, mem.CutPower(newRand(1))))
				for n := range partitions {
					wantTexts(t, numbered(t, e, n), "x", "x")
				}
			})
		})
	}
}
