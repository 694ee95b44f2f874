package deadletter

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/quota"
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

// yard is a service on the real engine in memory, or on servers, with folders on the real disk. It works
// inside a synctest bubble and outside.
type yard struct {
	t      *testing.T
	mem    *vfs.Mem
	meta   *metatest.Faulty
	topics *definitions
	hubs   *hubs
	data   string
	engine eventlog.Engine
	faults *logtest.Faulty      // around the engine
	shared *storagetest.Storage // in place of mem where storage is on servers; else nil
	sync   disk.SyncMode
	// deliver takes what is redriven; nil: it goes well.
	deliver func([]pending.Delivery) error
	*Service
}

func newYard(t *testing.T, change ...func(*Config)) *yard {
	y := &yard{t: t, mem: vfs.NewMem(), meta: metatest.NewFaulty(metatest.NewMemory()), topics: newDefinitions(), hubs: &hubs{}, data: t.TempDir()}
	if testengine.OverServers() {
		y.shared = storagetest.Open(t, storagetest.Config{})
		y.meta = y.shared.Meta
	}
	y.open(change...)
	t.Cleanup(func() { _ = y.engine.Close() })
	return y
}

// openEngine opens the engine on what there is.
func (y *yard) openEngine(log *slog.Logger) {
	y.t.Helper()
	if y.shared == nil {
		y.engine = testkit.Value(disk.Open(disk.Config{FS: y.mem, SegmentBytes: 1 << 20, Sync: y.sync, Log: log}))(y.t)
		y.faults = logtest.NewFaulty(y.engine)
		return
	}
	if y.engine != nil {
		y.shared.Restart(y.t)
	}
	y.engine, y.faults = y.shared.Engine, y.shared.Engine
}

// yardWith has a subscription whose letters go to a target.
func yardWith(t *testing.T, target string) (*yard, *topics.Subscription) {
	y := newYard(t)
	return y, y.subscribe("billing", target, schema.EventGrid)
}

// open opens the service on what is there, as after a start.
func (y *yard) open(change ...func(*Config)) {
	y.t.Helper()
	log := slog.New(slog.NewTextHandler(y.t.Output(), nil))
	y.openEngine(log)
	cfg := Config{Engine: y.faults, Meta: y.meta, Topics: y.topics, Broker: y.hubs, DataDir: y.data, Log: log}
	for _, c := range change {
		c(&cfg)
	}
	y.Service = testkit.Value(Open(y.t.Context(), cfg))(y.t)
	y.RedriveTo(func(_ context.Context, deliveries []pending.Delivery) error {
		if y.deliver == nil {
			return nil
		}
		return y.deliver(deliveries)
	})
}

// reopen is a restart.
func (y *yard) reopen(change ...func(*Config)) {
	y.t.Helper()
	testkit.Must(y.t, y.engine.Close())
	y.open(change...)
}

// bubble runs a test in virtual time, with a service that writes letters at once.
func bubble(t *testing.T, test func(t *testing.T, y *yard)) {
	synctest.Test(t, func(t *testing.T) { test(t, newYard(t, func(c *Config) { c.Delay = -1 })) })
}

// withTarget is the same, with a subscription whose letters go to a target.
func withTarget(t *testing.T, target string, test func(t *testing.T, y *yard, sub *topics.Subscription)) {
	bubble(t, func(t *testing.T, y *yard) { test(t, y, y.subscribe("billing", target, schema.EventGrid)) })
}

// wantCounts is what is given up and what waits of a subscription.
func (y *yard) wantCounts(sub *topics.Subscription, dropped, unwritten int64) {
	y.t.Helper()
	c := y.counts(sub.ID)
	testkit.Slices(y.t, []int64{c.Dropped, c.Unwritten}, []int64{dropped, unwritten}, "dropped and unwritten of %+v", c)
}

// wantSent is how many letters hubs have got, and what the last has in it.
func (y *yard) wantSent(n int, text string) {
	y.t.Helper()
	testkit.MustEqual(y.t, len(y.hubs.sent), n, "letters sent")
	if !strings.Contains(y.hubs.sent[n-1], text) {
		y.t.Errorf("sent %v", y.hubs.sent)
	}
}

// wantFiled is how many letters the files beneath a folder have.
func (y *yard) wantFiled(dir string, n int) {
	y.t.Helper()
	testkit.Equal(y.t, len(lettersOf(y.t, files(y.t, dir))), n, "letters in %s", dir)
}

// full is what makes a store refuse changes.
func full(op metatest.Op) error {
	if op.Kind == metatest.OpSet {
		return meta.ErrNoSpace
	}
	return nil
}

// pass lets virtual time pass, and all be done that is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (y *yard) counts(id string) Counts {
	y.t.Helper()
	c := testkit.Value(y.Counts(y.t.Context(), id))(y.t)
	return c
}

func (y *yard) list(id string, q Query) Page {
	y.t.Helper()
	page := testkit.Value(y.List(y.t.Context(), id, q))(y.t)
	return page
}

func (y *yard) redrive(id string, q Query, o RedriveOptions) Redriven {
	y.t.Helper()
	done := testkit.Value(y.Redrive(y.t.Context(), id, q, o))(y.t)
	return done
}

