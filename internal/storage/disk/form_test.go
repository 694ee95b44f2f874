package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

func mustAppendFrame(t *testing.T, p eventlog.Partition, count int, text string) {
	t.Helper()
	testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), p, logtest.Opaque(count, text))))
}

// wantBytes looks for texts in all segments: in none of them, or in some.
func wantBytes(t *testing.T, fs vfs.FS, there bool, texts ...string) {
	t.Helper()
	var all []byte
	for _, name := range segments(t, fs) {
		f := testkit.Value(fs.Open(name))(t)
		content := make([]byte, testkit.Value(f.Bytes())(t))
		testkit.Must(t, testkit.Err(f.ReadAt(content, 0)))
		testkit.Must(t, f.Close())
		all = append(all, content...)
	}
	for _, text := range texts {
		testkit.Equal(t, bytes.Contains(all, []byte(text)), there, "%s is in the segments", text)
	}
}

// R6, K4: a folder of an older version reads as before, and frames go behind what is there, in the
// same segment. Without room to mark it nothing is written that the older version does not know.
func TestFramesInAnOlderFolder(t *testing.T) {
	mem := vfs.NewMem()
	cfg := config(disk.Always, mem)
	older, full := cfg, error(syscall.ENOSPC)
	older.Renew = func() error { return full }
	var want []string
	for life := range 3 { // what an older version would have written, with indexes
		e := mustOpen(t, older)
		p := mustPartition(t, e, eventlog.Retention{})
		testkit.ErrorIs(t, testkit.Err(p.Submit(t.Context(), logtest.Opaque(1, "x"))), eventlog.ErrNoSpace)
		fill(t, p, 50*life, 50*(life+1))
		testkit.Must(t, e.Close())
	}
	for i := range 150 {
		want = append(want, fmt.Sprintf("%04d%s", i, strings.Repeat("x", 1000)))
	}
	wantBytes(t, mem, true, "EYB1", "EVYARDX1")
	wantBytes(t, mem, false, "EYB2", "EVYARDX2")
	e := mustOpen(t, older)
	p := mustPartition(t, e, eventlog.Retention{})
	wantTexts(t, p, want...)
	full = nil // there is room
	before := len(segments(t, mem))
	mustAppendFrame(t, p, 3, "frame")
	want = append(want, "frame")
	testkit.Equal(t, len(segments(t, mem)), before, "segments")
	testkit.Must(t, e.Close())
	wantBytes(t, mem, true, "EYB1", "EVYARDX1", "EYB2", "EVYARDX2")
	e = mustOpen(t, cfg)
	p = mustPartition(t, e, eventlog.Retention{})
	mustAppend(t, p, "event")
	wantTexts(t, p, append(want, "event")...)
	testkit.Equal(t, testkit.Value(p.Bounds(t.Context()))(t).Next, 154)
	testkit.Must(t, e.Close())
	report := testkit.Value(disk.Check(t.Context(), cfg, nil))(t)
	testkit.Slices(t, report.Problems, nil)
	testkit.Equal(t, report.Events, 154)
}

// H3, K4: rot in a frame costs that frame, is told with its numbers, and a check finds it.
func TestADamagedFrame(t *testing.T) {
	for name, at := range map[string]int64{"header": 30, "create time": 66, "body": segment.FormHeaderBytes + 20} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			cfg := config(disk.Always, mem)
			e := mustOpen(t, cfg)
			p := mustPartition(t, e, eventlog.Retention{})
			for _, text := range []string{"first", "other", "third"} { // each of one size
				mustAppendFrame(t, p, 4, text)
			}
			testkit.Must(t, e.Close())
			const frame = segment.FormHeaderBytes + 24
			testkit.Must(t, mem.Corrupt(segments(t, mem)[0], segment.HeaderBytes+frame+at, 1))
			report := testkit.Value(disk.Check(t.Context(), cfg, nil))(t)
			if len(report.Problems) != 1 || report.Events != 8 || !strings.Contains(report.Problems[0], "events 4 to 7 cannot be read") {
				t.Errorf("a check finds %+v", report)
			}
			p = mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
			got, err := readFrom(t, p, eventlog.Earliest())
			corrupt, ok := errors.AsType[*eventlog.CorruptError](err)
			if !ok || corrupt.First != 4 || corrupt.Next != 8 || !slices.Equal(got, []string{"first"}) {
				t.Errorf("read %q, %v", got, err)
			}
			if got, err := readFrom(t, p, eventlog.At(10)); err != nil || !slices.Equal(got, []string{"third"}) {
				t.Errorf("behind it: %q, %v", got, err)
			}
		})
	}
}

// K4: a frame goes through the journal as any batch does.
func TestFramesInTheJournal(t *testing.T) {
	mem := vfs.NewMem()
	cfg := disk.Journaling(config(disk.Always, mem), 64<<10, true)
	p := mustPartition(t, mustOpen(t, cfg), eventlog.Retention{})
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprint("frame ", i))
		mustAppendFrame(t, p, 2, want[i])
	}
	after := mem.CutPower(newRand(1))
	p = mustPartition(t, mustOpen(t, config(disk.Always, after)), eventlog.Retention{})
	wantTexts(t, p, want...)
}
