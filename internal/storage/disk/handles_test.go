package disk_test

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// watched counts the files that are open, by name, and the writes to each that were not synced.
type watched struct {
	mu       sync.Mutex
	open     map[string]int
	unsynced map[string]int
	wrote    map[string]int64 // the end of the newest write
	most     int              // segments open at once
	lost     []string
}

func watch(faulty *vfs.Faulty) *watched {
	w := &watched{open: map[string]int{}, unsynced: map[string]int{}, wrote: map[string]int64{}}
	faulty.Inject(func(op vfs.Op) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch op.Kind {
		case vfs.OpOpen, vfs.OpCreate:
			w.open[op.Name]++
			w.most = max(w.most, w.segments())
		case vfs.OpWrite:
			if len(bytes.Trim(op.Data, "\x00")) > 0 { // zeros ahead are for the next sync, whoever opens the file for it
				w.unsynced[op.Name]++
			}
			w.wrote[op.Name] = op.Offset + op.Bytes
		case vfs.OpTruncate:
			if op.Bytes == w.wrote[op.Name] { // a trailer, which need not be synced
				w.unsynced[op.Name]--
			}
		case vfs.OpSync:
			w.unsynced[op.Name] = 0
		case vfs.OpClose:
			if w.open[op.Name]--; w.open[op.Name] == 0 {
				delete(w.open, op.Name)
			}
			if w.unsynced[op.Name] > 0 {
				w.lost = append(w.lost, op.Name)
			}
		}
		return nil
	})
	return w
}

// segments are the open ones, with those that are being made.
func (w *watched) segments() (n int) {
	for name, count := range w.open {
		if path.Ext(name) == ".seg" || strings.HasPrefix(name, "spare/") {
			n += count
		}
	}
	return n
}

// R3: however many partitions are written and read, by however many at once, no more segments than
// allowed are open; each is synced before it is closed, as its mode promises; and nothing is lost.
func TestOpenSegmentsAreBounded(t *testing.T) {
	for _, mode := range []disk.SyncMode{disk.Always, disk.Interval} {
		for _, journal := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, journal %t", mode, journal), func(t *testing.T) {
				faulty := vfs.NewFaulty(vfs.NewMem())
				w := watch(faulty)
				cfg := config(mode, faulty)
				if cfg.NoJournal = !journal; journal {
					cfg = disk.Journaling(cfg, 64<<10, false)
				}
				cfg.OpenSegments = 5
				e := mustOpen(t, cfg)
				const partitions, rounds, writers = 60, 4, 6
				var wg sync.WaitGroup
				for writer := range writers {
					wg.Go(func() {
						for i := range partitions * rounds {
							p := numbered(t, e, (i*(writer+1)+writer)%partitions)
							mustAppend(t, p, fmt.Sprint(writer, i))
							testkit.Check(t, testkit.Err(readFrom(t, p, eventlog.Earliest())))
						}
					})
				}
				wg.Wait()
				w.mu.Lock()
				testkit.That(t, w.most <= 5+1, "%d segments were open at once", w.most) // and the reserve, once
				testkit.Equal(t, len(w.lost), 0, "segments that were closed with something unsynced")
				w.mu.Unlock()
				testkit.Must(t, e.Close())
				testkit.Equal(t, len(w.open), 0, "files left open")
				e = mustOpen(t, cfg)
				stored := 0
				for n := range partitions {
					texts := testkit.Value(readFrom(t, numbered(t, e, n), eventlog.Earliest()))(t)
					stored += len(texts)
				}
				testkit.Equal(t, stored, writers*rounds*partitions, "events stored")
			})
		}
	}
}

// R3: readers that wait at the end of a partition, or have stopped in its midst, hold no segment open.
func TestReadersHoldNoSegmentOpen(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	w := watch(faulty)
	e := mustOpen(t, config(disk.Always, faulty))
	var cursors []eventlog.Cursor
	for n := range 20 {
		p := numbered(t, e, n)
		fill(t, p, 0, 100) // several segments
		c := testkit.Value(p.Cursor(t.Context(), eventlog.Earliest()))(t)
		defer c.Close()
		testkit.Must(t, testkit.Err(c.TryNext(t.Context())))
		cursors = append(cursors, c)
	}
	testkit.That(t, w.segments() <= 2, "%d segments are open", w.segments())
	for _, c := range cursors {
		for at := 1; at < 100; at++ {
			run := testkit.Value(c.TryNext(t.Context()))(t)
			testkit.Equal(t, run.First, eventlog.Sequence(at), "then it reads")
		}
	}
	testkit.That(t, w.most <= 2+1, "%d segments were open at once", w.most)
}

// R3: who waits for a place gets that of a segment which was made meanwhile and is not used yet.
func TestASegmentThatWasMadeGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := vfs.NewFaulty(vfs.NewMem())
		cfg := config(disk.Always, faulty)
		cfg.OpenSegments = 1
		e := mustOpen(t, cfg)
		mustAppend(t, numbered(t, e, 1), "there")
		testkit.Must(t, e.Close())
		e = mustOpen(t, cfg)
		defer e.Close()
		made := make(chan struct{})
		faulty.Inject(func(op vfs.Op) error {
			if op.Kind == vfs.OpRename {
				<-made
			}
			return nil
		})
		var wg sync.WaitGroup
		wg.Go(func() { testkit.Check(t, testkit.Err(numbered(t, e, 0).Submit(t.Context(), text("new")))) })
		synctest.Wait() // it has the place, and makes its segment
		wg.Go(func() { wantTexts(t, numbered(t, e, 1), "there") })
		synctest.Wait() // it waits for the place
		close(made)
		wg.Wait()
	})
}