func (y *yard) purge(id string, q Query) int {
	y.t.Helper()
	n := testkit.Value(y.Purge(y.t.Context(), id, q))(y.t)
	return n
}

// run runs the service until the test says stop.
func (y *yard) run() (stop func()) {
	ctx, cancel := context.WithCancel(y.t.Context())
	done := make(chan error, 1)
	go func() { done <- y.Run(ctx) }()
	return func() {
		cancel()
		testkit.Must(y.t, <-done)
	}
}

// definitions are topics and subscriptions without a registry.
type definitions struct {
	mu        sync.Mutex
	snapshot  *topics.Snapshot
	listeners []func()
	published []string
	unheard   map[string]bool // subscriptions that the store has and the snapshot does not
}

func newDefinitions() *definitions {
	return &definitions{snapshot: &topics.Snapshot{
		Topics: map[string]*topics.Topic{"orders": {Name: "orders", ID: "t1", Resource: "/topics/orders"}},
	}}
}

func (d *definitions) Snapshot() *topics.Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.snapshot
}

func (d *definitions) OnChange(f func()) func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listeners = append(d.listeners, f)
	return func() {}
}

func (d *definitions) Deleted(_ context.Context, id string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.snapshot.Subscriptions.Get(id) == nil && !d.unheard[id], nil
}

func (d *definitions) Announce(_ context.Context, events [][]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range events {
		d.published = append(d.published, topics.YardEvents+" "+string(e))
	}
	return nil
}

// set makes or, for nil, deletes a subscription.
func (d *definitions) set(id string, s *topics.Subscription) {
	d.mu.Lock()
	all := slices.DeleteFunc(slices.Collect(d.snapshot.Subscriptions.All()), func(s *topics.Subscription) bool { return s.ID == id })
	if s != nil {
		all = append(all, s)
	}
	next := &topics.Snapshot{Topics: d.snapshot.Topics, Subscriptions: topics.IndexOf(all...)}
	d.snapshot = next
	listeners := d.listeners
	d.mu.Unlock()
	for _, f := range listeners {
		f()
	}
}

// hubs takes what is sent to hubs.
type hubs struct {
	mu   sync.Mutex
	sent []string
	ids  []any
	// properties are those of the events.
	properties []map[string]any
	fail       error
	quota      *quota.Meter // nil: none
	// takes is how long a hub takes, whatever the caller's context says.
	takes time.Duration
	under atomic.Int64
}

func (h *hubs) set(fail error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail = fail
}

func (h *hubs) Publish(_ context.Context, hub string, _ broker.Target, events []eventlog.Event) (broker.Published, error) {
	h.under.Add(1)
	defer h.under.Add(-1)
	if h.takes > 0 {
		time.Sleep(h.takes)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return broker.Published{}, h.fail
	}
	batch := eventlog.Batch{Events: events}
	if err := quota.Take(len(events), batch.Bytes(), time.Now(), h.quota); err != nil {
		return broker.Published{}, err
	}
	for _, e := range events {
		h.sent = append(h.sent, hub+" "+string(e.Message))
		decoded, err := message.Decode(e.Message)
		if err != nil {
			return broker.Published{}, err
		}
		h.ids, h.properties = append(h.ids, decoded.MessageID), append(h.properties, decoded.Properties)
	}
	return broker.Published{}, nil
}

// subscribe makes a subscription of the topic orders with a target.
func (y *yard) subscribe(name, target string, output schema.Kind) *topics.Subscription {
	p := testkit.Value(topics.ParseTarget(target))(y.t)
	s := &topics.Subscription{
		Name: name, ID: strings.Repeat("a", 13-len(name)) + strings.ToLower(name), Source: topics.Source{Topic: "orders"}, SourceID: "t1",
		Settings: topics.Settings{Output: output, DeadLetter: p},
	}
	y.topics.set(s.ID, s)
	return s
}

// letter is an event that could not be delivered.
func letter(s *topics.Subscription, n int) pending.Delivery {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	return pending.Delivery{
		Subscription: s.ID, Source: "t1", Sequence: int64(n), Published: at, Alive: at, Attempts: 3, LastAttempt: at.Add(time.Minute),
		LastOutcome: retry.NotFound, LastStatus: 404, Reason: retry.ReasonRefused, Form: schema.EventGridForm,
		Event: fmt.Appendf(nil, `{"id":"e%d","subject":"/s","eventType":"order","eventTime":"2026-01-31T12:00:00Z","data":{"n":%d}}`, n, n),
	}
}

func (y *yard) die(s *topics.Subscription, numbers ...int) {
	y.t.Helper()
	var all []pending.Delivery
	for _, n := range numbers {
		all = append(all, letter(s, n))
	}
	testkit.Must(y.t, y.Put(y.t.Context(), s, all))
}

// files gives the content of all files beneath a folder, by name.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return found
}

// lettersOf reads the arrays in files.
func lettersOf(t testing.TB, found map[string]string) (all []map[string]any) {
	t.Helper()
	for name, content := range found {
		var some []map[string]any
		testkit.Must(t, json.Unmarshal([]byte(content), &some), "%s", name)
		all = append(all, some...)
	}
	return all
}
