package cluster_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// yard is what the nodes of a test share: entries, and a network.
type yard struct {
	entries *metatest.Memory
	network *clustertest.Network
}

func newYard() *yard { return &yard{metatest.NewMemory(), &clustertest.Network{}} }

// reach is one node's way to the store, which can be cut.
type reach struct {
	*metatest.Faulty
	cut atomic.Bool
}

func (y *yard) reach() *reach {
	r := &reach{Faulty: metatest.NewFaulty(y.entries)}
	r.Inject(func(metatest.Op) error {
		if r.cut.Load() {
			return meta.ErrUnavailable
		}
		return nil
	})
	return r
}

func ids(nodes *cluster.Nodes) (ids []string) {
	for _, node := range nodes.Live() {
		ids = append(ids, node.ID)
	}
	return ids
}

func wantLive(t *testing.T, nodes *cluster.Nodes, want ...string) {
	t.Helper()
	if got := ids(nodes); !slices.Equal(got, want) || nodes.Count() != len(want) {
		t.Errorf("%s sees %q, and counts %d; want %q", nodes.Self().ID, got, nodes.Count(), want)
	}
}

// C4: nodes see each other come, leave, and die.
func TestNodesSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		a, _ := clustertest.Join(t, y.network, y.entries, "a")
		b, leave := clustertest.Join(t, y.network, y.entries, "b")
		way := y.reach()
		c, _ := clustertest.Join(t, y.network, way, "c")
		time.Sleep(2 * cluster.LookInterval)
		wantLive(t, a, "a", "b", "c")
		wantLive(t, c, "a", "b", "c")

		leave()
		time.Sleep(2 * cluster.LookInterval)
		wantLive(t, a, "a", "c")
		if a.Alive(b.Self()) {
			t.Error("who has left is alive")
		}

		way.cut.Store(true)
		began := time.Now()
		testkit.Must(t, a.AwaitDeath(t.Context(), c.Self(), 0))
		if took := time.Since(began); took < cluster.QuietAfter || took > 20*time.Second {
			t.Errorf("it was dead after %v", took)
		}
		wantLive(t, a, "a")
		// Who cannot read declares nobody dead.
		time.Sleep(time.Minute)
		if !c.Alive(a.Self()) {
			t.Error("who could not read takes another for dead")
		}
		way.cut.Store(false)
		time.Sleep(2 * cluster.WriteInterval)
		wantLive(t, a, "a", "c")
		wantLive(t, c, "a", "c")
	})
}

// C4: a node is quiet before anyone sees it dead, and in a new term afterwards.
func TestWhoIsCutOffIsQuietFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		a, _ := clustertest.Join(t, y.network, y.entries, "a")
		for _, phase := range []time.Duration{0, 700 * time.Millisecond, 1900 * time.Millisecond, 2999 * time.Millisecond} {
			way := y.reach()
			b, leave := clustertest.Join(t, y.network, way, "b")
			time.Sleep(2*cluster.WriteInterval + phase)
			term, ok := b.Standing()
			if !ok || !a.Alive(b.Self()) {
				t.Fatal("a node that writes may not act, or is not alive")
			}
			way.cut.Store(true)
			for quiet := time.Duration(0); a.Alive(b.Self()); time.Sleep(10 * time.Millisecond) {
				if b.MayAct() {
					quiet = 0
				} else {
					quiet += 10 * time.Millisecond
				}
				if !a.Alive(b.Self()) && quiet < 3*time.Second {
					t.Errorf("it was quiet for %v only when it was seen dead", quiet)
				}
			}
			if b.MayAct() {
				t.Error("a dead node may act")
			}
			way.cut.Store(false)
			time.Sleep(2 * cluster.WriteInterval)
			if after, ok := b.Standing(); !ok || after <= term {
				t.Errorf("it is back in term %d, may act: %t; it was in %d", after, ok, term)
			}
			leave()
			if b.MayAct() {
				t.Error("who has left may act")
			}
		}
	})
}

// C4: a short cut is no break.
func TestAShortCutIsNoBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		way := y.reach()
		a, _ := clustertest.Join(t, y.network, way, "a")
		before, _ := a.Standing()
		for range 5 {
			way.cut.Store(true)
			time.Sleep(6 * time.Second)
			way.cut.Store(false)
			time.Sleep(cluster.WriteInterval + cluster.LookInterval)
		}
		if after, ok := a.Standing(); !ok || after != before {
			t.Errorf("term %d, may act: %t; want %d", after, ok, before)
		}
	})
}

// A write whose answer is lost is not taken for another's.
func TestAnswersOfTheStoreMayBeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		way := metatest.NewFaulty(y.entries)
		a, _ := clustertest.Join(t, y.network, way, "a")
		b, _ := clustertest.Join(t, y.network, y.entries, "b")
		way.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpSet && op.N%4 != 0 {
				return metatest.Unheard(meta.ErrUncertain)
			}
			return nil
		})
		for range 40 {
			time.Sleep(time.Second)
			if !a.MayAct() || !b.Alive(a.Self()) {
				t.Fatal("it is quiet, or dead")
			}
		}
	})
}

