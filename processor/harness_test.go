package processor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/testkit/fakehub"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/memory"
)

var group = processor.Group{Namespace: "space.example", Hub: "orders", Group: "$Default"}

// world is a hub and a store with the instances that work on them, in a synctest bubble.
type world struct {
	t     *testing.T
	hub   *fakehub.Hub
	store *shared
	mu    sync.Mutex
	// handled are the events of calls that returned nil, by partition; guarded by mu.
	handled map[string][]int64
	errs    []error // told to OnError; guarded by mu
	states  []string
}

// shared is the store, in which leases can hang on presences or cannot.
type shared struct {
	*memory.Store
	keeps bool
}

func (s *shared) KeepsPresence() bool { return s.keeps }

// bubble runs a test in worlds of its own: leases are renewed one by one, and by presence.
func bubble(t *testing.T, partitions int, test func(w *world)) {
	t.Run("leases", func(t *testing.T) { bubbleWith(t, partitions, false, test) })
	t.Run("presence", func(t *testing.T) { bubbleWith(t, partitions, true, test) })
}

func bubbleWith(t *testing.T, partitions int, keepsPresence bool, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		test(&world{t: t, hub: fakehub.New("orders", partitions), store: &shared{memory.New(), keepsPresence}, handled: map[string][]int64{}})
	})
}

// running is one instance at work.
type running struct {
	*processor.Processor
	w      *world
	cancel context.CancelFunc
	done   chan error
}

// config is a configuration as the tests want it: what they do not say is the default.
func (w *world) config(id string) processor.Config {
	return processor.Config{ID: id, Store: w.store, OnError: w.onError, OnState: w.onState, Log: slog.New(slog.DiscardHandler)}
}

func (w *world) onError(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

func (w *world) onState(s processor.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states = append(w.states, s.Partition+" "+string(s.State))
}

// start runs an instance until stop, or until the test ends; then it has to end without an error,
// unless that was taken from done.
func (w *world) start(cfg processor.Config, handle processor.Handler) *running {
	p := processor.New(w.hub, cfg)
	return w.run(p, func(ctx context.Context) error { return p.Run(ctx, handle) })
}

func (w *world) startHost(cfg processor.Config, worker func(string) processor.Worker) *running {
	p := processor.New(w.hub, cfg)
	return w.run(p, func(ctx context.Context) error { return p.RunHost(ctx, worker) })
}

func (w *world) run(p *processor.Processor, run func(context.Context) error) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Processor: p, w: w, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- run(ctx); close(r.done) }()
	w.t.Cleanup(r.stop)
	return r
}

// faulty is the configuration of an instance with a view of the store of its own, and that view.
func (w *world) faulty(id string) (processor.Config, *faulty) {
	cfg, store := w.config(id), newFaulty(w.store)
	cfg.Store = store
	return cfg, store
}

// stop stops gracefully and waits. The end of the test does it, too.
func (r *running) stop() {
	r.w.t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		r.w.t.Errorf("%s ended with %v", r.ID(), err)
	}
}

// stopLeaving stops an instance that cannot hand everything over.
func (r *running) stopLeaving(want string) {
	r.w.t.Helper()
	r.cancel()
	want = "stop processor: not everything was handed over: " + want
	if err := <-r.done; !errors.Is(err, processor.ErrNotHandedOver) || err.Error() != want {
		r.w.t.Errorf("%s ended with %v, want %s", r.ID(), err, want)
	}
}

// note is a handler that only notes what it got, and checkpoints.
func (w *world) note(ctx context.Context, b *processor.Batch) error {
	w.noteOnly(ctx, b)
	return b.Checkpoint(ctx)
}

func (w *world) noteOnly(_ context.Context, b *processor.Batch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range b.Events {
		w.handled[ev.Partition] = append(w.handled[ev.Partition], ev.Sequence)
	}
	return nil
}

// failing notes like note, but the first attempt at each batch fails.
func (w *world) failing(ctx context.Context, b *processor.Batch) error {
	if b.Attempt == 1 {
		return errHandler
	}
	return w.note(ctx, b)
}

// after lets time pass and everything that happens then happen.
func after(d time.Duration) {
	time.Sleep(d) // the bubble's clock, not ours
	synctest.Wait()
}

// feed sends events to a partition, with these keys in turn, and lets time pass.
func (w *world) feed(d time.Duration, partition string, n int, keys ...string) {
	w.hub.SendN(partition, n, keys...)
	after(d)
}

// feedAll sends events to each partition, and lets time pass.
func (w *world) feedAll(d time.Duration, n int) {
	w.hub.SendAll(n)
	after(d)
}

