package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// federation is brokers that know each other, over one storage, with a hub of two partitions.
type federation struct {
	yard
	network *clustertest.Network
	members []*member

	mu sync.Mutex
	// lost decides which requests and answers are lost; nil: none. Guarded by mu.
	lost func(r cluster.Request) bool
}

// member is a node whose ways to the store and to the others can be cut, and which can be frozen.
type member struct {
	*Broker
	nodes  *cluster.Nodes
	store  *metatest.Faulty
	engine *logtest.Faulty
	stop   func()

	mu     sync.Mutex
	cut    bool          // guarded by mu
	frozen bool          // guarded by mu
	thawed chan struct{} // closed when the store and others come through; guarded by mu
}

func newFederation(t *testing.T, size int) *federation {
	t.Helper()
	f := &federation{yard: newYard(t), network: &clustertest.Network{}}
	mustCreate(t, f.yard.open(t), "orders", 2, "billing")
	f.network.Inject(f.pass, f.pass)
	for i := range size {
		f.join(t, fmt.Sprint("n", i))
	}
	time.Sleep(cluster.WriteInterval) // all have seen each other
	return f
}

// join starts one more.
func (f *federation) join(t *testing.T, id string) *member {
	t.Helper()
	m := &member{store: metatest.NewFaulty(f.Memory), thawed: make(chan struct{})}
	close(m.thawed)
	m.store.Inject(m.reach)
	nodes, leave := clustertest.Join(t, f.network, m.store, id)
	m.nodes = nodes
	m.engine = f.Join(t).Engine
	m.Broker = open(t, Config{Engine: m.engine, Meta: m.store, Nodes: nodes})
	stop := testkit.Run(t, m.Run)
	m.stop = func() {
		stop()
		leave()
	}
	f.members = append(f.members, m)
	return m
}

