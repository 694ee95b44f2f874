package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// fleet is several nodes over the storage of one yard.
type fleet struct {
	*yard
	engines *logtest.Nodes
	audit   *audit
	nodes   []*node
	epochs  [shards.Count]shards.Epoch
	holders [shards.Count]*tenure
}

// node is a process with a delivery service. It can be killed, and frozen.
type node struct {
	number  int
	service *Service
	plug    *plug
	ice     *ice
	stops   []func()
}

// tenure is one node's time with a shard.
type tenure struct {
	node  *node
	end   context.CancelCauseFunc
	ended chan error
}

var errHandoff = errors.New("the shard goes to another node")

func newFleet(t *testing.T, nodes int) *fleet {
	t.Helper()
	f := &fleet{yard: newYard(t)}
	f.engines, f.audit = logtest.NewNodes(f.Engine), &audit{Store: f.Memory, t: t, epochs: make(map[string]shards.Epoch)}
	for i := range nodes {
		f.nodes = append(f.nodes, f.open(i))
	}
	return f
}

// open starts a node, which has definitions, retry logs and a service of its own.
func (f *fleet) open(number int) *node {
	f.t.Helper()
	n := &node{number: number, plug: &plug{}, ice: &ice{}}
	engine, store := logtest.NewFaulty(f.engines.Node()), metatest.NewFaulty(f.audit)
	engine.Inject(func(op logtest.Op) error {
		switch op.Kind {
		case logtest.OpRemove, logtest.OpTrim, logtest.OpSubmit:
			n.ice.wait()
			return n.plug.check()
		}
		return nil
	})
	store.Inject(func(op metatest.Op) error {
		if op.Changes() {
			n.ice.wait()
			return n.plug.check()
		}
		return nil
	})
	defined, err := topics.Open(f.t.Context(), topics.Config{Engine: engine, Meta: store, Broker: f.Broker, Log: testkit.Quiet()})
	testkit.Must(f.t, err)
	cfg := Config{
		Meta: store, Topics: defined, Broker: f.Broker, Log: testkit.Quiet(),
		Sender: plugSender{f.sender, n.plug}, Dead: plugDead{f.dead, n.plug},
		OpenLogs: func(ctx context.Context, held shards.Held) (*retrylog.Logs, error) {
			return retrylog.Open(ctx, retrylog.Config{Engine: engine, Meta: store, Ladder: retry.Ladder(), Held: &held, Log: testkit.Quiet()})
		},
	}
	cfg.Sender = icySender{cfg.Sender, n.ice}
	n.service, err = Open(f.t.Context(), cfg)
	testkit.Must(f.t, err)
	n.stops = []func(){testkit.Run(f.t, n.service.Run), testkit.Run(f.t, defined.Run), func() { testkit.Check(f.t, engine.Close()) }}
	return n
}

func (n *node) stop() {
	for _, stop := range n.stops {
		stop()
	}
}

// give lets a node hold a shard, under the next epoch.
func (f *fleet) give(shard int, n *node) {
	f.epochs[shard]++
	ctx, end := context.WithCancelCause(context.Background())
	s := &tenure{node: n, end: end, ended: make(chan error, 1)}
	held := shards.Held{Shard: shard, Epoch: f.epochs[shard]}
	go func() { s.ended <- n.service.Serve(ctx, held) }()
	f.holders[shard] = s
}

// move hands a shard over as it is planned: the old holder ends first.
func (f *fleet) move(shard int, to *node) {
	f.t.Helper()
	s := f.holders[shard]
	s.end(errHandoff)
	testkit.Check(f.t, <-s.ended, "shard %02x is handed over", shard)
	f.give(shard, to)
}

// lose ends a tenure as a lease that has run out does.
func (s *tenure) lose(t testing.TB) {
	t.Helper()
	s.end(shards.ErrLost)
	if err := <-s.ended; err != nil && !errors.Is(err, shards.ErrLost) {
		t.Errorf("a shard that was lost ends with %v", err)
	}
}

// spread gives all shards to the nodes in turn.
func (f *fleet) spread() {
	for shard := range shards.Count {
		f.give(shard, f.nodes[shard%len(f.nodes)])
	}
	wait()
}

// end stops everything in good order.
func (f *fleet) end() {
	f.t.Helper()
	for _, s := range f.holders {
		s.end(errHandoff)
	}
	for _, s := range f.holders {
		testkit.Check(f.t, <-s.ended)
	}
	for _, n := range f.nodes {
		testkit.Equal(f.t, n.service.budget.used.Load(), 0, "bytes in memory of node %d", n.number)
		n.stop()
	}
}

