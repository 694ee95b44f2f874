package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/backup"
	"github.com/eventyard/eventyard/internal/backup/archive"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/jetstream/logs"
	"github.com/eventyard/eventyard/internal/storage/jetstream/model"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// yard is all that is backed up, in memory.
type yard struct {
	t      testing.TB
	mem    *vfs.Mem
	log    *disk.Engine
	meta   meta.Store
	bodies bodies
	files  map[string]string
}

func newYard(t testing.TB) *yard {
	y := &yard{t: t, mem: vfs.NewMem(), meta: metatest.NewMemory(), bodies: bodies{}, files: map[string]string{}}
	y.open()
	return y
}

func (y *yard) open() {
	y.t.Helper()
	log, err := disk.Open(disk.Config{FS: y.mem, Sync: disk.OS, SegmentBytes: 16 << 10, Log: testkit.Quiet()})
	testkit.Must(y.t, err)
	y.t.Cleanup(func() { log.Close() })
	y.log = log
}

// bodies are a blob store's, which entries below blobs/ name.
type bodies map[string]string

func (b bodies) Hold(context.Context) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, nil
}

func (b bodies) Named(e meta.Entry) ([]string, error) {
	if strings.HasPrefix(e.Key, "blobs/") {
		return strings.Fields(string(e.Value)), nil
	}
	return nil, nil
}

func (b bodies) Open(_ context.Context, name string) (io.ReadCloser, error) {
	body, ok := b[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(body)), nil
}

// source backs up the yard, with its log seen by way of another.
func (y *yard) source(log eventlog.Engine) backup.Source {
	return backup.Source{
		Head: archive.Head{Program: "eventyard test", Namespace: "yard", Taken: time.UnixMilli(1).UTC()},
		Entries: func(ctx context.Context, visit func(meta.Entry) error) error {
			return meta.Snapshot(ctx, y.meta, visit)
		},
		Spool: func() (io.ReadWriteCloser, error) { return os.CreateTemp(y.t.TempDir(), "spool") },
		Log:   log, Bodies: y.bodies, Files: slices.Sorted(maps.Keys(y.files)),
		ReadFile: func(name string) ([]byte, error) { return []byte(y.files[name]), nil },
	}
}

// restored takes a backup and restores it.
func (y *yard) restored(log eventlog.Engine) (*yard, backup.Summary) {
	y.t.Helper()
	to := newYard(y.t)
	return to, y.restoredTo(log, to.target())
}

func (y *yard) restoredTo(log eventlog.Engine, to backup.Target) backup.Summary {
	y.t.Helper()
	dir := filepath.Join(y.t.TempDir(), "backup")
	var out bytes.Buffer
	testkit.Must(y.t, testkit.Err(backup.Take(y.t.Context(), y.source(log), &out)))
	summary, err := backup.Receive(y.t.Context(), dir, "eventyard test", &out, nil)
	testkit.Must(y.t, err)
	folder, err := backup.Open(dir)
	testkit.Must(y.t, err)
	defer folder.Close()
	testkit.Deep(y.t, folder.Summary, summary, "the summary, read back")
	testkit.Must(y.t, folder.Verify(y.t.Context(), nil))
	testkit.Must(y.t, folder.Restore(y.t.Context(), to))
	return summary
}

func (y *yard) target() backup.Target {
	put := func(in map[string]string) func(string, io.Reader) error {
		return func(name string, content io.Reader) error {
			text, err := io.ReadAll(content)
			if err == nil { // as storage does: whole, or not at all
				in[name] = string(text)
			}
			return err
		}
	}
	return backup.Target{Meta: y.meta, Log: y.log, PutBody: put(y.bodies), PutFile: put(y.files)}
}

func (y *yard) provide(log string, kind eventlog.Kind) eventlog.Partition {
	y.t.Helper()
	testkit.Must(y.t, y.log.Provide(y.t.Context(), log, eventlog.Shape{Partitions: 3, Kind: kind}))
	return y.partition(log, 0)
}