// await waits while the node is frozen, or until ctx ends.
func (m *member) await(ctx context.Context) error {
	m.mu.Lock()
	thawed := m.thawed
	m.mu.Unlock()
	select {
	case <-thawed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reach is what an operation of the store meets: a frozen process neither begins nor ends one, and
// nothing comes back to one that was cut off meanwhile.
func (m *member) reach(op metatest.Op) error {
	_ = m.await(context.Background())
	if m.isCut() {
		return meta.ErrUnavailable
	}
	return metatest.After(func(err error) error {
		_ = m.await(context.Background())
		switch {
		case !m.isCut():
			return err
		case op.Changes():
			return meta.ErrUncertain
		}
		return meta.ErrUnavailable
	})
}

func (m *member) isCut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cut
}

// pass is what a request meets, and an answer.
func (f *federation) pass(ctx context.Context, r cluster.Request) error {
	f.mu.Lock()
	lost := f.lost != nil && f.lost(r)
	f.mu.Unlock()
	if lost {
		return clustertest.Lose(ctx)
	}
	for _, m := range f.members {
		if m.nodes.Self() == r.To || m.nodes.Self() == r.From {
			if err := m.await(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *federation) lose(lost func(cluster.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = lost
}

// isolate cuts a node off from the store, or joins it again.
func (m *member) isolate(cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = cut
}

// freeze stops a node, as SIGSTOP does, until thaw is called. What reads to a client may be the first
// to run then: first is called before anything of the store or of other nodes comes through.
func (m *member) freeze() (thaw func(first func())) {
	thawed := make(chan struct{})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.thawed, m.frozen = thawed, true
	return func(first func()) {
		m.mu.Lock()
		m.frozen = false
		m.mu.Unlock()
		first()
		close(thawed)
	}
}

func (m *member) isFrozen() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.frozen
}

// take reads the next n messages of a receiver, waiting for them.
func take(t *testing.T, c eventlog.Cursor, n int) (messages []string) {
	t.Helper()
	for len(messages) < n {
		run := testkit.Value(c.Next(t.Context()))(t)
		for _, e := range run.Events {
			messages = append(messages, string(e.Message))
		}
	}
	return messages
}

// inAll runs a test with two brokers and with three.
func inAll(t *testing.T, test func(t *testing.T, f *federation)) {
	for _, size := range []int{2, 3} {
		t.Run(fmt.Sprint(size, " nodes"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newFederation(t, size)) })
		})
	}
}

// C1, C3: what is published through any node is read through any other, in one order.
func TestPublishHereReceiveThere(t *testing.T) {
	inAll(t, func(t *testing.T, f *federation) {
		here, there := f.members[0], f.members[len(f.members)-1]
		r := mustReceive(t, there.Broker, "billing", "r", new(int64(1)))
		var want []string
		for i := range 30 {
			text := fmt.Sprint(i)
			p := mustPublish(t, f.members[i%len(f.members)].Broker, "orders", Target{Partition: "0"}, text)
			testkit.Equal(t, int(p.First), i, "its number")
			want = append(want, text)
		}
		testkit.Slices(t, take(t, r.Cursor, len(want)), want, "read")
		waiting := make(chan []string)
		go func() { waiting <- take(t, r.Cursor, 1) }()
		synctest.Wait()
		mustPublish(t, here.Broker, "orders", Target{Partition: "0"}, "late")
		testkit.Slices(t, <-waiting, []string{"late"}, "read by one that waited")
		// Another goes on at this node, behind what the first has read.
		next := testkit.Value(here.Receive(t.Context(), ReceiverConfig{
			Hub: "ORDERS", Group: "billing", Partition: "0", At: eventlog.At(30), Epoch: new(int64(2)),
		}))(t)
		defer next.Cursor.Close()
		testkit.Equal(t, len(r.evictions()), 1, "the first was told")
		testkit.Slices(t, take(t, next.Cursor, 1), []string{"late"}, "read by the next")
		info := testkit.Value(there.Partition(t.Context(), "orders", "0"))(t)
		testkit.Equal(t, int(info.Last), 30, "the last number, asked elsewhere")
	})
}

// C3: a hub that is deleted here is gone there, for those who read, publish and attach; one that is made
// anew there has nothing of it.
func TestDeleteHereWhileOthersUseIt(t *testing.T) {
	inAll(t, func(t *testing.T, f *federation) {
		here, there := f.members[0], f.members[len(f.members)-1]
		r := mustReceive(t, there.Broker, DefaultGroup, "r", new(int64(9)))
		mustPublish(t, there.Broker, "orders", Target{Partition: "0"}, "old")
		testkit.Slices(t, take(t, r.Cursor, 1), []string{"old"}, "read")
		ended := make(chan error)
		go func() { ended <- testkit.Err(r.Cursor.Next(t.Context())) }()
		testkit.Must(t, here.DeleteHub(t.Context(), "orders"))
		testkit.ErrorIs(t, <-ended, eventlog.ErrRemoved)
		synctest.Wait()
		for _, m := range f.members {
			wantNotFound(t, testkit.Err(m.Publish(t.Context(), "orders", Target{}, events("x"))), KindHub)
			wantNotFound(t, testkit.Err(receive(t, m.Broker, DefaultGroup, "", nil)), KindHub)
		}
		mustCreate(t, there.Broker, "orders", 1)
		next := mustReceive(t, here.Broker, DefaultGroup, "next", new(int64(0))) // lower than that of the old hub
		mustPublish(t, there.Broker, "orders", Target{}, "new")
		testkit.Slices(t, take(t, next.Cursor, 1), []string{"new"}, "read")
		r.Close()
		time.Sleep(tidyPause)
		testkit.Equal(t, len(next.evictions()), 0, "was told")
		testkit.Equal(t, len(testkit.Value(f.Memory.List(t.Context(), slotsPrefix))(t)), 1, "slots")
	})
}

// C3: readers of a group that is deleted through another node go on until they close; nobody comes
// after them.
func TestGroupDeletedThereWhileReceiversAreHere(t *testing.T) {
	inAll(t, func(t *testing.T, f *federation) {
		here, there := f.members[0], f.members[len(f.members)-1]
		slots := func() int { return len(testkit.Value(f.Memory.List(t.Context(), slotsPrefix))(t)) }
		r := mustReceive(t, here.Broker, "billing", "r", new(int64(5)))
		unused := testkit.Value(here.Receive(t.Context(), ReceiverConfig{Hub: "orders", Group: "billing", Partition: "1"}))(t)
		unused.Close()
		unused.Cursor.Close()
		time.Sleep(tidyPause)
		testkit.Equal(t, slots(), 2, "slots")
		testkit.Must(t, there.DeleteGroup(t.Context(), "orders", "billing"))
		testkit.Equal(t, slots(), 1, "slots of a deleted group")
		mustPublish(t, there.Broker, "orders", Target{Partition: "0"}, "x")
		testkit.Slices(t, take(t, r.Cursor, 1), []string{"x"}, "read")
		testkit.Equal(t, r.Ready(nil), true, "ready")
		for _, m := range f.members {
			wantNotFound(t, testkit.Err(receive(t, m.Broker, "billing", "", new(int64(6)))), KindGroup)
			wantNotFound(t, testkit.Err(m.Receivers(t.Context(), "orders", "billing")), KindGroup)
		}
		// One of the same name has the same slots, as on one machine.
		testkit.Must(t, testkit.Err(there.CreateGroup(t.Context(), "orders", "billing")))
		if _, err := receive(t, there.Broker, "billing", "", new(int64(4))); !refusedByEpoch(err) {
			t.Errorf("got %v", err)
		}
		last := mustReceive(t, there.Broker, "billing", "", new(int64(5)))
		testkit.Equal(t, len(r.evictions()), 1, "was told")
		testkit.Must(t, here.DeleteGroup(t.Context(), "orders", "billing"))
		last.Close()
		time.Sleep(tidyPause)
		testkit.Equal(t, slots(), 0, "slots when the last has closed")
	})
}

// C2: a producer that comes back by way of another node has nothing stored twice, also when its first
// node is frozen with what it sent.
func TestAProducerMovesToAnotherNode(t *testing.T) {
	inAll(t, func(t *testing.T, f *federation) {
		here, there := f.members[0], f.members[len(f.members)-1]
		cfg := ProducerConfig{ID: new(int64(7)), Epoch: new(int16(0)), Last: atZero}
		first := mustBegin(t, here.Broker, "orders", cfg)
		var want []string
		for n := range int32(5) {
			mustStore(t, first, n, fmt.Sprint(n))
			want = append(want, fmt.Sprint(n))
		}
		thaw := here.freeze()
		second := mustBegin(t, there.Broker, "orders", ProducerConfig{ID: new(int64(7)), Epoch: new(int16(0))})
		testkit.Equal(t, second.Last(), 4, "the last number there is")
		if p := mustStore(t, second, 4, "4"); p.First != eventlog.NoSequence {
			t.Errorf("a repeat was stored: %+v", p)
		}
		mustStore(t, second, 5, "5")
		thaw(func() {})
		time.Sleep(time.Minute)
		if p, err := store(t.Context(), first, 5, "5"); err == nil && p.First != eventlog.NoSequence {
			t.Errorf("a repeat was stored: %+v", p)
		} else if err != nil && !passing(err) {
			t.Errorf("a repeat was refused: %v", err)
		}
		insist(t, first, 6, "6")
		// The other node may hear of the last one a moment later.
		got := read(t, here.Broker, "orders", DefaultGroup, 0, eventlog.Earliest())
		if want = append(want, "5", "6"); !slices.Equal(got, want) {
			t.Errorf("stored are %q, want %q", got, want)
		}
	})
}

// C2: a partition's snapshot of producers is kept by one node, and by those that have producers there;
// who has none reads nothing. When that node is gone another keeps it.
func TestOneNodeKeepsTheProducersOfAPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 3)
		id := eventlog.PartitionID{Log: f.members[0].hubs.find("orders").log}
		by := nodeFor(f.members[0].nodes.Live(), id)
		others := slices.DeleteFunc(slices.Clone(f.members), func(m *member) bool { return m.nodes.Self().ID == by })
		used, idle := others[0], others[1]
		p := mustBegin(t, used.Broker, "orders", ProducerConfig{ID: new(int64(7)), Epoch: new(int16(0)), Last: atZero})
		mustStore(t, p, 0, "0")
		grow := func() { // by more than the snapshot may be behind
			for range 5 {
				mustPublish(t, used.Broker, "orders", Target{Partition: "0"}, strings.Repeat("x", saveSlackBytes/4))
			}
			time.Sleep(2 * saveInterval)
		}
		behind := func() int {
			end := testkit.Value(used.End(t.Context(), "orders", "0"))(t)
			e := testkit.Value(f.Memory.Get(t.Context(), producerKey(id.Log, 0)))(t)
			return int(end - testkit.Value(decodeSnapshot(e.Value))(t).upTo)
		}
		grow()
		testkit.Equal(t, behind(), 0, "events behind the snapshot, which the user keeps")
		testkit.Equal(t, idle.engine.Count(logtest.OpCursor), 0, "readings of one that has nothing to do with it")
		time.Sleep(producerRest)
		for _, m := range f.members { // it is found after a start
			if m.nodes.Self().ID == by {
				m.stop()
			}
		}
		time.Sleep(2 * saveInterval)
		grow()
		testkit.Equal(t, behind(), 0, "events behind the snapshot, which the next keeps")
		mustStore(t, p, 1, "1")
		again := mustBegin(t, idle.Broker, "orders", ProducerConfig{ID: new(int64(7)), Epoch: new(int16(0))})
		testkit.Equal(t, again.Last(), 1, "the last number there is")
		if stored := mustStore(t, again, 1, "1"); stored.First != eventlog.NoSequence {
			t.Errorf("a repeat was stored: %+v", stored)
		}
	})
}

// C8: a quota is one for all nodes.
func TestQuotaOfAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 3)
		testkit.Must(t, testkit.Err(f.members[0].UpdateHub(t.Context(), "orders", HubChange{QuotaEvents: new(int64(30))})))
		time.Sleep(time.Minute)
		stored := 0
		for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
			for _, m := range f.members {
				if _, err := m.Publish(t.Context(), "orders", Target{}, events("x")); err == nil {
					stored++
				}
			}
		}
		if stored < 300 || stored > 340 { // a second's worth at once, and ten seconds
			t.Errorf("%d were stored", stored)
		}
		f.members[2].stop()
		f.members[1].stop()
		time.Sleep(time.Minute)
		stored = 0
		for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
			if _, err := f.members[0].Publish(t.Context(), "orders", Target{}, events("x")); err == nil {
				stored++
			}
		}
		if stored < 300 || stored > 340 {
			t.Errorf("%d were stored through the one that is left", stored)
		}
	})
}