// ice holds up who waits while it is frozen.
type ice struct {
	mu   sync.Mutex
	hard chan struct{} // guarded by mu; nil: it is not frozen
}

func (i *ice) wait() {
	i.mu.Lock()
	hard := i.hard
	i.mu.Unlock()
	if hard != nil {
		<-hard
	}
}

func (i *ice) freeze() (thaw func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	hard := make(chan struct{})
	i.hard = hard
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.hard = nil
		close(hard)
	}
}

// icySender stops with its process: before a request, or when it has been answered.
type icySender struct {
	Sender
	ice *ice
}

func (s icySender) Deliver(ctx context.Context, o *webhook.Order, batch []*pending.Delivery) webhook.Result {
	s.ice.wait()
	defer s.ice.wait()
	return s.Sender.Deliver(ctx, o, batch)
}

// audit is a store that sees who writes what of shards: no value of one is ever written under a lower
// epoch than it has.
type audit struct {
	meta.Store
	t testing.TB

	mu     sync.Mutex // held while a value is written, so that what it sees is in order
	epochs map[string]shards.Epoch
	writes int
}

func (a *audit) CompareAndSet(ctx context.Context, key string, expected meta.Revision, value []byte) (meta.Revision, error) {
	epoch, ofShard := epochOf(a.t, key, value)
	if !ofShard {
		return a.Store.CompareAndSet(ctx, key, expected, value)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	revision, err := a.Store.CompareAndSet(ctx, key, expected, value)
	if err == nil {
		if epoch < a.epochs[key] {
			a.t.Errorf("%s was written under epoch %d, it had %d", key, epoch, a.epochs[key])
		}
		a.epochs[key] = epoch
		a.writes++
	}
	return revision, err
}

// epochOf reads the epoch of a value of a shard's.
func epochOf(t testing.TB, key string, value []byte) (shards.Epoch, bool) {
	switch {
	case strings.HasPrefix(key, cursorPrefix):
		epoch, _, err := cursorEpoch(value)
		testkit.Check(t, err, "the value of %s", key)
		return epoch, true
	case strings.HasPrefix(key, "grid/tiers/"), strings.HasPrefix(key, "grid/shelves/"):
		var epoch shards.Epoch
		_, after, _ := strings.Cut(string(value), `"epoch":`)
		testkit.Check(t, testkit.Err(fmt.Sscan(strings.FieldsFunc(after, func(r rune) bool { return r < '0' || r > '9' })[0], &epoch)))
		return epoch, true
	}
	return 0, false
}

// receivers makes subscriptions, so many that most shards have one, and two that share one.
func (f *fleet) receivers(topic string, n int, change ...func(*topics.Settings)) (names []string) {
	for i := range n {
		name := fmt.Sprintf("r%02d", i)
		f.subscribe(topic, name, change...)
		names = append(names, name)
	}
	wait()
	return names
}

// C2: shards that are handed over as planned repeat nothing and lose nothing, whatever is under way.
func TestPlannedMovesRepeatNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		f.topic("orders")
		names := f.receivers("orders", 40)
		random := rand.New(rand.NewPCG(7, 1))
		f.sender.says(func(context.Context, drop) webhook.Result {
			time.Sleep(50 * time.Millisecond)
			return ok()
		})
		f.spread()
		var want []string
		for round := range 60 {
			for i := range random.IntN(20) {
				id := fmt.Sprintf("e%d-%d", round, i)
				f.publish("orders", id)
				want = append(want, id)
			}
			for range random.IntN(5) {
				f.move(random.IntN(shards.Count), f.nodes[random.IntN(len(f.nodes))])
			}
			time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		}
		after(time.Minute)
		for _, name := range names {
			got := f.sender.delivered(name)
			wantIDs(t, name, got, want)
			testkit.Equal(t, len(got), len(want), "deliveries to %s", name)
		}
		f.end()
	})
}

