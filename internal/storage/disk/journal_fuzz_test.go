package disk_test

import (
	"path"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// fuzzSalt is that of the one segment there is.
const fuzzSalt = 7

// FuzzJournal starts an engine over any journal file: an entry with the right checksum, and
// any bytes before or behind it. It never panics, and it writes nothing but the segments
// of partitions that are there.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(nil), []byte("EYJ1"), first.Log, uint32(0), int64(0), uint64(fuzzSalt), int64(64), []byte("body"))
	f.Add(make([]byte, 100), []byte(nil), first.Log, uint32(0), int64(0), uint64(fuzzSalt), int64(0), []byte("over the header"))
	f.Add([]byte(nil), make([]byte, 64), "../..", uint32(1<<31), int64(-1), uint64(0), int64(-1), []byte(nil))
	f.Add([]byte(nil), []byte(nil), "orders-1/../others", uint32(0), int64(1)<<62, uint64(fuzzSalt), int64(1)<<40, []byte("far"))
	f.Add([]byte(nil), []byte(nil), first.Log, uint32(0), int64(0), uint64(fuzzSalt), int64(1)<<29, []byte("far"))
	f.Fuzz(func(t *testing.T, before, behind []byte, log string, number uint32, base int64, salt uint64, offset int64, body []byte) {
		offset %= 1 << 30 // an entry with the right checksum is one that an engine wrote
		id := eventlog.PartitionID{Log: log, Number: int(number)}
		entry := disk.JournalEntry(id, eventlog.Sequence(base), salt, offset, body)
		mem := vfs.NewMem()
		segment := path.Join("log", first.Log, "0", "00000000000000000000.seg")
		put(t, mem, segment, fuzzSegment())
		put(t, mem, "meta.db", []byte("another's"))
		put(t, mem, "journal/ABCDEFGHIJKLMNOPQRSTUVWXYZ.jnl", append(append(before, entry...), behind...))
		faulty := vfs.NewFaulty(mem)
		faulty.Inject(func(op vfs.Op) error {
			if strings.HasPrefix(op.Name, "spare/new-") {
				return nil // the reserve
			}
			if (op.Kind == vfs.OpWrite || op.Kind == vfs.OpTruncate) && op.Name != segment {
				t.Errorf("%s was written to", op.Name)
			}
			if op.Kind == vfs.OpCreate || op.Kind == vfs.OpRename {
				t.Errorf("%s was made or moved", op.Name)
			}
			return nil
		})
		e, err := disk.Open(config(disk.Always, faulty))
		if err != nil {
			return // such a journal is left to be looked at
		}
		defer e.Close()
		faulty.Inject(nil)
		p := mustPartition(t, e, eventlog.Retention{})
		if _, err := p.Bounds(t.Context()); err == nil {
			mustAppend(t, p, "after")
		}
	})
}

// fuzzSegment is a segment with one batch.
func fuzzSegment() []byte {
	content := segment.AppendHead(nil, segment.Head{Salt: fuzzSalt})
	b := append(segment.Reserve(nil, 0), "\x01\x00\x00\x00\x00\x00\x00\x00a"...)
	b = segment.Finish(b, 0, segment.Info{Count: 1, Time: 1})
	segment.Seal(b, fuzzSalt, segment.HeaderBytes, segment.HeaderBytes)
	return append(content, b...)
}

// put makes a file.
func put(t *testing.T, fs vfs.FS, name string, content []byte) {
	t.Helper()
	testkit.Must(t, fs.MkdirAll(path.Dir(name)))
	f := testkit.Value(fs.Create(name))(t)
	defer f.Close()
	testkit.Must(t, testkit.Err(f.WriteAt(content, 0)))
}
