package placement

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is some nodes over one store, and what their parts have seen.
type yard struct {
	t      *testing.T
	memory *metatest.Memory

	mu      sync.Mutex
	working map[int]map[string]bool // shards, and at which nodes they are at work; guarded by mu
	epochs  map[int]shards.Epoch    // the newest that has begun; guarded by mu
	causes  map[error]int           // why parts have ended; guarded by mu
	overlap int                     // how often two were at work; guarded by mu
}

// member is one node.
type member struct {
	*Placement
	store *metatest.Faulty
	cut   atomic.Bool // the store does not answer it
	stop  func()
}

func newYard(t *testing.T) *yard {
	return &yard{t: t, memory: metatest.NewMemory(), working: map[int]map[string]bool{}, epochs: map[int]shards.Epoch{}, causes: map[error]int{}}
}

func (y *yard) node(name string) *member {
	y.t.Helper()
	m := &member{store: metatest.NewFaulty(y.memory)}
	m.store.Inject(func(metatest.Op) error {
		if m.cut.Load() {
			return meta.ErrUnavailable
		}
		return nil
	})
	var err error
	m.Placement, err = New(Config{Meta: m.store, Node: name, Log: testkit.Quiet(), Parts: []Part{
		func(ctx context.Context, held shards.Held) error { return y.work(ctx, name, held) },
	}})
	testkit.Must(y.t, err)
	m.stop = testkit.Run(y.t, m.Run)
	return m
}

// work is a part. It takes a moment to end.
func (y *yard) work(ctx context.Context, name string, held shards.Held) error {
	y.mu.Lock()
	if y.working[held.Shard] == nil {
		y.working[held.Shard] = map[string]bool{}
	}
	y.working[held.Shard][name] = true
	if len(y.working[held.Shard]) > 1 {
		y.overlap++
	}
	if held.Epoch <= y.epochs[held.Shard] {
		y.t.Errorf("shard %s is begun under epoch %d, it had %d", held.Name(), held.Epoch, y.epochs[held.Shard])
	}
	y.epochs[held.Shard] = held.Epoch
	y.mu.Unlock()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), shards.ErrLost) {
		time.Sleep(100 * time.Millisecond)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.working[held.Shard], name)
	y.causes[context.Cause(ctx)]++
	return nil
}

// wantShare waits for as long as it may take and expects all shards to be at work once each, and each
// of the nodes to have a fair share.
func (y *yard) wantShare(within time.Duration, members ...*member) {
	y.t.Helper()
	time.Sleep(within)
	synctest.Wait()
	y.mu.Lock()
	defer y.mu.Unlock()
	for shard := range shards.Count {
		if len(y.working[shard]) != 1 {
			y.t.Errorf("shard %02x is at work at %v", shard, y.working[shard])
		}
	}
	for _, m := range members {
		if n := len(m.Held()); n < shards.Count/len(members) || n > shards.Count/len(members)+1 {
			y.t.Errorf("%s has %d shards of %d among %d nodes", m.cfg.Node, n, shards.Count, len(members))
		}
		for _, held := range m.Held() {
			owner, err := m.Owner(y.t.Context(), held.Shard)
			testkit.Check(y.t, err)
			testkit.Equal(y.t, owner, m.cfg.Node, "the owner of shard %s", held.Name())
		}
	}
}

// C2: nodes that come and go in good order share the shards, and no shard is at work at two of them.
func TestNodesShareTheShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		a := y.node("a")
		y.wantShare(time.Minute, a)
		b := y.node("b")
		y.wantShare(2*time.Minute, a, b)
		c := y.node("c")
		y.wantShare(2*time.Minute, a, b, c)
		a.stop()
		y.wantShare(30*time.Second, b, c)
		b.stop()
		y.wantShare(30*time.Second, c)
		testkit.Equal(t, y.overlap, 0, "times that a shard was at work at two nodes")
		testkit.Equal(t, y.causes[shards.ErrLost], 0, "shards that were lost")
		c.stop()
		testkit.ErrorIs(t, testkit.Err(c.Owner(t.Context(), 5)), ErrNobody)
		testkit.Equal(t, len(c.Held()), 0, "shards at the end")
	})
}

// C2: a node that cannot reach the store gives its shards up before others take them, and these have
// them within seconds.
func TestANodeThatIsCutOffLosesItsShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		a, b := y.node("a"), y.node("b")
		y.wantShare(2*time.Minute, a, b)
		a.cut.Store(true)
		y.wantShare(20*time.Second, b)
		testkit.Equal(t, y.overlap, 0, "times that a shard was at work at two nodes")
		testkit.Equal(t, y.causes[shards.ErrLost], shards.Count/2, "shards that were lost")
		a.cut.Store(false)
		y.wantShare(2*time.Minute, a, b)
		a.stop()
		b.stop()
	})
}

// C5: how long the shards of a lost node rest: a lease, counted from the last time that it was seen to be
// renewed, and the round in which others look. docs/guides/cluster.md says so.
func TestHowLongShardsRest(t *testing.T) {
	const bound = defaultLease + 5*time.Second
	var longest time.Duration
	for i := range 6 { // at any time between two renewals
		synctest.Test(t, func(t *testing.T) {
			y := newYard(t)
			a, b := y.node("a"), y.node("b")
			y.wantShare(2*time.Minute+time.Duration(i)*600*time.Millisecond, a, b)
			a.cut.Store(true)
			lost := time.Now()
			for len(b.Held()) < shards.Count && time.Since(lost) < time.Minute {
				time.Sleep(50 * time.Millisecond)
			}
			longest = max(longest, time.Since(lost))
			a.stop()
			b.stop()
		})
	}
	t.Logf("the shards of a lost node rested for %v at most", longest)
	testkit.That(t, longest <= bound, "shards rested for %v, longer than %v", longest, bound)
}

// A part that fails is reported, and holds up nothing. Parts end in the reverse of their order.
func TestPartsEndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := make(map[int]bool)
		var mu sync.Mutex
		ended, first := 0, 0
		p, err := New(Config{Meta: metatest.NewMemory(), Node: "a", Log: testkit.Quiet(), Parts: []Part{
			func(context.Context, shards.Held) error { return errors.New("no") },
			func(ctx context.Context, held shards.Held) error {
				<-ctx.Done()
				mu.Lock()
				defer mu.Unlock()
				if ended++; last[held.Shard] {
					first++
				}
				return shards.ErrLost
			},
			func(ctx context.Context, held shards.Held) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				last[held.Shard] = true
				return nil
			},
		}})
		testkit.Must(t, err)
		stop := testkit.Run(t, p.Run)
		time.Sleep(time.Minute)
		synctest.Wait()
		testkit.Equal(t, len(p.Held()), shards.Count)
		stop()
		testkit.Equal(t, ended, shards.Count, "parts that were waited for")
		testkit.Equal(t, first, shards.Count, "parts that ended after those behind them")
	})
}

func TestWhatPlacementNeeds(t *testing.T) {
	for _, cfg := range []Config{{}, {Node: "a"}, {Meta: metatest.NewMemory()}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is enough", cfg)
		}
	}
}