// C2: a node that does not hold a subscription's shard says so, also to who waits for an event.
func TestASubscriptionIsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		f.topic("orders")
		id := f.subscribe("orders", "puller", func(s *topics.Settings) { s.Webhook, s.Pull = nil, &topics.Pull{} })
		wait()
		f.spread()
		shard := shards.Of(id)
		here, there := f.holders[shard].node, f.nodes[1-f.holders[shard].node.number]
		testkit.Check(t, testkit.Err(here.service.Stats(t.Context(), id)))
		testkit.ErrorIs(t, testkit.Err(there.service.Stats(t.Context(), id)), shards.ErrElsewhere)
		testkit.ErrorIs(t, there.service.Probe(t.Context(), id), shards.ErrElsewhere)
		testkit.ErrorIs(t, testkit.Err(there.service.Settle(t.Context(), id, Acknowledge, 0, nil)), shards.ErrElsewhere)
		testkit.ErrorIs(t, there.service.Redeliver(t.Context(), []pending.Delivery{{Subscription: id}}), shards.ErrElsewhere)
		waiting := make(chan error, 1)
		go func() { waiting <- testkit.Err(here.service.Receive(t.Context(), id, 1, time.Hour)) }()
		wait()
		f.move(shard, there)
		testkit.ErrorIs(t, <-waiting, shards.ErrElsewhere, "who waits for an event")
		wait()
		f.publish("orders", "a", "b")
		got := testkit.Value(there.service.Receive(t.Context(), id, 1, time.Hour))(t)
		testkit.MustEqual(t, len(got), 1)
		f.move(shard, here) // with a lock that nobody has settled
		wait()
		settled := testkit.Value(here.service.Settle(t.Context(), id, Acknowledge, 0, []string{got[0].Token}))(t)
		testkit.ErrorIs(t, settled[0].Err, ErrLockLost)
		again := testkit.Value(here.service.Receive(t.Context(), id, 2, time.Hour))(t)
		testkit.MustEqual(t, len(again), 2, "events that come again")
		f.end()
	})
}

// C2: what waits for its retry, or stands on a parked log behind a broken endpoint, goes with its
// shard.
func TestRetriesMoveWithTheirShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2)
		f.topic("orders")
		names := f.receivers("orders", 12)
		f.sender.always(status(503))
		f.spread()
		f.publish("orders", ids("e", 20)...)
		after(35 * time.Second) // some wait in retry logs, others on parked logs
		for shard, s := range f.holders {
			f.move(shard, f.nodes[1-s.node.number])
		}
		f.sender.always(ok())
		after(10 * time.Minute)
		for _, name := range names {
			wantIDs(t, name, f.sender.delivered(name), ids("e", 20))
			testkit.Equal(t, len(f.sender.delivered(name)), 20, "deliveries to %s", name)
		}
		f.end()
	})
}

// A shard saves a few values a second, those first that have waited longest: however busy its sources
// are, each is saved in turn.
func TestAShardSavesTheStalestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1)
		const sources, shard = 20, 7
		var made []string
		for i := 0; len(made) < sources; i++ {
			topic := fmt.Sprint("topic-", i)
			f.topic(topic)
			if id := f.subscribe(topic, "receiver"); shards.Of(id) == shard {
				made = append(made, topic)
			} else {
				testkit.Must(t, f.topics.DeleteTopic(t.Context(), topic))
			}
		}
		f.spread()
		after(time.Minute)
		prefix := cursorPrefix + shards.Held{Shard: shard}.Name() + "/"
		stored := func() map[string]meta.Revision {
			all := make(map[string]meta.Revision)
			for _, e := range testkit.Value(f.Memory.List(t.Context(), prefix))(t) {
				all[e.Key] = e.Revision
			}
			return all
		}
		before := stored()
		testkit.MustEqual(t, len(before), sources, "values of the shard")
		for second := 1; second <= sources/shardSaves; second++ {
			for _, topic := range made { // all of them are busy all the time
				f.publish(topic, fmt.Sprint("e", second))
			}
			after(time.Second)
			changed := 0
			for key, revision := range stored() {
				if revision != before[key] {
					changed++
				}
			}
			testkit.Equal(t, changed, second*shardSaves, "values that were saved within %d seconds", second)
		}
		f.end()
	})
}

// marks are those that are stored of a subscription's shard, in all partitions.
func (f *fleet) marks(id string) saved {
	f.t.Helper()
	all := make(saved)
	for _, e := range testkit.Value(f.Memory.List(f.t.Context(), cursorPrefix+shards.Held{Shard: shards.Of(id)}.Name()+"/"))(f.t) {
		_, marks, err := parseCursors(e.Value)
		testkit.Must(f.t, err)
		maps.Copy(all, marks)
	}
	return all
}

// C2: a subscription of which the new holder has not heard is not taken for deleted.
func TestADefinitionThatIsLateLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1)
		f.topic("orders")
		f.spread()
		deaf := f.open(1) // it reads the definitions, and hears of nothing after
		deaf.stops[1]()
		f.nodes = append(f.nodes, deaf)
		id := f.subscribe("orders", "receiver")
		wait()
		f.sender.always(status(503))
		f.publish("orders", ids("e", 30)...)
		after(2 * time.Minute)
		shard := shards.Of(id)
		f.move(shard, deaf)
		wait()
		before := f.marks(id)
		after(2 * time.Hour)
		testkit.Equal(t, fmt.Sprint(f.marks(id)), fmt.Sprint(before), "its mark")
		testkit.Equal(t, len(before), 1, "marks of the shard")
		parked := testkit.Value(f.Engine.Partition(eventlog.PartitionID{Log: "shelf-" + id}))(t)
		testkit.Check(t, testkit.Err(parked.Bounds(t.Context())), "its parked log")
		f.sender.always(ok())
		f.move(shard, f.nodes[0])
		after(12 * time.Hour)
		wantIDs(t, "delivered", f.sender.delivered(""), ids("e", 30))
		testkit.Equal(t, f.marks(id)[id], 30, "its mark")
		f.end()
	})
}

