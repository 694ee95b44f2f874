package logtest_test

import (
	"errors"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Every operation fails as it is told to, and is counted; one whose answer is lost is done.
func TestFaulty(t *testing.T) {
	engine, err := disk.Open(disk.Config{FS: vfs.NewMem()})
	testkit.Must(t, err)
	defer engine.Close()
	f, broken := logtest.NewFaulty(engine), errors.New("broken")
	id := eventlog.PartitionID{Log: "x"}
	log, err := f.Partition(id)
	testkit.Must(t, err)
	batch := eventlog.Batch{Events: []eventlog.Event{{Message: []byte("a")}}}
	cursor := func(read func(eventlog.Cursor) error) error {
		c, err := log.Cursor(t.Context(), eventlog.Earliest())
		if err != nil {
			return err
		}
		return errors.Join(read(c), c.Close(), c.Close())
	}
	operations := map[logtest.OpKind]func() error{
		logtest.OpPartition: func() error { _, err := f.Partition(id); return err },
		logtest.OpProvide:   func() error { return f.Provide(t.Context(), id.Log, eventlog.Shape{Partitions: 1}) },
		logtest.OpSubmit:    func() error { _, err := eventlog.Append(t.Context(), log, batch); return err },
		logtest.OpWait:      func() error { _, err := eventlog.Append(t.Context(), log, batch); return err },
		logtest.OpBounds:    func() error { _, err := log.Bounds(t.Context()); return err },
		logtest.OpSealed:    func() error { _, err := log.Sealed(t.Context()); return err },
		logtest.OpClaim:     func() error { _, err := log.Claim(t.Context(), 1); return err },
		logtest.OpTrim:      func() error { return log.Trim(t.Context(), 0) },
		logtest.OpCursor:    func() error { return cursor(func(eventlog.Cursor) error { return nil }) },
		logtest.OpNext: func() error {
			return cursor(func(c eventlog.Cursor) error { _, err := c.TryNext(t.Context()); return err })
		},
		logtest.OpClose:  func() error { return cursor(func(eventlog.Cursor) error { return nil }) },
		logtest.OpRemove: func() error { return f.Remove(t.Context(), "other") },
	}
	for kind, do := range operations {
		for _, inject := range []error{nil, broken, logtest.Unheard(broken)} {
			f.Fail(inject, kind)
			before := f.Count(kind)
			if err := do(); (err != nil) != (inject != nil) || err != nil && !errors.Is(err, broken) {
				t.Errorf("operation %d told to end in %v: %v", kind, inject, err)
			}
			if n := f.Count(kind) - before; n != 1 {
				t.Errorf("operation %d was counted %d times", kind, n)
			}
		}
	}
	for _, inject := range []error{nil, broken, logtest.Unheard(broken), logtest.Refused(broken)} {
		f.Fail(inject, logtest.OpSubmit)
		before := f.Count(logtest.OpSubmit)
		all, err := log.SubmitAll(t.Context(), []eventlog.Batch{batch, batch})
		for _, r := range all {
			r.Start()
			_, waited := r.Wait(t.Context())
			err = errors.Join(err, waited)
		}
		if (err != nil) != (inject != nil) || err != nil && !errors.Is(err, broken) {
			t.Errorf("batches together told to end in %v: %v", inject, err)
		}
		testkit.Equal(t, f.Count(logtest.OpSubmit)-before, 1, "submits")
	}
	for name, read := range map[string]func(eventlog.Cursor) error{
		"TryNextAll": func(c eventlog.Cursor) error { return testkit.Err(c.TryNextAll(t.Context(), nil, 100)) },
		"Extents":    func(c eventlog.Cursor) error { return testkit.Err(c.Extents(t.Context(), nil, 100)) },
	} {
		for _, inject := range []error{nil, broken, logtest.Unheard(broken)} {
			f.Fail(inject, logtest.OpNext)
			before := f.Count(logtest.OpNext)
			if err := cursor(read); (err != nil) != (inject != nil) || err != nil && !errors.Is(err, broken) {
				t.Errorf("%s told to end in %v: %v", name, inject, err)
			}
			testkit.Equal(t, f.Count(logtest.OpNext)-before, 1, name)
		}
	}
	f.Inject(nil)
	log, err = f.Partition(eventlog.PartitionID{Log: "y"})
	testkit.Must(t, err)
	f.Fail(logtest.Unheard(broken), logtest.OpWait)
	_ = operations[logtest.OpWait]()
	if bounds, err := log.Bounds(t.Context()); err != nil || bounds.Next != 1 {
		t.Errorf("what nobody heard of: %d events are stored, %v", bounds.Next, err)
	}
	f.Behind(5)
	old, err := log.Bounds(t.Context())
	sealed, sealing := log.Sealed(t.Context())
	if err != nil || sealing != nil || old.Next != 0 || sealed.Next != 1 {
		t.Errorf("a node that is behind: bounds %+v, %v, sealed %+v, %v", old, err, sealed, sealing)
	}
}
