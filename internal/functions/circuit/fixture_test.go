package circuit

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

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/memory"
)

const function = "resize"

var (
	group   = processor.Group{Namespace: "yard", Hub: "images", Group: "resizer"}
	errDown = errors.New("the store is down")
	quiet   = slog.New(slog.DiscardHandler)
)

// faulty is one member's view of the store: it can be down, refuse, or lose answers. It cannot be
// watched.
type faulty struct {
	processor.Store
	mu   sync.Mutex
	down bool
	// lose, by operation, is how many of the next writes are made without an answer; deny how many
	// calls are not made.
	lose, deny map[string]int
	calls      map[string]int
	slows      map[string]time.Duration
}

func newFaulty(s processor.Store) *faulty {
	return &faulty{Store: s, lose: map[string]int{}, deny: map[string]int{}, calls: map[string]int{}, slows: map[string]time.Duration{}}
}

func (f *faulty) setDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
}

func (f *faulty) set(m map[string]int, op string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m[op] = n
}

// slow has an operation take so long.
func (f *faulty) slow(op string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slows[op] = d
}

func (f *faulty) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// enter tells whether a call is made, and whether its answer arrives, and how long it takes.
func (f *faulty) enter(op string) (deny, lose bool, takes time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[op]++
	takes = f.slows[op]
	if f.down || f.deny[op] > 0 {
		f.deny[op]--
		return true, false, takes
	}
	if f.lose[op] > 0 {
		f.lose[op]--
		return false, true, takes
	}
	return false, false, takes
}

func call[T any](f *faulty, op, key string, fn func() (T, error)) (T, error) {
	var none T
	what, _, _ := strings.Cut(key, "/")
	deny, lose, takes := f.enter(op + " " + what) // such as "put circuit"
	time.Sleep(takes)
	if deny {
		return none, errDown
	}
	v, err := fn()
	if lose && err == nil {
		return none, errDown
	}
	return v, err
}

func (f *faulty) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	return call(f, "entries", prefix, func() ([]processor.Entry, error) { return f.Store.Entries(ctx, g, prefix) })
}

func (f *faulty) Put(ctx context.Context, g processor.Group, entry processor.Entry) (processor.Entry, error) {
	return call(f, "put", entry.Key, func() (processor.Entry, error) { return f.Store.Put(ctx, g, entry) })
}

func (f *faulty) Remove(ctx context.Context, g processor.Group, entry processor.Entry) error {
	_, err := call(f, "remove", entry.Key, func() (struct{}, error) { return struct{}{}, f.Store.Remove(ctx, g, entry) })
	return err
}

// watchable is a faulty store that can be watched.
type watchable struct{ *faulty }

func (w watchable) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	return w.Store.(processor.Watcher).Watch(ctx, g, ready, changed)
}

// world is a store and the members that share it, within a bubble.
type world struct {
	t      *testing.T
	store  *memory.Store
	policy breaker.Policy
	poll   time.Duration
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, p breaker.Policy, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &world{t: t, store: memory.New(), policy: p}) })
}

// played is a member that runs, and what it told.
type played struct {
	*Member
	w     *world
	id    string
	store *faulty
	stop  context.CancelFunc
	ended chan struct{}

	mu       sync.Mutex
	reported []string
}

// start runs a member whose store can be watched; startPolling one whose cannot.
func (w *world) start(id string) *played {
	f := newFaulty(w.store)
	return w.startWith(id, f, watchable{f})
}

func (w *world) startPolling(id string) *played {
	f := newFaulty(w.store)
	return w.startWith(id, f, f)
}

func (w *world) startWith(id string, f *faulty, s processor.Store) *played {
	w.t.Helper()
	p := &played{w: w, id: id, store: f, ended: make(chan struct{})}
	p.Member = New(Config{
		Store: s, Group: group, Function: function, Instance: id, Policy: w.policy, Poll: w.poll, Log: quiet, OnChange: p.hear,
	})
	ctx, stop := context.WithCancel(w.t.Context())
	p.stop = stop
	go func() {
		defer close(p.ended)
		if err := p.Run(ctx); err != nil {
			w.t.Errorf("%s: Run gave %v", id, err)
		}
	}()
	w.t.Cleanup(p.leave)
	synctest.Wait()
	return p
}

func (p *played) hear(was, is breaker.Record) {
	p.Record() // is allowed
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reported = append(p.reported, fmt.Sprintf("%s→%s", was.State, is.State))
}

func (p *played) heard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.reported, " ")
}

// leave ends the member in good order.
func (p *played) leave() {
	p.stop()
	<-p.ended
}

// die ends it without a word.
func (p *played) die() {
	p.store.setDown(true)
	p.leave()
}

