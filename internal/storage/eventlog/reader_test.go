package eventlog_test

import (
	"errors"
	"fmt"
	"path"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

func must(t *testing.T, err error) {
	t.Helper()
	testkit.Must(t, err)
}

// A reader gives what can be read from any place on, and says what cannot.
func TestReader(t *testing.T) {
	mem, id := vfs.NewMem(), eventlog.PartitionID{Log: "x"}
	open := func() (*disk.Engine, eventlog.Partition) {
		engine, err := disk.Open(disk.Config{FS: mem})
		must(t, err)
		log, err := engine.Partition(id)
		must(t, err)
		return engine, log
	}
	engine, log := open()
	for n := range 20 {
		_, err := eventlog.Append(t.Context(), log, eventlog.Batch{Events: []eventlog.Event{{Message: fmt.Appendf(nil, "%0100d", n)}}})
		must(t, err)
	}
	must(t, engine.Close())
	dir := path.Join("log", id.Log, "0")
	files, err := mem.List(dir)
	must(t, err)
	must(t, mem.Corrupt(path.Join(dir, files[0].Name), 1500, 0xff))
	engine, log = open()
	defer engine.Close()

	r := eventlog.NewReader(log.Cursor, 0)
	var read, lost []int64
	all := func() string {
		t.Helper()
		defer r.Close()
		read, lost = nil, nil
		for {
			run, damage, err := r.Next(t.Context())
			must(t, err)
			switch {
			case damage != nil:
				for n := damage.First; n < damage.Next; n++ {
					lost = append(lost, int64(n))
				}
			case len(run.Events) == 0:
				return fmt.Sprint(read, lost)
			}
			for i := range run.Events {
				read = append(read, int64(run.First)+int64(i))
			}
		}
	}
	all()
	if len(lost) == 0 || len(read)+len(lost) != 20 || r.At() != 20 {
		t.Fatalf("read %v, lost %v, then at %d", read, lost, r.At())
	}
	behind := lost[len(lost)-1] + 1
	if r.MoveTo(eventlog.Sequence(behind)); all() == "" || len(lost) != 0 || len(read) != int(20-behind) {
		t.Errorf("behind the damage: %v, %v", read, lost)
	}
	if r.MoveTo(eventlog.Sequence(behind - 1)); all() == "" || len(lost) != 1 {
		t.Errorf("from inside the damage: %v, %v", read, lost)
	}
	must(t, r.Seek(t.Context(), eventlog.At(99)))
	if got := all(); got != "[] []" || r.At() != 20 {
		t.Errorf("beyond the end: %s, at %d", got, r.At())
	}
	must(t, r.Seek(t.Context(), eventlog.At(19)))
	testkit.Equal(t, all(), "[19] []", "the last")

	r.MoveTo(3)
	must(t, engine.Close())
	if _, damage, err := r.Next(t.Context()); !errors.Is(err, eventlog.ErrClosed) || damage != nil || r.At() != 3 {
		t.Errorf("of a closed engine: %v, %v, at %d", err, damage, r.At())
	}
}