// C4: two processes with one ID.
func TestAnIDIsTaken(t *testing.T) {
	tests := []struct {
		name string
		// end is what becomes of the first process, which has its ways to the store and the network.
		end   func(way *reach, y *yard, leave func())
		taken bool
		wait  bool // for signs of life
	}{
		{"while the other lives", func(*reach, *yard, func()) {}, true, false},
		{"also if it does not answer", func(_ *reach, y *yard, _ func()) {
			y.network.Inject(func(ctx context.Context, r cluster.Request) error { return clustertest.Lose(ctx) }, nil)
		}, true, true},
		{"not when it has left", func(_ *reach, _ *yard, leave func()) { leave() }, false, false},
		{"not when it has crashed", func(way *reach, y *yard, _ func()) {
			way.cut.Store(true)
			y.network.Inject(func(ctx context.Context, r cluster.Request) error { return cluster.ErrNoNode }, nil)
		}, false, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard()
				way := y.reach()
				first, leave := clustertest.Join(t, y.network, way, "a")
				time.Sleep(cluster.WriteInterval)
				test.end(way, y, leave)
				began := time.Now()
				second := testkit.Value(cluster.New(cluster.Config{Store: y.entries, Wire: y.network, ID: "a", Log: testkit.Quiet()}))(t)
				err := second.Join(t.Context())
				if errors.Is(err, cluster.ErrTaken) != test.taken || err != nil && !test.taken {
					t.Errorf("got %v, want it taken: %t", err, test.taken)
				}
				if waited := time.Since(began) > cluster.WriteInterval; waited != test.wait {
					t.Errorf("it took %v", time.Since(began))
				}
				if second.MayAct() == test.taken {
					t.Errorf("the second may act: %t", second.MayAct())
				}
				if first.Self() == second.Self() {
					t.Error("both are the same")
				}
				if !test.taken {
					testkit.Run(t, second.Run)()
				}
			})
		})
	}
}

// C5: a start that failed at the store, in the place of a process that had crashed, is tried again.
func TestJoiningAgainAfterAFailure(t *testing.T) {
	for name, happens := range map[string]error{"it was not written": meta.ErrUnavailable, "nobody knows": meta.ErrUncertain} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard()
				crashed := y.reach()
				clustertest.Join(t, y.network, crashed, "a")
				crashed.cut.Store(true)
				y.network.Inject(func(ctx context.Context, r cluster.Request) error { return cluster.ErrNoNode }, nil)
				store := metatest.NewFaulty(y.entries)
				store.Inject(func(op metatest.Op) error {
					if op.Changes() && op.N == 1 {
						return happens
					}
					return nil
				})
				nodes := testkit.Value(cluster.New(cluster.Config{Store: store, Wire: y.network, ID: "a", Log: testkit.Quiet()}))(t)
				testkit.ErrorIs(t, nodes.Join(t.Context()), happens, "the first time")
				testkit.Must(t, nodes.Join(t.Context()), "the second time")
				testkit.That(t, nodes.MayAct(), "it may not act")
				testkit.Run(t, nodes.Run)
			})
		})
	}
}

// C4: a process that was cut off while another took its ID ends, and does not act.
func TestWhoWasReplacedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		way := y.reach()
		first := testkit.Value(cluster.New(cluster.Config{Store: way, Wire: y.network, ID: "a", Log: testkit.Quiet()}))(t)
		ended := make(chan error, 1)
		go func() { ended <- first.Run(t.Context()) }()
		time.Sleep(time.Second)
		way.cut.Store(true)
		y.network.Inject(func(ctx context.Context, r cluster.Request) error { return cluster.ErrNoNode }, nil)
		second, _ := clustertest.Join(t, y.network, y.entries, "a")
		// For a third the first lives on for its time.
		third, _ := clustertest.Join(t, y.network, y.entries, "c")
		if !third.Alive(first.Self()) || !third.Alive(second.Self()) {
			t.Error("who was replaced is dead too early")
		}
		way.cut.Store(false)
		testkit.ErrorIs(t, <-ended, cluster.ErrTaken)
		if first.MayAct() || !second.MayAct() {
			t.Error("the wrong one may act")
		}
		testkit.Must(t, third.AwaitDeath(t.Context(), first.Self(), 0))
		wantLive(t, third, "a", "c")
	})
}