func (y *yard) partition(log string, number int) eventlog.Partition {
	y.t.Helper()
	return testkit.Value(y.log.Partition(eventlog.PartitionID{Log: log, Number: number}))(y.t)
}

func (y *yard) set(key, value string) {
	y.t.Helper()
	testkit.Must(y.t, testkit.Err(y.meta.CompareAndSet(y.t.Context(), key, 0, []byte(value))))
}

// fill appends batches of all kinds: of one event and several, with keys, producers and frames.
func fill(t testing.TB, p eventlog.Partition, n int) {
	t.Helper()
	for i := range n {
		b := eventlog.Batch{Events: []eventlog.Event{{Message: []byte(strings.Repeat("x", 400) + strconv.Itoa(i))}}}
		if i%3 == 0 {
			b.Events = append(b.Events, eventlog.Event{Key: []byte("key"), Message: []byte("second")})
			b.Producer = eventlog.Producer{ID: int64(i), Epoch: 1, First: int32(7 * i), Set: true}
		}
		if i%5 == 4 {
			b.Events, b.Form, b.Raw, b.Count, b.MaxTime = nil, logtest.FormOpaque, []byte(fmt.Sprintf("frame %d", i)), 2, time.UnixMilli(int64(i))
		}
		testkit.Must(t, testkit.Err(eventlog.Append(t.Context(), p, b)))
	}
}

// C7: everything comes back as it was: numbers, times, producers, forms; entries; bodies; files.
func TestABackupIsRestoredAsItWas(t *testing.T) {
	y := newYard(t)
	for i := range 1300 { // more than are stored at once
		y.set(fmt.Sprintf("records/%04d", i), strings.Repeat("v", i))
	}
	y.set("blobs/a", "one two")
	y.bodies["one"], y.bodies["two"], y.bodies["unnamed"] = strings.Repeat("body", 100_000), "", "of nobody"
	y.files["tls/ca.pem"] = "certificate"
	orders := y.provide("orders", eventlog.KindHub)
	fill(t, orders, 300)
	testkit.Must(t, orders.Trim(t.Context(), 120)) // it begins somewhere
	fill(t, y.partition("orders", 2), 5)
	gone := y.provide("shelf", eventlog.KindParked) // all of it was removed
	fill(t, gone, 50)
	testkit.Must(t, gone.Trim(t.Context(), 1000))

	to, summary := y.restored(y.log)
	testkit.Equal(t, summary.Entries, 1301, "entries")
	testkit.Equal(t, fmt.Sprint(summary.Logs, summary.Partitions, summary.Bodies, summary.Files, summary.Lost, summary.Removed), "2 3 2 1 [] []", "summary")
	if b := testkit.Value(orders.Bounds(t.Context()))(t); b.First == 0 {
		t.Fatal("nothing was trimmed: this proves too little")
	}
	for _, id := range []eventlog.PartitionID{{Log: "orders"}, {Log: "orders", Number: 2}, {Log: "shelf"}} {
		logtest.WantAlike(t, y.partition(id.Log, id.Number), to.partition(id.Log, id.Number))
	}
	was, err := y.meta.List(t.Context(), "")
	testkit.Must(t, err)
	is, err := to.meta.List(t.Context(), "")
	testkit.Must(t, err)
	testkit.MustEqual(t, len(is), len(was), "entries")
	for i := range was {
		testkit.Equal(t, is[i].Key+string(is[i].Value), was[i].Key+string(was[i].Value), "entry")
	}
	delete(y.bodies, "unnamed")
	testkit.Deep(t, to.bodies, y.bodies, "bodies")
	testkit.Deep(t, to.files, y.files, "files")
}

