package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/backup"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/logs"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/holds"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// pass copies a yard by an archive whose list is not known before its end.
func pass(t *testing.T, source backup.Source, target backup.Target) error {
	t.Helper()
	return passUnder(context.Background(), t, source, target)
}

func passUnder(ctx context.Context, t *testing.T, source backup.Source, target backup.Target) error {
	t.Helper()
	in, out := io.Pipe()
	taken := make(chan error, 1)
	go func() {
		_, err := backup.Take(ctx, source, out)
		taken <- err
		_ = out.CloseWithError(err)
	}()
	target.ReadBack = true
	target.Entry = func(e meta.Entry) (meta.Entry, bool, error) { return e, !isLocal(e.Key), nil }
	err := backup.Restore(ctx, in, nil, target)
	_ = in.CloseWithError(io.ErrClosedPipe)
	if failed := <-taken; err == nil {
		err = failed
	}
	return err
}

// isLocal knows the entries of storage itself.
func isLocal(key string) bool {
	return strings.HasPrefix(key, "logs/") || strings.HasPrefix(key, holds.Prefix)
}

// drawLogs fills some logs of a yard, some of which have lost their beginning, or all.
func drawLogs(r *rapid.T, y *yard) (all []eventlog.PartitionID) {
	kinds := []eventlog.Kind{eventlog.KindHub, eventlog.KindTopic, eventlog.KindDeadLetters, eventlog.KindParked}
	now := time.UnixMilli(1_700_000_000_000)
	for i := range rapid.IntRange(0, 4).Draw(r, "logs") {
		log := fmt.Sprint("log-", i)
		testkit.Must(y.t, y.log.Provide(context.Background(), log, eventlog.Shape{Partitions: 2, Kind: rapid.SampledFrom(kinds).Draw(r, "kind")}))
		for number := range 2 {
			id := eventlog.PartitionID{Log: log, Number: number}
			p := testkit.Value(y.log.Partition(id))(y.t)
			importer, next := p.(eventlog.Importer), eventlog.Sequence(rapid.IntRange(0, 5).Draw(r, "first"))
			testkit.Must(y.t, importer.BeginAt(context.Background(), next, now))
			for range rapid.IntRange(0, 6).Draw(r, "batches") {
				now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(r, "pause")) * time.Millisecond)
				run := eventlog.Run{First: next, Time: now}
				for range rapid.IntRange(1, 3).Draw(r, "events") {
					run.Events = append(run.Events, eventlog.Event{Message: []byte(rapid.StringN(0, 20, -1).Draw(r, "message")), Key: []byte(rapid.StringN(0, 3, -1).Draw(r, "key"))})
				}
				if rapid.Bool().Draw(r, "frame") {
					run = eventlog.Run{First: next, Time: now, Form: logtest.FormOpaque, Raw: []byte("raw"), Count: len(run.Events), MaxTime: now.Add(-time.Second)}
				}
				if rapid.Bool().Draw(r, "producer") {
					run.Producer = eventlog.Producer{ID: rapid.Int64().Draw(r, "id"), Epoch: 3, First: int32(next), Set: true}
				}
				receipt, err := importer.Import(context.Background(), run)
				testkit.Must(y.t, err)
				testkit.Must(y.t, testkit.Err(receipt.Wait(context.Background())))
				next = run.Next()
			}
			all = append(all, id)
		}
	}
	return all
}

// continued is how a target is filled on; found counts events.
func (y *yard) continued(found *int) *backup.Continued {
	return &backup.Continued{
		Local:    isLocal,
		Same:     func(a, b meta.Entry) bool { return string(a.Value) == string(b.Value) },
		OpenBody: func(name string) (io.ReadCloser, error) { return y.bodies.Open(context.Background(), name) },
		Found:    func(events int) { *found += events },
	}
}