// C2: whatever befalls nodes, every event is delivered or dead-lettered, and no cursor or book moves
// under an old epoch.
func TestNodesThatDieAndFreeze(t *testing.T) {
	for seed := range uint64(fleetSeeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { storm(t, rand.New(rand.NewPCG(seed, 2))) })
		})
	}
}

func storm(t *testing.T, random *rand.Rand) {
	f := newFleet(t, 3)
	f.topic("orders")
	f.topic("bills")
	names := f.receivers("orders", 30)
	more := f.receivers("bills", 10, func(s *topics.Settings) { s.OrderBy = "subject" })
	var mu sync.Mutex
	f.sender.says(func(ctx context.Context, d drop) webhook.Result {
		mu.Lock()
		chance, long := random.IntN(10), time.Duration(random.IntN(400))*time.Millisecond
		mu.Unlock()
		select {
		case <-time.After(long):
		case <-ctx.Done():
			return outcome(retry.Canceled)
		}
		if chance == 0 {
			return status(503)
		}
		return ok()
	})
	f.spread()
	want := map[string][]string{}
	for round := range 40 {
		for _, topic := range []string{"orders", "bills"} {
			mu.Lock()
			n := 1 + random.IntN(10)
			mu.Unlock()
			batch := ids(fmt.Sprintf("%s%d-", topic[:1], round), n)
			f.publish(topic, batch...)
			want[topic] = append(want[topic], batch...)
		}
		mu.Lock()
		what, victim, heir := random.IntN(6), random.IntN(3), random.IntN(2)
		shard, pause := random.IntN(shards.Count), time.Duration(random.IntN(3000))*time.Millisecond
		mu.Unlock()
		next := f.nodes[(victim+1+heir)%3]
		switch what {
		case 0:
			f.die(f.nodes[victim], next)
		case 1:
			f.freeze(f.nodes[victim], next, pause)
		default:
			f.move(shard, next)
		}
		time.Sleep(pause)
	}
	f.sender.always(ok())
	after(26 * time.Hour)
	for topic, subs := range map[string][]string{"orders": names, "bills": more} {
		for _, name := range subs {
			sub, err := f.topics.Find(topics.Source{Topic: topic}, name)
			testkit.Must(t, err)
			got := append(f.sender.deliveredOf(topic, name), f.dead.of(sub.ID)...)
			wantIDs(t, topic+"/"+name, got, want[topic])
		}
	}
	if f.audit.writes == 0 {
		t.Error("nothing was written of any shard")
	}
	f.end()
}

// deliveredOf are the ids that begin as those of a topic do.
func (p *postman) deliveredOf(topic, sub string) (ids []string) {
	for _, id := range p.delivered(sub) {
		if strings.HasPrefix(id, topic[:1]) {
			ids = append(ids, id)
		}
	}
	return ids
}

// held are the shards that a node has.
func (f *fleet) held(n *node) (held []int) {
	for shard, s := range f.holders {
		if s.node == n {
			held = append(held, shard)
		}
	}
	return held
}

// die kills a node; another takes its shards, and it starts again with none.
func (f *fleet) die(n, heir *node) {
	f.t.Helper()
	n.plug.pulled.Store(true)
	var lost []*tenure
	for _, shard := range f.held(n) {
		lost = append(lost, f.holders[shard])
		f.give(shard, heir)
	}
	for _, s := range lost {
		s.lose(f.t)
	}
	n.stop()
	f.nodes[n.number] = f.open(n.number)
}

// freeze stops a node for a while, in which another takes its shards. When it goes on it believes for
// a moment that it has them still.
func (f *fleet) freeze(n, heir *node, believes time.Duration) {
	f.t.Helper()
	thaw := n.ice.freeze()
	time.Sleep(time.Second)
	var lost []*tenure
	for _, shard := range f.held(n) {
		lost = append(lost, f.holders[shard])
		f.give(shard, heir)
	}
	time.Sleep(cmp.Or(believes, time.Second))
	thaw()
	time.Sleep(believes)
	for _, s := range lost {
		s.lose(f.t)
	}
}
