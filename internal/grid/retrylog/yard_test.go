package retrylog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is retry logs with a real engine in memory, or on servers, which can be ended and opened again.
type yard struct {
	*Logs
	t      testing.TB
	cfg    Config
	mem    *vfs.Mem
	meta   *metatest.Faulty
	sync   disk.SyncMode
	engine eventlog.Engine
	shared *storagetest.Storage // in place of mem where storage is on servers; else nil
	faults *logtest.Faulty      // around the engine
	taker  *taker
	stop   func()
}

func newYard(t testing.TB, cfg Config) *yard {
	t.Helper()
	if cfg.Ladder == nil {
		cfg.Ladder = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute}
	}
	if cfg.Log == nil {
		cfg.Log = testkit.Quiet()
	}
	y := &yard{t: t, cfg: cfg, mem: vfs.NewMem(), meta: metatest.NewFaulty(metatest.NewMemory()), stop: func() {}}
	if testengine.OverServers() {
		y.shared = storagetest.Open(t, storagetest.Config{})
		y.meta = y.shared.Meta
	}
	y.cfg.Meta = y.meta
	y.open()
	t.Cleanup(func() {
		y.stop()
		testkit.Check(t, y.engine.Close())
	})
	return y
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T, y *yard)) {
	synctest.Test(t, func(t *testing.T) { test(t, newYard(t, Config{})) })
}

// open begins a life, on an engine that may be wrapped.
func (y *yard) open(wrap ...func(eventlog.Engine) eventlog.Engine) {
	y.t.Helper()
	y.openEngine()
	y.cfg.Engine = y.faults
	for _, wrap := range wrap {
		y.cfg.Engine = wrap(y.faults)
	}
	y.Logs = testkit.Value(Open(context.Background(), y.cfg))(y.t)
	y.taker = &taker{}
}

// openEngine opens the engine on what there is.
func (y *yard) openEngine() {
	y.t.Helper()
	if y.shared == nil {
		y.engine = testkit.Value(disk.Open(disk.Config{FS: y.mem, Sync: y.sync, SegmentBytes: 64 << 10, Log: testkit.Quiet()}))(y.t)
		y.faults = logtest.NewFaulty(y.engine)
		return
	}
	if y.engine != nil {
		y.shared.Restart(y.t)
	}
	y.engine, y.faults = y.shared.Engine, y.shared.Engine
}

// restart ends the process in good order and begins another life.
func (y *yard) restart(wrap ...func(eventlog.Engine) eventlog.Engine) {
	y.t.Helper()
	y.stop()
	testkit.Must(y.t, y.engine.Close())
	y.open(wrap...)
}

// kill ends the process as kill -9 does. What Run saves at its end is not saved.
func (y *yard) kill() {
	y.t.Helper()
	y.crash(y.mem.CrashProcess())
}

func (y *yard) crash(after *vfs.Mem) {
	y.t.Helper()
	testengine.NeedsFiles(y.t)
	dead := metatest.NewFaulty(metatest.NewMemory()) // that of a process that has ended
	dead.Inject(func(metatest.Op) error { return meta.ErrClosed })
	for _, b := range y.books.all() {
		b.mu.Lock()
		b.store = dead
		b.mu.Unlock()
	}
	y.stop()
	_ = y.engine.Close()
	y.mem = after
	y.open()
}

// run runs the retry logs until stop or the test's end.
func (y *yard) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	logs, taker := y.Logs, y.taker
	go func() { ended <- logs.Run(ctx, taker.take) }()
	y.stop = sync.OnceFunc(func() {
		cancel()
		testkit.Check(y.t, <-ended, "Run ended with")
	})
}

func (y *yard) put(wait time.Duration, deliveries ...pending.Delivery) {
	y.t.Helper()
	testkit.Must(y.t, y.Put(context.Background(), wait, deliveries))
}

// taker notes what it is handed, and when.
type taker struct {
	mu   sync.Mutex
	all  []taken
	hook func(e Entry) // called for each before it is noted
}

type taken struct {
	Entry
	at    time.Time
	batch int
}

func (x *taker) take(_ context.Context, due []Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	batch := 1
	if len(x.all) > 0 {
		batch += x.all[len(x.all)-1].batch
	}
	for _, e := range due {
		if x.hook != nil {
			x.hook(e)
		}
		x.all = append(x.all, taken{Entry: e, at: time.Now(), batch: batch})
	}
}

// handed gives what was handed out so far and forgets it.
func (x *taker) handed() []taken {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.all
	x.all = nil
	return all
}

func names(all []taken) string {
	var names []string
	for _, e := range all {
		names = append(names, nameOf(e.Delivery))
	}
	return strings.Join(names, " ")
}

// thing makes a pending delivery that can be told by its name.
func thing(name string) pending.Delivery { return thingOf("mailer2345678", name) }

func thingOf(subscription, name string) pending.Delivery {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return pending.Delivery{
		Subscription: subscription, Source: "topic-a", Published: now, Alive: now, Attempts: 1,
		Form: schema.EventGridForm, Event: fmt.Appendf(nil, "{%q:1}", name),
	}
}

func things(n int) []pending.Delivery {
	var all []pending.Delivery
	for i := range n {
		all = append(all, thing(fmt.Sprint(i)))
	}
	return all
}

func nameOf(p pending.Delivery) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(string(p.Event), `{"`), `"`)
	return name
}

// wantHanded waits for nothing but what can happen now.
func (y *yard) wantHanded(want string) []taken {
	y.t.Helper()
	synctest.Wait()
	got := y.taker.handed()
	testkit.Equal(y.t, names(got), want, "handed out")
	return got
}

// wantAfter lets time pass first.
func (y *yard) wantAfter(d time.Duration, want string) []taken {
	y.t.Helper()
	time.Sleep(d)
	return y.wantHanded(want)
}

func done(all []taken) {
	for _, e := range all {
		e.Done()
	}
}

func doneAll(all []Entry) {
	for _, e := range all {
		e.Done()
	}
}

// damage inverts a byte in the middle of the newest file of a log.
func (y *yard) damage(id eventlog.PartitionID) {
	y.t.Helper()
	dir := fmt.Sprintf("log/%s/%d", id.Log, id.Number)
	files := testkit.Value(y.mem.List(dir))(y.t)
	slices.SortFunc(files, func(a, b vfs.Entry) int { return strings.Compare(a.Name, b.Name) })
	testkit.Must(y.t, y.mem.Corrupt(dir+"/"+files[len(files)-1].Name, 700, 0xff))
}