// C7: entries are read before logs, so that under load no checkpoint is past the end of its log, and
// all that was acknowledged before the backup began is there.
func TestCheckpointsAreBehindTheirLogs(t *testing.T) {
	y := newYard(t)
	y.provide("orders", eventlog.KindHub)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for number := range 3 {
		p := y.partition("orders", number)
		fill(t, p, 10)
		load.Go(func() {
			var revision meta.Revision
			for ctx.Err() == nil {
				done, err := eventlog.Append(t.Context(), p, eventlog.Batch{Events: []eventlog.Event{{Message: []byte("x")}}})
				testkit.Check(t, err)
				revision, err = y.meta.CompareAndSet(t.Context(), fmt.Sprintf("checkpoints/%d", number), revision, []byte(strconv.FormatInt(int64(done.First), 10)))
				testkit.Check(t, err)
			}
		})
	}
	type taken struct {
		before [3]eventlog.Sequence // what was acknowledged when it began
		out    bytes.Buffer
		items  []archive.Item
	}
	var all [4]taken
	for i := range all {
		one := &all[i]
		for number := range one.before {
			one.before[number] = testkit.Value(y.partition("orders", number).Bounds(t.Context()))(t).Next
		}
		var err error
		one.items, err = backup.Take(t.Context(), y.source(y.log), &one.out)
		testkit.Must(t, err)
	}
	stop()
	load.Wait()
	for i := range all {
		to := newYard(t)
		testkit.Must(t, backup.Restore(t.Context(), &all[i].out, all[i].items, to.target()))
		next := func(number int) eventlog.Sequence {
			return testkit.Value(to.partition("orders", number).Bounds(t.Context()))(t).Next
		}
		for number, before := range all[i].before {
			testkit.That(t, next(number) >= before, "partition %d ends before %d, which was acknowledged", number, before)
		}
		checkpoints, err := to.meta.List(t.Context(), "checkpoints/")
		testkit.Must(t, err)
		for _, e := range checkpoints {
			number, at := testkit.Value(strconv.Atoi(strings.TrimPrefix(e.Key, "checkpoints/")))(t), testkit.Value(strconv.Atoi(string(e.Value)))(t)
			testkit.That(t, next(number) > eventlog.Sequence(at), "the checkpoint of partition %d is %d, and it goes on at %d", number, at, next(number))
		}
	}
}

// meddler lets something happen to the logs when a partition's turn comes.
type meddler struct {
	*disk.Engine
	before map[string]func()
}

func (m *meddler) Partition(id eventlog.PartitionID) (eventlog.Partition, error) {
	p, err := m.Engine.Partition(id)
	if do := m.before[id.String()]; do != nil {
		delete(m.before, id.String())
		return &meddled{p, do}, err
	}
	return p, err
}

type meddled struct {
	eventlog.Partition
	do func()
}

func (m *meddled) Sealed(ctx context.Context) (eventlog.Bounds, error) {
	m.do()
	return m.Partition.Sealed(ctx)
}

// C7: an event that moves from a log that was not read yet to one that was is in the backup.
func TestAMovingEventIsNotLost(t *testing.T) {
	y := newYard(t)
	early, late := y.provide("early", eventlog.KindRetryShort), y.provide("late", eventlog.KindRetryLong)
	fill(t, late, 40)
	move := func() {
		fill(t, early, 40)
		testkit.Must(t, late.Trim(t.Context(), 1000))
	}
	to, _ := y.restored(&meddler{y.log, map[string]func(){"late/0": move}})
	if b := testkit.Value(to.partition("early", 0).Bounds(t.Context()))(t); b.Next > 0 {
		t.Fatalf("the first log was read late: this proves nothing")
	}
	b := testkit.Value(to.partition("late", 0).Bounds(t.Context()))(t)
	testkit.That(t, b.First == 0 && b.Next > 0, "what moved is in neither log: %+v", b)
	testkit.Must(t, late.Trim(t.Context(), 1000))
	b = testkit.Value(late.Bounds(t.Context()))(t)
	testkit.That(t, b.Empty(), "trimming is still put off: %+v", b)
}

// C7: logs come before those that their records point into.
func TestTheOrderOfLogs(t *testing.T) {
	y := newYard(t)
	var turns []string
	m := &meddler{y.log, map[string]func(){}}
	for name, kind := range map[string]eventlog.Kind{"a": eventlog.KindHub, "b": eventlog.KindTopic, "c": eventlog.KindDeadLetters, "d": eventlog.KindParked, "e": eventlog.KindRetryMedium} {
		y.provide(name, kind)
		m.before[name+"/0"] = func() { turns = append(turns, name) }
	}
	y.restored(m)
	testkit.Slices(t, turns, []string{"d", "e", "c", "b", "a"}, "turns")
}

