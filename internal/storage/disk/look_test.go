package disk_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// changes counts the operations that change something on disk, or take a sync.
func changes(faulty *vfs.Faulty) (n int) {
	for _, kind := range []vfs.OpKind{
		vfs.OpCreate, vfs.OpRename, vfs.OpRemove, vfs.OpMkdirAll, vfs.OpSyncDir, vfs.OpWrite, vfs.OpSync, vfs.OpTruncate,
	} {
		n += faulty.Count(kind)
	}
	return n
}

// R3: two thousand partitions run with 64 open segments. Each has one file of one block. After a
// stop it is known what they hold, and they are read, without a sync or a change on disk; those that
// nobody has written have no file, and get none by being looked at.
func TestManyPartitionsAreKnownWithoutOpeningThem(t *testing.T) {
	const partitions = 2000
	mem := vfs.NewMem()
	faulty := vfs.NewFaulty(mem)
	w := watch(faulty)
	cfg := config(disk.Always, faulty)
	cfg.OpenSegments = 64
	e := mustOpen(t, cfg)
	for n := range partitions {
		mustAppend(t, numbered(t, e, n), fmt.Sprint("event of ", n))
	}
	testkit.Must(t, e.Close())
	for n := range partitions {
		files := testkit.Value(mem.List(fmt.Sprint("log/orders-1/", n)))(t)
		testkit.MustEqual(t, len(files), 1, "files of a partition")
		testkit.That(t, files[0].Bytes <= 4<<10, "%d bytes for one event", files[0].Bytes)
	}
	e = mustOpen(t, cfg)
	before := changes(faulty)
	for n := range 2 * partitions {
		p, want := numbered(t, e, n), 1
		if n >= partitions {
			want = 0
		}
		b := testkit.Value(p.Bounds(t.Context()))(t)
		testkit.MustEqual(t, fmt.Sprint(b.First, b.Next, b.LastTime.IsZero()), fmt.Sprint(0, want, want == 0), "partition %d", n)
		texts := testkit.Value(readFrom(t, p, eventlog.Earliest()))(t)
		testkit.MustEqual(t, len(texts), want, "events read")
		testkit.Must(t, p.Trim(t.Context(), 0))
	}
	testkit.Equal(t, changes(faulty)-before, 0, "changes on disk and syncs")
	for n := range partitions {
		mustAppend(t, numbered(t, e, n), "another")
	}
	wantTexts(t, numbered(t, e, 7), "event of 7", "another")
	testkit.That(t, w.most <= 64+1, "%d segments were open at once", w.most) // and the reserve, once
	testkit.Must(t, e.Close())
	testkit.Equal(t, len(w.open), 0, "files left open")
}

// R3, H3: a partition that was emptied keeps its numbers, and is known without opening it too.
func TestAnEmptiedPartitionIsKnownWithoutOpeningIt(t *testing.T) {
	faulty := vfs.NewFaulty(vfs.NewMem())
	cfg := config(disk.Always, faulty)
	e := mustOpen(t, cfg)
	fill(t, numbered(t, e, 0), 0, 3)
	testkit.Must(t, numbered(t, e, 0).Trim(t.Context(), 3))
	testkit.Must(t, e.Close())
	e = mustOpen(t, cfg)
	before := changes(faulty)
	b := testkit.Value(numbered(t, e, 0).Bounds(t.Context()))(t)
	testkit.Equal(t, fmt.Sprint(b.First, b.Next, b.LastTime.IsZero()), "3 3 false", "bounds")
	testkit.Equal(t, changes(faulty)-before, 0, "changes on disk and syncs")
	mustAppend(t, numbered(t, e, 0), "next")
	wantTexts(t, numbered(t, e, 0), "next")
}