// cutCopy copies from a source to a target that is opened anew each time, and is cut off after each of some
// numbers of parts, until it is whole. It gives how many events were not copied again.
func cutCopy(t *testing.T, source backup.Source, open func() (backup.Target, func()), y *yard, cuts []int) (found int) {
	t.Helper()
	for i := 0; ; i++ {
		target, closeAll := open()
		if i > 0 {
			found = 0
			target.Continued = y.continued(&found)
		}
		ctx, cancel := context.WithCancel(context.Background())
		parts := 0
		target.Progress = func(int64) {
			if parts++; i < len(cuts) && parts > cuts[i] {
				cancel()
			}
		}
		err := passUnder(ctx, t, source, target)
		cancel()
		closeAll()
		if i >= len(cuts) || err == nil {
			testkit.Must(t, err)
			return found
		}
		testkit.ErrorIs(t, err, context.Canceled)
	}
}

// C7: a copy that was cut off anywhere, also several times, is continued by another one, which copies
// nothing that is there again and ends with what was to be copied, from disk to several nodes and back.
func TestACopyIsContinuedWhereverItWasCut(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		here, nodes, back := newYard(t), newYard(t), newYard(t)
		all := drawLogs(r, here)
		here.bodies["b1"] = "one"
		here.set("blobs/one", "b1")
		for i := range rapid.IntRange(0, 5).Draw(r, "entries") {
			here.set(fmt.Sprint("records/", i), rapid.String().Draw(r, "value"))
		}
		shared := model.New(1, model.Faults{})
		incarnation := 0
		openNodes := func() (eventlog.Engine, func()) {
			incarnation++
			storage := shared.Node(fmt.Sprint("a", incarnation))
			engine := logs.New(logs.Config{Storage: storage, Store: nodes.meta, Log: testkit.Quiet()})
			return engine, func() {
				testkit.Must(t, engine.Close())
				storage.Close()
			}
		}
		cuts := rapid.SliceOfN(rapid.IntRange(0, 60), 1, 4)
		cutCopy(t, here.source(here.log), func() (backup.Target, func()) {
			target := nodes.target()
			engine, closeAll := openNodes()
			target.Log = engine
			return target, closeAll
		}, nodes, cuts.Draw(r, "cuts"))
		engine, closeNodes := openNodes()
		cutCopy(t, nodes.source(engine), func() (backup.Target, func()) {
			testkit.Must(t, back.log.Close())
			back.open()
			back.meta = metatest.NewMemory() // a folder's entries are stored anew
			return back.target(), func() {}
		}, back, cuts.Draw(r, "cuts back"))
		for _, id := range all {
			source := testkit.Value(here.log.Partition(id))(t)
			if testkit.Value(source.Bounds(context.Background()))(t).Next == 0 {
				continue // it is not in the archive: whoever uses it provides it
			}
			logtest.WantAlike(t, source, testkit.Value(engine.Partition(id))(t))
			logtest.WantAlike(t, source, testkit.Value(back.log.Partition(id))(t))
		}
		for _, to := range []*yard{nodes, back} {
			wantSameEntries(t, here.meta, to.meta)
			testkit.Equal(t, to.bodies["b1"], "one", "the body")
		}
		closeNodes()
		for _, y := range []*yard{here, nodes, back} {
			testkit.Must(t, y.log.Close())
		}
	})
}

// wantSameEntries compares what is not the storage's own.
func wantSameEntries(t *testing.T, a, b meta.Store) {
	t.Helper()
	var lists [2][]string
	for i, store := range []meta.Store{a, b} {
		for _, e := range testkit.Value(store.List(context.Background(), ""))(t) {
			if !isLocal(e.Key) {
				lists[i] = append(lists[i], e.Key+"="+string(e.Value))
			}
		}
	}
	testkit.Deep(t, lists[1], lists[0], "the entries")
}

