package backup_test

import (
	"context"
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
	"github.com/eventyard/eventyard/internal/testkit"
)

// pass copies a yard by an archive whose list is not known before its end.
func pass(t *testing.T, source backup.Source, target backup.Target) error {
	t.Helper()
	in, out := io.Pipe()
	taken := make(chan error, 1)
	go func() {
		_, err := backup.Take(context.Background(), source, out)
		taken <- err
		_ = out.CloseWithError(err)
	}()
	target.ReadBack = true
	target.Entry = func(e meta.Entry) (meta.Entry, bool, error) {
		return e, !strings.HasPrefix(e.Key, "logs/") && !strings.HasPrefix(e.Key, holds.Prefix), nil // they are the source's own
	}
	err := backup.Restore(context.Background(), in, nil, target)
	_ = in.CloseWithError(io.ErrClosedPipe)
	if failed := <-taken; err == nil {
		err = failed
	}
	return err
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
