package disk_test

import (
	"context"
	"errors"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/disk/segment"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H3: a check counts what there is, and finds what is damaged and what is not the engine's.
func TestCheck(t *testing.T) {
	mem := vfs.NewMem()
	cfg := config(disk.Always, mem)
	e := mustOpen(t, cfg)
	fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 500)
	testkit.Must(t, e.Close())
	names := segments(t, mem)
	put(t, mem, "log/notes.txt", []byte("x"))
	testkit.Must(t, mem.MkdirAll("log/"+first.Log+"/notes"))
	var last disk.Progress
	report, err := disk.Check(t.Context(), cfg, func(p disk.Progress) { last = p })
	testkit.Must(t, err)
	testkit.Slices(t, report.Problems, nil, "problems of a sound folder")
	testkit.Slices(t, report.Foreign, []string{"log/notes.txt", "log/" + first.Log + "/notes"}, "foreign")
	if report.Partitions != 1 || report.Segments != len(names) || report.Events != 500 || last.Bytes != report.Bytes || last.Total != report.Bytes {
		t.Errorf("%+v of %d segments, at the end %+v", report, len(names), last)
	}

	testkit.Must(t, mem.Corrupt(names[0], 200, 1))
	report, err = disk.Check(t.Context(), cfg, nil)
	if err != nil || len(report.Problems) != 1 || report.Events != 499 {
		t.Errorf("of a damaged one: %+v, %v", report, err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	_, err = disk.Check(ctx, cfg, nil)
	testkit.ErrorIs(t, err, enough, "a check that nobody waits for")
	mustOpen(t, cfg)
	_, err = disk.Check(t.Context(), cfg, nil)
	testkit.ErrorIs(t, err, vfs.ErrLocked, "a check of what is in use")
}

// H3: a newest segment that is empty has nothing to lose by a damaged header, and is replaced; one
// that has a follower has.
func TestAnEmptySegmentWithABadHeaderIsReplaced(t *testing.T) {
	mem := vfs.NewMem()
	cfg := config(disk.Always, mem)
	e := mustOpen(t, cfg)
	p := mustPartition(t, e, eventlog.Retention{})
	mustAppend(t, p, "x")
	testkit.Must(t, p.Trim(t.Context(), 1))
	testkit.Must(t, e.Close())
	name := segments(t, mem)[0]
	for i := range int64(segment.HeaderBytes) {
		testkit.Must(t, mem.Corrupt(name, i, 0xff))
	}
	report, err := disk.Check(t.Context(), cfg, nil)
	if err != nil || len(report.Problems) != 0 {
		t.Errorf("got %+v, %v", report, err)
	}
	e = mustOpen(t, cfg)
	fill(t, mustPartition(t, e, eventlog.Retention{}), 0, 3)
	testkit.Must(t, e.Close())
	put(t, mem, "log/"+first.Log+"/0/00000000000000000009.seg", nil)
	for i := range int64(512) {
		testkit.Must(t, mem.Corrupt(name, i, 0xff))
	}
	report, err = disk.Check(t.Context(), cfg, nil)
	if err != nil || len(report.Problems) == 0 {
		t.Errorf("with a follower: %+v, %v", report, err)
	}
}

func TestSyncModesHaveNames(t *testing.T) {
	for _, mode := range []disk.SyncMode{disk.Always, disk.Interval, disk.OS} {
		got := testkit.Value(disk.ParseSync(mode.String()))(t)
		testkit.Equal(t, got, mode)
	}
	if _, err := disk.ParseSync("never"); err == nil {
		t.Error("a mode that there is not was read")
	}
}