func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		a, _ := clustertest.Join(t, y.network, y.entries, "a")
		b, leave := clustertest.Join(t, y.network, y.entries, "b")
		b.Handle("echo", func(_ context.Context, r cluster.Request) ([]byte, error) {
			return append([]byte(r.From.ID+" says "), r.Body...), nil
		})
		b.Handle("refuse", func(context.Context, cluster.Request) ([]byte, error) { return nil, errors.New("not today") })
		for _, from := range []*cluster.Nodes{a, b} {
			if answer, err := from.Ask(t.Context(), b.Self(), "echo", []byte("hello")); err != nil || string(answer) != from.Self().ID+" says hello" {
				t.Errorf("got %q, %v", answer, err)
			}
			for _, subject := range []string{"refuse", "unknown"} {
				_, err := from.Ask(t.Context(), b.Self(), subject, nil)
				if refused, ok := errors.AsType[*cluster.RemoteError](err); !ok || refused.Node != b.Self() {
					t.Errorf("%s: got %v", subject, err)
				}
			}
		}
		y.network.Inject(func(ctx context.Context, r cluster.Request) error { return clustertest.Lose(ctx) }, nil)
		began := time.Now()
		testkit.ErrorIs(t, testkit.Err(a.Ask(t.Context(), b.Self(), "echo", nil)), context.DeadlineExceeded)
		if took := time.Since(began); took != cluster.AskTimeout {
			t.Errorf("it gave up after %v", took)
		}
		y.network.Inject(nil, nil)
		leave()
		testkit.ErrorIs(t, testkit.Err(a.Ask(t.Context(), b.Self(), "echo", nil)), cluster.ErrNoNode)
	})
}

// C8: one machine needs no other.
func TestAlone(t *testing.T) {
	a := cluster.Alone("a")
	wantLive(t, a, "a")
	if !a.MayAct() || !a.Single() || a.Count() != 1 || !a.Alive(a.Self()) || a.Alive(cluster.Node{ID: "b"}) {
		t.Error("it is not the only one")
	}
	a.Handle("echo", func(_ context.Context, r cluster.Request) ([]byte, error) { return r.Body, nil })
	if answer, err := a.Ask(t.Context(), a.Self(), "echo", []byte("me")); err != nil || string(answer) != "me" {
		t.Errorf("got %q, %v", answer, err)
	}
	testkit.ErrorIs(t, testkit.Err(a.Ask(t.Context(), cluster.Node{ID: "b"}, "echo", nil)), cluster.ErrNoNode)
	testkit.Must(t, a.Join(t.Context()))
	testkit.Run(t, a.Run)()
	if allocations := testing.AllocsPerRun(100, func() { a.MayAct() }); allocations != 0 {
		t.Errorf("to ask whether it may act allocates %v", allocations)
	}
}

func TestCheckID(t *testing.T) {
	for id, ok := range map[string]bool{"a": true, "node-1.example_x": true, "": false, "a/b": false, "a b": false, "é": false, "*": false} {
		if err := cluster.CheckID(id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := cluster.New(cluster.Config{Store: metatest.NewMemory(), Wire: &clustertest.Network{}, ID: "a>"}); err == nil {
		t.Error("a node with a bad ID was made")
	}
}

// late is a node's way to a store whose reads are as old as the last time it had to be fresh, or
// wrote something that conflicted.
type late struct {
	meta.Store
	mu   sync.Mutex
	seen []meta.Entry // guarded by mu
}

func (l *late) Fresh(ctx context.Context, prefix string) error {
	entries, err := l.Store.List(ctx, "")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = entries
	return err
}

func (l *late) List(context.Context, string) ([]meta.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen), nil
}

// C4: nobody is taken for dead because reads are old.
func TestStaleReadsKillNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		way := y.reach()
		a, _ := clustertest.Join(t, y.network, way, "a")
		b, _ := clustertest.Join(t, y.network, &late{Store: y.entries}, "b")
		for range 120 {
			time.Sleep(time.Second)
			if !b.Alive(a.Self()) {
				t.Fatal("who lives is dead")
			}
		}
		way.cut.Store(true)
		testkit.Must(t, b.AwaitDeath(t.Context(), a.Self(), 0))
	})
}

// K1: where clients find a node is seen by the others soon after it says so, long before its next regular write; so is
// that it is to be found nowhere.
func TestOthersSeeWhereClientsFindANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		a, _ := clustertest.Join(t, y.network, y.entries, "a")
		b, _ := clustertest.Join(t, y.network, y.entries, "b")
		at := func(seen *cluster.Nodes) cluster.Endpoints {
			synctest.Wait()
			time.Sleep(cluster.LookInterval)
			synctest.Wait()
			return seen.Members()[1].Endpoints
		}
		for _, want := range []cluster.Endpoints{{Kafka: "b:9092"}, {Kafka: "b:9092", Kafkas: "b:9093"}, {}} {
			b.Announce(cluster.Endpoints{Kafka: "somewhere:1"})
			b.Announce(want)
			testkit.Equal(t, at(b), want, "at the node itself")
			testkit.Equal(t, at(a), want, "at another node")
		}
	})
}

// What a node announces while the store is out of reach is seen once it is back.
func TestAnnouncedWhileTheStoreIsOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard()
		way := y.reach()
		a, _ := clustertest.Join(t, y.network, way, "a")
		b, _ := clustertest.Join(t, y.network, y.entries, "b")
		way.cut.Store(true)
		a.Announce(cluster.Endpoints{Kafka: "a:9092"})
		time.Sleep(cluster.LookInterval)
		way.cut.Store(false)
		time.Sleep(2 * cluster.WriteInterval)
		testkit.Equal(t, b.Members()[0].Endpoints, cluster.Endpoints{Kafka: "a:9092"})
	})
}