// failed tells of n failures and wants to hear whether the circuit is open.
func (p *played) failed(n int, open bool) {
	p.w.t.Helper()
	got, err := p.Failed(p.w.t.Context(), n, breaker.Sample{At: time.Now(), Partition: "0", Error: "no"})
	if err != nil || got != open {
		p.w.t.Fatalf("%s: %d failures: open %v, %v; want %v", p.id, n, got, err, open)
	}
}

func (p *played) is(want breaker.State) {
	p.w.t.Helper()
	if r, n := p.Record(); r.State != want {
		p.w.t.Fatalf("%s sees %s, want %s: %+v, %d failures", p.id, r.State, want, r, n)
	}
}

// knows wants so many failures to be known.
func (p *played) knows(want int) {
	p.w.t.Helper()
	if _, n := p.Record(); n != want {
		p.w.t.Fatalf("%s knows %d failures, want %d", p.id, n, want)
	}
}

func (p *played) mayPutAway(want bool) {
	p.w.t.Helper()
	if got, _, err := p.MayPutAway(p.w.t.Context(), AnyTerm, 1); err != nil || got == 1 != want {
		p.w.t.Fatalf("%s may put away: %v, %v; want %v", p.id, got, err, want)
	}
}

// putsAway wants to put so many events away and wants to hear how many may be.
func (p *played) putsAway(n, want int) {
	p.w.t.Helper()
	if got, _, err := p.MayPutAway(p.w.t.Context(), AnyTerm, n, breaker.Sample{At: time.Now(), Error: "no"}); err != nil || got != want {
		p.w.t.Fatalf("%s may put away %d of %d, %v; want %d", p.id, got, n, err, want)
	}
}

// waiter is somebody in Wait.
type waiter struct {
	t      *testing.T
	cancel context.CancelFunc
	leave  func()
	done   chan struct{}
	// Read after done is closed.
	pass Pass
	err  error
}

func (p *played) wait() *waiter {
	leaving := make(chan struct{})
	ctx, cancel := context.WithCancel(p.w.t.Context())
	w := &waiter{t: p.w.t, cancel: cancel, leave: sync.OnceFunc(func() { close(leaving) }), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.pass, w.err = p.Wait(ctx, leaving)
	}()
	p.w.t.Cleanup(func() { cancel(); <-w.done })
	synctest.Wait()
	return w
}

// passed tells whether it has come through.
func (w *waiter) passed() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return w.err == nil
	default:
		return false
	}
}

// stored is the circuit as it is in the store.
func (w *world) stored() breaker.Record {
	w.t.Helper()
	r, _, err := load(w.t.Context(), w.store, group, function)
	testkit.Must(w.t, err)
	return r
}

func (w *world) change(change func(breaker.Record) (breaker.Record, bool)) breaker.Record {
	w.t.Helper()
	r, err := Change(w.t.Context(), w.store, group, function, change)
	testkit.Must(w.t, err)
	return r
}

func (w *world) hold() breaker.Record {
	w.t.Helper()
	return w.change(func(r breaker.Record) (breaker.Record, bool) {
		return breaker.Hold(r, "by-hand", "ann", "let me look", time.Now())
	})
}

func (w *world) resume() breaker.Record {
	w.t.Helper()
	return w.change(func(r breaker.Record) (breaker.Record, bool) { return breaker.Resume(r, "ann", "mended", time.Now()) })
}

// tallies are the keys of tallies in the store.
func (w *world) tallies() (keys []string) {
	w.t.Helper()
	entries, err := w.store.Entries(w.t.Context(), group, TallyPrefix)
	testkit.Must(w.t, err)
	for _, f := range entries {
		keys = append(keys, f.Key)
	}
	slices.Sort(keys)
	return keys
}

// put writes an entry over what is there.
func (w *world) put(key, value string) {
	w.t.Helper()
	entries, err := w.store.Entries(w.t.Context(), group, key[:strings.LastIndexByte(key, '/')+1])
	testkit.Must(w.t, err)
	f := processor.Entry{Key: key, Value: []byte(value)}
	for _, there := range entries {
		if there.Key == key {
			f.Version = there.Version
		}
	}
	testkit.Must(w.t, testkit.Err(w.store.Put(w.t.Context(), group, f)))
}

// pass lets time go by until all is still.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// remove takes an entry away, whatever its version.
func (w *world) remove(key string) {
	w.t.Helper()
	entries, err := w.store.Entries(w.t.Context(), group, "")
	testkit.Must(w.t, err)
	for _, f := range entries {
		if f.Key == key {
			err = w.store.Remove(w.t.Context(), group, f)
		}
	}
	testkit.Must(w.t, err)
}