// onWrite calls do once so many bytes were written.
type onWrite struct {
	bytes.Buffer
	after int
	do    func()
}

func (w *onWrite) Write(p []byte) (int, error) {
	if w.after -= len(p); w.after < 0 && w.do != nil {
		w.do()
		w.do = nil
	}
	return w.Buffer.Write(p)
}

// C7: retention removes the oldest events while they are copied, or someone the whole log.
func TestALogChangesWhileItIsCopied(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(y *yard, p eventlog.Partition) error
		check  func(t *testing.T, b eventlog.Bounds, was eventlog.Sequence)
		notes  []string
	}{
		"retention overtakes it": {
			change: func(y *yard, p eventlog.Partition) error { return p.Trim(y.t.Context(), 900) },
			check: func(t *testing.T, b eventlog.Bounds, was eventlog.Sequence) {
				testkit.That(t, b.First > 500 && b.First < b.Next && b.Next == was, "it holds %+v of %d", b, was)
			},
		},
		"retention takes all of it": {
			change: func(y *yard, p eventlog.Partition) error { return p.Trim(y.t.Context(), 1<<40) },
			check: func(t *testing.T, b eventlog.Bounds, was eventlog.Sequence) {
				testkit.That(t, b.Empty() && b.Next == was, "it holds %+v of %d", b, was)
			},
		},
		"it is removed": {
			change: func(y *yard, p eventlog.Partition) error { return y.log.Remove(y.t.Context(), "orders") },
			check: func(t *testing.T, b eventlog.Bounds, was eventlog.Sequence) {
				testkit.That(t, b.Empty() && b.Next == was, "it holds %+v of %d", b, was)
			},
			notes: []string{"orders"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			p := y.provide("orders", eventlog.KindHub)
			fill(t, p, 1000)
			was := testkit.Value(p.Bounds(t.Context()))(t).Next
			out := &onWrite{after: 130 << 10, do: func() { testkit.Must(t, tt.change(y, p)) }}
			items, err := backup.Take(t.Context(), y.source(y.log), out)
			testkit.Must(t, err)
			testkit.That(t, out.do == nil, "nothing happened meanwhile")
			to := newYard(t)
			testkit.Must(t, backup.Restore(t.Context(), bytes.NewReader(out.Bytes()), items, to.target()))
			b := testkit.Value(to.partition("orders", 0).Bounds(t.Context()))(t)
			tt.check(t, b, was)
			got, err := backup.Receive(t.Context(), filepath.Join(t.TempDir(), "b"), "test", bytes.NewReader(out.Bytes()), nil)
			testkit.Must(t, err)
			testkit.Slices(t, got.Removed, append([]string{}, tt.notes...), "what is said of it")
			testkit.Equal(t, got.Events, int64(b.Next-b.First), "events")
		})
	}
}

// C7: a log that is removed before its turn goes on where it ended, so that checkpoints are not past it.
func TestALogIsRemovedBeforeItsTurn(t *testing.T) {
	y := newYard(t)
	p := y.provide("orders", eventlog.KindHub)
	fill(t, p, 20)
	y.provide("parked", eventlog.KindParked)
	var was eventlog.Bounds
	to, summary := y.restored(&meddler{y.log, map[string]func(){"parked/0": func() {
		fill(t, p, 20)
		was = testkit.Value(p.Bounds(t.Context()))(t)
		testkit.Must(t, y.log.Remove(t.Context(), "orders"))
	}}})
	testkit.Slices(t, summary.Removed, []string{"orders"}, "what is said of it")
	b := testkit.Value(to.partition("orders", 0).Bounds(t.Context()))(t)
	testkit.That(t, b.Empty() && b.Next == was.Next, "it goes on at %d, and had ended at %d", b.Next, was.Next)
}