// C7: what is whole is not stored again, what was changed and removed in the source since is made so, and
// what is of something else is found out before anything is added to it.
func TestWhatIsContinued(t *testing.T) {
	send := func(p eventlog.Partition, message string) {
		testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), p, eventlog.Batch{Events: []eventlog.Event{{Message: []byte(message)}}})))
	}
	here, there := newYard(t), newYard(t)
	p := here.provide("orders", eventlog.KindHub)
	send(p, "a")
	send(p, "b")
	here.set("records/kept", "1")
	here.set("records/gone", "1")
	testkit.Must(t, pass(t, here.source(here.log), there.target()))
	gone := testkit.Value(here.meta.Get(t.Context(), "records/gone"))(t)
	testkit.Must(t, here.meta.Delete(t.Context(), gone.Key, gone.Revision))
	kept := testkit.Value(here.meta.Get(t.Context(), "records/kept"))(t)
	testkit.Must(t, testkit.Err(here.meta.CompareAndSet(t.Context(), kept.Key, kept.Revision, []byte("2"))))
	here.set("records/new", "1")
	send(p, "c")
	found := 0
	again := there.target()
	again.Continued = there.continued(&found)
	testkit.Must(t, pass(t, here.source(here.log), again))
	testkit.Equal(t, found, 2, "events that were there")
	wantSameEntries(t, here.meta, there.meta)
	logtest.WantAlike(t, p, there.partition("orders", 0))

	for name, change := range map[string]func(other *yard){
		"another event":     func(other *yard) { send(other.provide("orders", eventlog.KindHub), "x") },
		"another log":       func(other *yard) { send(other.provide("else", eventlog.KindHub), "a") },
		"another partition": func(other *yard) { other.provide("orders", eventlog.KindHub); send(other.partition("orders", 1), "a") },
		"more than there is": func(other *yard) {
			for _, message := range []string{"a", "b", "c", "d"} {
				send(other.provide("orders", eventlog.KindHub), message)
			}
		},
		"another body": func(other *yard) { other.bodies["b1"] = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			here.bodies["b1"] = "one"
			if _, err := here.meta.Get(t.Context(), "blobs/one"); err != nil {
				here.set("blobs/one", "b1")
			}
			other := newYard(t)
			change(other)
			target := other.target()
			target.Continued = other.continued(new(int))
			testkit.ErrorIs(t, pass(t, here.source(here.log), target), backup.ErrOther)
		})
	}
}

// damaged has a beginning, and cannot be read further.
type damaged struct{ begins io.Reader }

func (d damaged) Read(b []byte) (int, error) {
	if n, err := d.begins.Read(b); err == nil {
		return n, nil
	}
	return 0, errors.New("a body is damaged")
}

// used is an engine whose partitions were used before, though they have no events.
type used struct{ eventlog.Engine }

func (u used) Partition(id eventlog.PartitionID) (eventlog.Partition, error) {
	p, err := u.Engine.Partition(id)
	return usedOnce{p}, err
}

type usedOnce struct{ eventlog.Partition }

func (u usedOnce) BeginAt(context.Context, eventlog.Sequence, time.Time) error {
	return fmt.Errorf("begin: %w", eventlog.ErrUsed)
}

func (u usedOnce) Import(ctx context.Context, run eventlog.Run) (eventlog.Receipt, error) {
	return u.Partition.(eventlog.Importer).Import(ctx, run)
}

// C7: what an interrupted copy has left and nothing can be added to is to be removed; what may be of use later
// stays, and a copy that was not continued has its own error.
func TestWhatCannotBeContinued(t *testing.T) {
	broken := func(err error) func(string) (io.ReadCloser, error) {
		return func(string) (io.ReadCloser, error) { return nil, err }
	}
	for name, tt := range map[string]struct {
		change func(to *backup.Target)
		want   error
		plain  bool // the target is of use
	}{
		"a body is damaged at its beginning": {change: func(to *backup.Target) { to.Continued.OpenBody = broken(errors.New("it is damaged")) }, want: backup.ErrOther},
		"a body is damaged further on": {change: func(to *backup.Target) {
			to.Continued.OpenBody = func(string) (io.ReadCloser, error) {
				return io.NopCloser(damaged{strings.NewReader("o")}), nil
			}
		}, want: backup.ErrOther},
		"no server answers":                            {change: func(to *backup.Target) { to.Continued.OpenBody = broken(meta.ErrUnavailable) }, want: meta.ErrUnavailable, plain: true},
		"a partition was used":                         {change: func(to *backup.Target) { to.Log = used{to.Log} }, want: backup.ErrOther},
		"a partition was used, by another than a copy": {change: func(to *backup.Target) { to.Log, to.Continued = used{to.Log}, nil }, want: eventlog.ErrUsed, plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := newYard(t), newYard(t)
			here.provide("orders", eventlog.KindHub)
			fill(t, here.partition("orders", 0), 1)
			here.bodies["b1"] = "one"
			here.set("blobs/one", "b1")
			target := there.target()
			target.Continued = there.continued(new(int))
			tt.change(&target)
			err := pass(t, here.source(here.log), target)
			testkit.ErrorIs(t, err, tt.want)
			testkit.Equal(t, errors.Is(err, backup.ErrOther), !tt.plain, "it is to be removed")
		})
	}
}

