package disk_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// segments lists the first partition's segments, oldest first.
func segments(t *testing.T, fs vfs.FS) (names []string) {
	t.Helper()
	dir := path.Join("log", first.Log, "0")
	entries := testkit.Value(fs.List(dir))(t)
	for _, entry := range entries {
		names = append(names, path.Join(dir, entry.Name))
	}
	return names
}

// ruin makes a file's first sector useless.
func ruin(t *testing.T, mem *vfs.Mem, name string) {
	t.Helper()
	for i := range int64(512) {
		testkit.Must(t, mem.Corrupt(name, i, 0xff))
	}
}

// H3
func TestAFlippedBitAfterACleanStopCostsOneEventInEveryMode(t *testing.T) {
	for _, mode := range []disk.SyncMode{disk.Always, disk.Interval, disk.OS} {
		t.Run(mode.String(), func(t *testing.T) {
			mem := vfs.NewMem()
			cfg := config(mode, mem)
			cfg.SegmentBytes = 64 << 20
			e := mustOpen(t, cfg)
			fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 500)
			e.Close()
			testkit.Must(t, mem.Corrupt(segments(t, mem)[0], 200, 1))
			p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
			if b, err := p.Bounds(t.Context()); err != nil || b.Next != 500 {
				t.Errorf("bounds %+v, %v", b, err)
			}
			var corrupt *eventlog.CorruptError
			if _, err := readFrom(t, p, eventlog.Earliest()); !errors.As(err, &corrupt) || corrupt.First != 0 || corrupt.Next != 1 {
				t.Errorf("got %v, want event 0 alone to be lost", err)
			}
			if got, err := readFrom(t, p, eventlog.At(1)); err != nil || len(got) != 499 {
				t.Errorf("behind the damage: %d events, %v", len(got), err)
			}
		})
	}
}

// H3
func TestABadFirstSectorDoesNotCloseThePartition(t *testing.T) {
	mem := vfs.NewMem()
	cfg := config(disk.Always, mem)
	e := mustOpen(t, cfg)
	fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 100)
	e.Close()
	names := segments(t, mem)
	ruin(t, mem, names[len(names)-1])
	p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
	if b, err := p.Bounds(t.Context()); err != nil || b.Next != 100 {
		t.Errorf("bounds %+v, %v", b, err)
	}
	fill(t, p, 100, 101)
	got, err := readFrom(t, p, eventlog.Earliest())
	var corrupt *eventlog.CorruptError
	if !errors.As(err, &corrupt) || int(corrupt.First) != len(got) {
		t.Fatalf("after %d events: %v", len(got), err)
	}
	behind, err := readFrom(t, p, eventlog.At(corrupt.Next))
	if err != nil || len(got)+int(corrupt.Next-corrupt.First)+len(behind) != 101 || len(behind) == 0 {
		t.Errorf("%d events, damage up to %d, %d events, %v", len(got), corrupt.Next-1, len(behind), err)
	}
}

// TestAPartitionCanBeUsedAfterPowerLossInEveryMode: less may be there than was
// acknowledged, but it goes on.
func TestAPartitionCanBeUsedAfterPowerLossInEveryMode(t *testing.T) {
	for _, mode := range []disk.SyncMode{disk.Interval, disk.OS} {
		for seed := range uint64(60) {
			mem := vfs.NewMem()
			e := mustOpen(t, config(mode, mem))
			fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 45)
			e = mustOpen(t, config(mode, mem.CutPower(newRand(seed))))
			p := mustPartition(t, e, eventlog.Retention{})
			done, err := eventlog.Append(t.Context(), p, text("after"))
			testkit.Must(t, err, "%v, seed %d", mode, seed)
			if got, err := readFrom(t, p, eventlog.At(done.First)); err != nil || len(got) != 1 || got[0] != "after" {
				t.Fatalf("%v, seed %d: read back %q, %v", mode, seed, got, err)
			}
			e.Close()
		}
	}
}

// TestABodyThatIsNoEventsCostsOneBatch though its checksum is right. // H3
func TestABodyThatIsNoEventsCostsOneBatch(t *testing.T) {
	mem := vfs.NewMem()
	testkit.Must(t, mem.MkdirAll("log/orders-1/0"))
	f, err := mem.Create("log/orders-1/0/00000000000000000000.seg")
	testkit.Must(t, err)
	const salt = 7
	content := segment.AppendHead(nil, segment.Head{Salt: salt})
	for i := range 4 {
		body := "\x01\x00\x00\x00\x00\x00\x00\x00" + fmt.Sprint(i)
		if i == 1 {
			body = "nonsense that is no event"
		}
		b := segment.Finish(append(segment.Reserve(nil, 0), body...), 0, segment.Info{First: int64(i), Count: 1, Time: 1})
		segment.Seal(b, salt, int64(len(content)), int64(len(content)))
		content = append(content, b...)
	}
	testkit.Must(t, testkit.Err(f.WriteAt(content, 0)))
	f.Close()
	p := mustPartition(t, mustOpen(t, config(disk.Always, mem)), eventlog.Retention{})
	got, err := readFrom(t, p, eventlog.Earliest())
	var corrupt *eventlog.CorruptError
	if !errors.As(err, &corrupt) || corrupt.Next != 2 || len(got) != 1 {
		t.Errorf("%q, %v, want to go on at 2", got, err)
	}
	if got, err := readFrom(t, p, eventlog.At(2)); err != nil || strings.Join(got, "") != "23" {
		t.Errorf("behind it: %q, %v", got, err)
	}
}

// TestASegmentUsedAgainShowsNothingOfItsEarlierLife, not even when its header rots: that
// was another partition's. // H3
func TestASegmentUsedAgainShowsNothingOfItsEarlierLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		cfg := config(disk.Always, mem)
		e := mustOpen(t, cfg)
		donor := mustPartition(t, e, eventlog.Retention{})
		fill(t, donor, 0, 100)
		heir := eventlog.PartitionID{Log: "others-1"}
		testkit.Must(t, e.Provide(t.Context(), heir.Log, eventlog.Shape{Partitions: 1, Retention: eventlog.Retention{Age: time.Millisecond}}))
		p := testkit.Value(e.Partition(heir))(t)
		fill(t, p, 0, 30)
		if err := donor.Trim(t.Context(), 60); err != nil { // its oldest segments are kept for use again
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := p.Trim(t.Context(), 0); err != nil { // and one of them is used here, still empty
			t.Fatal(err)
		}
		e.Close()
		testkit.Must(t, mem.Corrupt("log/others-1/0/00000000000000000030.seg", 20, 1))
		p = testkit.Value(mustOpen(t, cfg).Partition(heir))(t)
		if got, _ := readFrom(t, p, eventlog.Earliest()); len(got) > 0 {
			t.Errorf("%d events of another partition are there, the first is %.4q", len(got), got[0])
		}
	})
}