// got gives what was handled of a partition.
func (w *world) got(partition string) []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.handled[partition])
}

func (w *world) wantGot(partition string, want ...int64) {
	w.t.Helper()
	testkit.MustSlices(w.t, w.got(partition), want, "partition %s: handled", partition)
}

// wantInAnyOrder is for lanes.
func (w *world) wantInAnyOrder(partition string, want ...int64) {
	w.t.Helper()
	testkit.MustSlices(w.t, slices.Sorted(slices.Values(w.got(partition))), want, "partition %s: handled", partition)
}

// wantAll wants each event of every partition exactly once and in order.
func (w *world) wantAll() {
	w.t.Helper()
	for _, p := range w.hub.IDs() {
		w.wantGot(p, upTo(w.hub.Next(p))...)
	}
}

func upTo(n int64) []int64 {
	var list []int64
	for i := range n {
		list = append(list, i)
	}
	return list
}

// owners says who has which partitions, such as "a:0,1 b:2".
func (w *world) owners() string {
	leases, err := w.store.Leases(context.Background(), group)
	testkit.Must(w.t, err)
	by := map[string][]string{}
	for _, l := range leases {
		if l.Owner != "" {
			by[l.Owner] = append(by[l.Owner], l.Partition)
		}
	}
	var list []string
	for owner, parts := range by {
		slices.Sort(parts)
		list = append(list, owner+":"+strings.Join(parts, ","))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// counts says how many partitions each instance has.
func (w *world) counts() map[string]int {
	leases, err := w.store.Leases(context.Background(), group)
	testkit.Must(w.t, err)
	n := map[string]int{}
	for _, l := range leases {
		if l.Owner != "" {
			n[l.Owner]++
		}
	}
	return n
}

// wantCounts wants that the instances a and b have so many partitions.
func (w *world) wantCounts(a, b int) {
	w.t.Helper()
	if n := w.counts(); n["a"] != a || n["b"] != b {
		w.t.Errorf("owners %s", w.owners())
	}
}

func (w *world) lease(partition string) processor.Lease {
	leases, err := w.store.Leases(context.Background(), group)
	testkit.Must(w.t, err)
	for _, l := range leases {
		if l.Partition == partition {
			return l
		}
	}
	return processor.Lease{}
}

// saved is the stored checkpoint of a partition; Sequence -1 if there is none.
func (w *world) saved(partition string) processor.Checkpoint {
	list, err := w.store.Checkpoints(context.Background(), group)
	testkit.Must(w.t, err)
	for _, c := range list {
		if c.Partition == partition {
			return c
		}
	}
	return processor.Checkpoint{Sequence: -1}
}

func (w *world) wantSaved(partition string, seq int64) {
	w.t.Helper()
	testkit.MustEqual(w.t, w.saved(partition).Sequence, seq, "partition %s: checkpoint", partition)
}

// force moves a checkpoint as an operator does.
func (w *world) force(partition string, seq int64) {
	w.t.Helper()
	c := w.saved(partition)
	c.Partition, c.Sequence, c.Offset, c.Epoch = partition, seq, fmt.Sprintf("o%d", seq), 0
	testkit.Must(w.t, testkit.Err(w.store.Force(context.Background(), group, c)))
}

// entries are the keys of the group's entries.
func (w *world) entries() []string {
	list, err := w.store.Entries(context.Background(), group, "")
	testkit.Must(w.t, err)
	var keys []string
	for _, f := range list {
		keys = append(keys, f.Key)
	}
	slices.Sort(keys)
	return keys
}

// wantNothingLeft wants that no instance has left anything behind.
func (w *world) wantNothingLeft() {
	w.t.Helper()
	if w.owners() != "" || len(w.entries()) != 0 {
		w.t.Errorf("left behind %s %v", w.owners(), w.entries())
	}
}

// reported tells whether OnError has heard of target.
func (w *world) reported(target error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.errs, func(err error) bool { return errors.Is(err, target) })
}

func (w *world) wantNoErrors() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	testkit.Equal(w.t, len(w.errs), 0, "OnError was told of %v", w.errs)
}

func (w *world) wantReported(target error) {
	w.t.Helper()
	if !w.reported(target) {
		w.t.Fatalf("OnError was not told of %v, but of %v", target, w.errs)
	}
}

func (w *world) status(r *running, partition string) processor.Status {
	for _, s := range r.Status() {
		if s.Partition == partition {
			return s
		}
	}
	return processor.Status{}
}
