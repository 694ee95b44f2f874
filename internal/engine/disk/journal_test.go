package disk_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/engine/disk"
	"github.com/eventyard/eventyard/internal/eventlog"
	"github.com/eventyard/eventyard/internal/vfs"
)

// manyPartitions appends from two writers to each of 16 partitions until it fails or is
// done, and gives what was acknowledged, by partition and number.
func manyPartitions(t *testing.T, e *disk.Engine, each int) (acked [16]map[eventlog.Sequence]string) {
	var wg sync.WaitGroup
	for n := range acked {
		acked[n] = map[eventlog.Sequence]string{}
		var mu sync.Mutex
		p, err := e.Partition(eventlog.PartitionID{Log: "many-1", Number: n}, eventlog.Retention{})
		if err != nil {
			t.Fatal(err)
		}
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
		p, err := e.Partition(eventlog.PartitionID{Log: "many-1", Number: n}, eventlog.Retention{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := readFrom(t, p, eventlog.Earliest())
		if err != nil {
			t.Errorf("partition %d: %v", n, err)
		}
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
	faulty := vfs.NewFaulty(vfs.NewMem())
	cfg := disk.Journaling(config(disk.Always, faulty), 1<<20, true)
	e := mustOpen(t, cfg)
	manyPartitions(t, e, 1) // opens them
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
	submit := func(n int) {
		p, err := e.Partition(eventlog.PartitionID{Log: "many-1", Number: n}, eventlog.Retention{})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { mustAppend(t, p, "x") })
	}
	submit(0)
	<-held
	written := faulty.Count(vfs.OpWrite)
	for n := 1; n < 16; n++ {
		submit(n)
	}
	for faulty.Count(vfs.OpWrite) < written+15 { // until all have been written to their segments
	}
	close(release)
	wg.Wait()
	if n := faulty.Count(vfs.OpSync) - before; n > 4 {
		t.Errorf("16 partitions took %d syncs", n)
	}
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
	if _, err := eventlog.Append(t.Context(), p, text("in doubt")); !errors.Is(err, eventlog.ErrUncertain) {
		t.Errorf("got %v", err)
	}
	mustAppend(t, p, "three")
	wantTexts(t, p, "one", "two", "three")
}

// TestOddJournalFilesAreHarmless: what is in the journal's folder may be anything.
func TestOddJournalFilesAreHarmless(t *testing.T) {
	for name, content := range map[string][]byte{
		"empty": nil, "zeros": make([]byte, 500), "text": slices.Repeat([]byte("EYJ1 and more "), 50),
	} {
		mem := vfs.NewMem()
		if err := mem.MkdirAll("journal"); err != nil {
			t.Fatal(err)
		}
		f, err := mem.Create("journal/odd.jnl")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(content, 0); err != nil {
			t.Fatal(err)
		}
		p := mustPartition(t, mustOpen(t, config(disk.Always, mem)), eventlog.Retention{})
		mustAppend(t, p, name)
	}
}