// C7: that the target is another yard's is found out before anything of it is changed.
func TestAnotherYardIsFoundFirst(t *testing.T) {
	here, other := newYard(t), newYard(t)
	fill(t, here.provide("orders", eventlog.KindHub), 1)
	here.set("records/a", "1")
	fill(t, other.provide("else", eventlog.KindHub), 1)
	other.set("records/b", "1")
	target := other.target()
	target.Continued = other.continued(new(int))
	target.Continued.Logs = []string{"orders"}
	testkit.ErrorIs(t, pass(t, here.source(here.log), target), backup.ErrOther)
	testkit.Check(t, testkit.Err(other.meta.Get(t.Context(), "records/b")), "an entry of the other yard")
	testkit.Equal(t, len(testkit.Value(other.log.Logs(t.Context()))(t)), 1, "logs")
}

// C7: what is copied from disk to the engine of several nodes, and back, is what it was: events, numbers,
// times, producers' marks and entries.
func TestThereAndBackAgain(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		here, back := newYard(t), newYard(t)
		all := drawLogs(r, here)
		for i := range rapid.IntRange(0, 5).Draw(r, "entries") {
			here.set(fmt.Sprint("records/", i), rapid.String().Draw(r, "value"))
		}
		nodes := newYard(t) // but for its engine
		storage := model.New(1, model.Faults{}).Node("a")
		engine := logs.New(logs.Config{Storage: storage, Store: nodes.meta, Log: testkit.Quiet()})
		target := nodes.target()
		target.Log = engine
		testkit.Must(t, pass(t, here.source(here.log), target))
		testkit.Must(t, pass(t, nodes.source(engine), back.target()))
		for _, id := range all {
			source := testkit.Value(here.log.Partition(id))(t)
			if testkit.Value(source.Bounds(context.Background()))(t).Next == 0 {
				continue // it is not in the archive: whoever uses it provides it
			}
			logtest.WantAlike(t, source, testkit.Value(engine.Partition(id))(t))
			logtest.WantAlike(t, source, testkit.Value(back.log.Partition(id))(t))
		}
		was, is := testkit.Value(here.meta.List(context.Background(), ""))(t), testkit.Value(back.meta.List(context.Background(), ""))(t)
		testkit.Equal(t, len(is), len(was), "entries")
		for i, e := range was {
			testkit.That(t, is[i].Key == e.Key && string(is[i].Value) == string(e.Value), "%s became %s", e.Key, is[i].Key)
		}
		testkit.Must(t, engine.Close())
		storage.Close()
		testkit.Must(t, here.log.Close())
		testkit.Must(t, nodes.log.Close())
		testkit.Must(t, back.log.Close())
	})
}

// liar is an engine that stores other times than it was given.
type liar struct{ eventlog.Engine }

func (l liar) Partition(id eventlog.PartitionID) (eventlog.Partition, error) {
	p, err := l.Engine.Partition(id)
	return lying{p}, err
}

type lying struct{ eventlog.Partition }

func (l lying) BeginAt(ctx context.Context, first eventlog.Sequence, newest time.Time) error {
	return l.Partition.(eventlog.Importer).BeginAt(ctx, first, newest)
}

func (l lying) Import(ctx context.Context, run eventlog.Run) (eventlog.Receipt, error) {
	run.Time = run.Time.Add(time.Second)
	return l.Partition.(eventlog.Importer).Import(ctx, run)
}

// C7: a target that does not give back what it was given is found out.
func TestReadingBackFindsWhatDiffers(t *testing.T) {
	here, there := newYard(t), newYard(t)
	p := here.provide("orders", eventlog.KindHub)
	testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), p, eventlog.Batch{Events: []eventlog.Event{{Message: []byte("a")}}})))
	target := there.target()
	target.Log = liar{there.log}
	err := pass(t, here.source(here.log), target)
	testkit.That(t, err != nil && strings.Contains(err.Error(), "check partition 0 of log orders: what was stored is not what is read back"), "it ends with %v", err)
}