// R3, K3: what form the newest batch has is known with the bounds: as it was appended, after a stop, a crash or power
// loss, and behind a segment that is full.
func TestTheFormOfTheNewestBatchIsKnownWithTheBounds(t *testing.T) {
	mem := vfs.NewMem()
	cfg := config(disk.Always, mem)
	e := mustOpen(t, cfg)
	want := func(form eventlog.Form, when string) {
		t.Helper()
		p := numbered(t, e, 0)
		b := testkit.Value(p.Bounds(t.Context()))(t)
		testkit.MustEqual(t, fmt.Sprint(b.FormKnown, b.Form), fmt.Sprint(true, form), when)
		testkit.MustEqual(t, fmt.Sprint(p.Peek().FormKnown, p.Peek().Form), fmt.Sprint(true, form), when)
	}
	testkit.Equal(t, testkit.Value(numbered(t, e, 0).Bounds(t.Context()))(t).FormKnown, false, "of an empty partition")
	for n := range 3 {
		for _, form := range []eventlog.Form{eventlog.FormTransaction, eventlog.FormControl, eventlog.FormKafka, eventlog.FormEvents} {
			frame := logtest.Opaque(1, "frame")
			frame.Form = form
			if form == eventlog.FormEvents {
				frame = text(fmt.Sprint("event ", n))
			}
			testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), numbered(t, e, 0), frame)))
			want(form, "as it was appended")
			mem = mem.CrashProcess()
			e = mustOpen(t, config(disk.Always, mem))
			want(form, "after a crash")
			mem = mem.CutPower(newRand(uint64(n)))
			e = mustOpen(t, config(disk.Always, mem))
			want(form, "after power loss")
			testkit.Must(t, e.Close())
			e = mustOpen(t, config(disk.Always, mem))
			want(form, "after a stop")
		}
	}
	before := len(segments(t, mem))
	for len(segments(t, mem)) == before {
		mustAppend(t, numbered(t, e, 0), strings.Repeat("x", 1000))
	}
	want(eventlog.FormEvents, "in another segment")
	testkit.Must(t, e.Close())
}

// What was left to the operating system to sync is synced before it is shown by a yard that promises
// more; after a crash the segment is read, and what it holds synced.
func TestWhatMayNotBeDurableIsSyncedBeforeItIsShown(t *testing.T) {
	for name, leave := range map[string]func(e *disk.Engine, mem *vfs.Mem) *vfs.Mem{
		"stopped": func(e *disk.Engine, mem *vfs.Mem) *vfs.Mem { testkit.Must(t, e.Close()); return mem },
		"crashed": func(_ *disk.Engine, mem *vfs.Mem) *vfs.Mem { return mem.CrashProcess() },
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			e := mustOpen(t, config(disk.OS, mem))
			fill(t, numbered(t, e, 0), 0, 3)
			mem = leave(e, mem)
			e = mustOpen(t, config(disk.Always, mem))
			b := testkit.Value(numbered(t, e, 0).Bounds(t.Context()))(t)
			testkit.Equal(t, b.Next, 3)
			after := mem.CutPower(newRand(1))
			texts := testkit.Value(readFrom(t, numbered(t, mustOpen(t, config(disk.Always, after)), 0), eventlog.Earliest()))(t)
			testkit.Equal(t, len(texts), 3, "events after power loss")
		})
	}
}

// R3, H3: a stop in sync mode OS leaves a trailer of which nobody knows whether what stands before it is
// on disk. After power loss the partition ends with the last event that is there; what is missing
// before that is said to be missing.
func TestAfterAStopWithoutASyncAPartitionEndsWhereItsEventsDo(t *testing.T) {
	short := 0
	for seed := range uint64(200) {
		mem := vfs.NewMem()
		e := mustOpen(t, config(disk.OS, mem))
		fill(t, numbered(t, e, 0), 0, 20)
		testkit.Must(t, e.Close())
		p := numbered(t, mustOpen(t, config(disk.OS, mem.CutPower(newRand(seed)))), 0)
		end := testkit.Value(p.Bounds(t.Context()))(t).Next
		if end < 20 {
			short++
		}
		for at := eventlog.Sequence(0); at < end; {
			texts, err := readFrom(t, p, eventlog.At(at))
			var lost *eventlog.CorruptError
			switch at += eventlog.Sequence(len(texts)); {
			case err == nil:
				testkit.MustEqual(t, at, end, "seed %d: the end", seed)
			case errors.As(err, &lost):
				testkit.That(t, lost.First == at && lost.Next < end, "seed %d: nothing follows what is lost, though the end is %d: %v", seed, end, err)
				at = lost.Next
			default:
				testkit.Must(t, err, "seed %d", seed)
			}
		}
		mustAppend(t, p, "goes on")
	}
	testkit.That(t, short > 0, "no power loss cost the last event")
}
