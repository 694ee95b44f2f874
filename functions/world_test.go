package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/functions/triage"
	"github.com/eventyard/eventyard/internal/setaside/ranges"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/testkit/fakehub"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/memory"
)

var testGroup = processor.Group{Namespace: "space.example", Hub: "orders", Group: "$Default"}

// world is a hub "orders", a poison hub, a store, and the hosts that work on them, in a synctest
// bubble.
type world struct {
	t      *testing.T
	space  *fakeSpace
	orders *fakehub.Hub
	poison *fakehub.Hub
	store  *memory.Store

	mu    sync.Mutex
	calls []string // each call as "partition:texts attempt"; guarded by mu
	done  map[string][]string
	errs  []error // told to OnError
	log   strings.Builder
}

// Write takes the log.
func (w *world) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// bubble runs a test in a world of its own.
func bubble(t *testing.T, partitions int, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, space: newFakeSpace(), store: memory.New(), done: map[string][]string{}}
		w.orders = w.space.make("orders", partitions)
		w.poison = w.space.make("bill-poison", 1)
		test(w)
	})
}

// instance is one host at work.
type instance struct {
	*Host
	w      *world
	life   *life
	cancel context.CancelFunc
	done   chan error
}

// host makes a host that is not running.
func (w *world) host(id string, l *life) *Host {
	return NewHostIn(w.space.view(l), Config{
		ID: id, Store: &store{w.store, l}, OnError: w.onError,
		Log: slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
}

func (w *world) onError(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

// binding is one as the tests want it; what they do not say is the default.
func binding() Binding { return Binding{Hub: "orders", Retry: Fixed(2, time.Second)} }

// start runs a function "bill" until it is stopped or the test ends.
func (w *world) start(id string, handle Handler, b Binding) *instance {
	return w.startIn(&life{}, id, handle, b)
}

func (w *world) startIn(l *life, id string, handle Handler, b Binding) *instance {
	h := w.host(id, l)
	h.Handle("bill", w.noted(l, handle), b)
	return w.run(h, l)
}

func (w *world) run(h *Host, l *life) *instance {
	ctx, cancel := context.WithCancel(context.Background())
	in := &instance{Host: h, w: w, life: l, cancel: cancel, done: make(chan error, 1)}
	l.onDie = cancel
	go func() { in.done <- h.Run(ctx) }()
	w.t.Cleanup(func() { cancel() })
	return in
}

// noted notes each call, and what of it was done. A dead instance makes no calls.
func (w *world) noted(l *life, handle Handler) Handler {
	return func(ctx context.Context, b *Batch) error {
		if l.alive() != nil {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		w.mu.Lock()
		w.calls = append(w.calls, fmt.Sprintf("%s:%s %d", b.Partition, texts(b), b.Attempt))
		w.mu.Unlock()
		err := handle(ctx, b)
		if err == nil && l.alive() == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, ev := range b.Events {
				w.done[b.Partition] = append(w.done[b.Partition], string(ev.Body))
			}
		}
		return err
	}
}

// texts are a batch's, such as "0-3,5".
func texts(b *Batch) string {
	var set ranges.Set
	for _, ev := range b.Events {
		set = set.Add(ev.Sequence)
	}
	return set.String()
}

// stop stops in good order and waits.
func (in *instance) stop() {
	in.w.t.Helper()
	in.cancel()
	if err := <-in.done; err != nil {
		in.w.t.Errorf("%s ended with %v", in.ID(), err)
	}
}

// after lets time pass and everything that happens then happen.
func after(d time.Duration) {
	time.Sleep(d) // the bubble's clock, not ours
	synctest.Wait()
}

func (w *world) gotCalls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

func (w *world) wantCalls(want ...string) {
	w.t.Helper()
	if got := w.gotCalls(); !slices.Equal(got, want) {
		w.t.Fatalf("calls:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func (w *world) gotDone(partition string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.done[partition])
}

// poisonEvents are those in the poison hub.
func (w *world) poisonEvents() []poison.Record {
	var list []poison.Record
	for _, p := range w.poison.IDs() {
		for _, ev := range w.poison.All(p) {
			l, ok := poison.Read(ev)
			testkit.MustThat(w.t, ok, "in the poison hub is no poison event: %+v", ev)
			list = append(list, l)
		}
	}
	return list
}

func (w *world) wantAway(ids ...string) {
	w.t.Helper()
	var got []string
	for _, l := range w.poisonEvents() {
		got = append(got, strings.TrimPrefix(l.ID, "bill/orders/"))
	}
	testkit.MustSlices(w.t, got, ids, "put away")
}

// saved is the stored checkpoint of a partition; -1 if there is none.
func (w *world) saved(partition string) int64 {
	list, err := w.store.Checkpoints(context.Background(), testGroup)
	testkit.Must(w.t, err)
	for _, c := range list {
		if c.Partition == partition {
			return c.Sequence
		}
	}
	return -1
}

func (w *world) wantSaved(partition string, seq int64) {
	w.t.Helper()
	testkit.MustEqual(w.t, w.saved(partition), seq, "partition %s: checkpoint", partition)
}

// force moves a checkpoint as an operator does.
func (w *world) force(partition string, seq int64) {
	w.t.Helper()
	list, err := w.store.Checkpoints(context.Background(), testGroup)
	testkit.Must(w.t, err)
	c := processor.Checkpoint{Partition: partition}
	for _, had := range list {
		if had.Partition == partition {
			c = had
		}
	}
	c.Sequence, c.Offset, c.Epoch = seq, fmt.Sprintf("o%d", seq), 0
	testkit.Must(w.t, testkit.Err(w.store.Force(context.Background(), testGroup, c)))
}

// work is the stored record of a partition.
func (w *world) work(partition string) triage.Work {
	entries, err := w.store.Entries(context.Background(), testGroup, workPrefix)
	testkit.Must(w.t, err)
	for _, f := range entries {
		if f.Key == workPrefix+"bill/"+partition {
			work, err := triage.DecodeWork(f.Value)
			testkit.Must(w.t, err)
			return work
		}
	}
	return triage.Work{}
}

func (w *world) state() string {
	list, err := circuit.Read(context.Background(), w.store, testGroup, "bill")
	testkit.Must(w.t, err)
	if len(list) == 0 {
		return "closed"
	}
	return string(list[0].Record.State)
}

func (w *world) wantState(want string) {
	w.t.Helper()
	testkit.MustEqual(w.t, w.state(), want, "the circuit")
}

func (w *world) reported(target error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.errs, func(err error) bool { return errors.Is(err, target) })
}

// show is for messages of failed tests.
func show(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

var errBad = errors.New("bad event")

// failOn fails batches that have one of these texts.
func failOn(bad ...string) Handler {
	return func(_ context.Context, b *Batch) error {
		for _, ev := range b.Events {
			if slices.Contains(bad, string(ev.Body)) {
				return fmt.Errorf("%w %s", errBad, ev.Body)
			}
		}
		return nil
	}
}