// C7, H3: damaged events are said, and left out; those around them keep their numbers, on disk and on
// several nodes.
func TestDamageIsSaidAndLeftOut(t *testing.T) {
	y := newYard(t)
	p := y.provide("orders", eventlog.KindHub)
	fill(t, p, 300)
	y.set("blobs/a", "one two")
	y.bodies["one"] = "body"
	testkit.Must(t, y.log.Close())
	files := testkit.Value(y.mem.List("log/orders/0"))(t)
	for _, i := range []int{0, 2, len(files) - 1} { // near the beginning, in the middle, near the end
		name := "log/orders/0/" + files[i].Name
		at := int64(80)
		if i > 0 {
			at = 3000
		}
		testkit.Must(t, y.mem.Corrupt(name, at, 1))
	}
	y.open()
	p = y.provide("orders", eventlog.KindHub)
	to, summary := y.restored(y.log)
	lost := slices.DeleteFunc(slices.Clone(summary.Lost), func(s string) bool { return !strings.Contains(s, "partition 0 of log orders") })
	testkit.Equal(t, len(lost), 3, "stretches that are lost: %q", summary.Lost)
	testkit.That(t, strings.Contains(strings.Join(summary.Lost, "\n"), "body two: it could not be read"), "it says %q", summary.Lost)
	was, is := readable(t, p), readable(t, to.partition("orders", 0))
	testkit.That(t, len(was) > 280, "%d events can be read", len(was))
	testkit.Slices(t, is, was, "what can be read")
	a, b := testkit.Value(p.Bounds(t.Context()))(t), testkit.Value(to.partition("orders", 0).Bounds(t.Context()))(t)
	testkit.Equal(t, b.Next, a.Next, "the next number")

	nodes := newYard(t) // but for its engine
	storage := model.New(1, model.Faults{}).Node("a")
	defer storage.Close()
	engine := logs.New(logs.Config{Storage: storage, Store: nodes.meta, Log: testkit.Quiet()})
	defer func() { testkit.Check(t, engine.Close()) }()
	target := nodes.target()
	target.Log, target.ReadBack = engine, true
	y.restoredTo(y.log, target)
	testkit.Slices(t, readable(t, testkit.Value(engine.Partition(eventlog.PartitionID{Log: "orders"}))(t)), was, "what can be read on several nodes")
}

// readable are the numbers and texts of all events that can be read, and where none can.
func readable(t *testing.T, p eventlog.Partition) (all []string) {
	t.Helper()
	at := testkit.Value(p.Bounds(t.Context()))(t).First
	for {
		c, err := p.Cursor(t.Context(), eventlog.At(at))
		testkit.Must(t, err)
		var run eventlog.Run
		for err == nil {
			if run, err = c.TryNext(t.Context()); err == nil && run.Len() == 0 {
				return all
			}
			if err == nil {
				all = append(all, fmt.Sprintf("%d %d %q %q", run.First, run.Time.UnixMilli(), run.Events, run.Raw))
			}
		}
		damage, ok := errors.AsType[*eventlog.CorruptError](err)
		if !ok {
			t.Fatal(err)
		}
		at = damage.Next
	}
}

// C7: what the yard says went wrong arrives, and there is no backup then.
func TestAFailureIsSaid(t *testing.T) {
	y := newYard(t)
	fill(t, y.provide("orders", eventlog.KindHub), 100)
	ctx, cancel := context.WithCancelCause(t.Context())
	out := &onWrite{do: func() { cancel(errors.New("the yard is stopping")) }}
	_, err := backup.Take(ctx, y.source(&meddler{y.log, map[string]func(){"orders/0": func() { cancel(errors.New("the yard is stopping")) }}}), out)
	testkit.That(t, err != nil, "it goes on")
	dir := filepath.Join(t.TempDir(), "b")
	_, err = backup.Receive(t.Context(), dir, "test", &out.Buffer, nil)
	testkit.ErrorIs(t, err, archive.ErrFailed)
	testkit.That(t, strings.Contains(err.Error(), "the yard is stopping"), "it says %v", err)
	testkit.ErrorIs(t, testkit.Err(backup.Open(dir)), archive.ErrUnfinished)
}
