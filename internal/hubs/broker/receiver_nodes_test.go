package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/cluster/clustertest"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
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
	nodes *cluster.Nodes
	store *metatest.Faulty
	stop  func()

	mu     sync.Mutex
	cut    bool          // guarded by mu
	thawed chan struct{} // closed when it is not frozen; guarded by mu
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
	m.Broker = open(t, Config{Engine: f.Engine, Meta: m.store, Nodes: nodes})
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

// reach is what an operation of the store meets: a frozen process neither begins nor ends one.
func (m *member) reach(metatest.Op) error {
	_ = m.await(context.Background())
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut {
		return meta.ErrUnavailable
	}
	return metatest.After(func(err error) error {
		_ = m.await(context.Background())
		return err
	})
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

// freeze stops a node, as SIGSTOP does, until thaw is called.
func (m *member) freeze() (thaw func()) {
	thawed := make(chan struct{})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.thawed = thawed
	return func() { close(thawed) }
}

func (m *member) frozen() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.thawed:
		return false
	default:
		return true
	}
}

// slot is the entry of partition 0 for the default group, with nobody's double in between.
func (f *federation) slot(t *testing.T) slotEntry {
	t.Helper()
	var s slotEntry
	for _, e := range testkit.Value(f.Memory.List(t.Context(), slotsPrefix))(t) {
		if at, _ := slotOfKey(e.Key); at.partition == "0" && at.group == DefaultGroup {
			testkit.Must(t, json.Unmarshal(e.Value, &s))
		}
	}
	return s
}

// H5, C4: a receiver takes the slot from one at another node, which is silent before it begins.
func TestEpochTakesTheSlotAtAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 3)
		a, b, c := f.members[0], f.members[1], f.members[2]
		first := mustReceive(t, a.Broker, DefaultGroup, "first", new(int64(4)))
		began := time.Now()
		second := mustReceive(t, b.Broker, DefaultGroup, "second", new(int64(4)))
		want := EvictedError{Name: "first", Epoch: new(int64(4)), NewName: "second", NewEpoch: 4}
		if got := first.evictions(); len(got) != 1 || got[0].Error() != want.Error() {
			t.Fatalf("first was told %v", got)
		}
		testkit.Equal(t, time.Since(began), 0, "it took")
		for _, epoch := range []*int64{new(int64(3)), nil} {
			if _, err := receive(t, c.Broker, DefaultGroup, "third", epoch); !refusedByEpoch(err) {
				t.Errorf("a lower epoch, or none: %v", err)
			}
		}
		if got := second.evictions(); len(got) != 0 || !second.Ready(func() {}) {
			t.Errorf("second was told %v", got)
		}
		// Everybody sees who is there.
		for _, m := range f.members {
			got := testkit.Value(m.Receivers(t.Context(), "orders", DefaultGroup))(t)
			if len(got) != 1 || got[0].Name != "second" || *got[0].Epoch != 4 || got[0].Partition != "0" {
				t.Errorf("%s sees %+v", m.nodes.Self().ID, got)
			}
		}
		// Who closes here makes room there, at once.
		second.Close()
		third := mustReceive(t, c.Broker, DefaultGroup, "third", nil)
		testkit.Equal(t, time.Since(began) < time.Second, true, "it was quick")
		third.Close()
		time.Sleep(tidyPause)
		if s := f.slot(t); len(s.Holders)+len(s.Leaving) > 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// H6, C4: the number of receivers without epoch holds over all nodes.
func TestReceiversWithoutEpochAreCountedOverAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 3)
		var all []*reader
		for i := range MaxReceivers {
			all = append(all, mustReceive(t, f.members[i%3].Broker, DefaultGroup, fmt.Sprint(i), nil))
		}
		for _, m := range f.members {
			_, err := receive(t, m.Broker, DefaultGroup, "one more", nil)
			if full, ok := errors.AsType[*ReceiverQuotaError](err); !ok || len(full.Names) != MaxReceivers {
				t.Errorf("got %v", err)
			}
		}
		mustReceive(t, f.members[1].Broker, "billing", "another group", nil)
		all[2].Close() // at the third node
		mustReceive(t, f.members[0].Broker, DefaultGroup, "one more", nil)
		taker := mustReceive(t, f.members[1].Broker, DefaultGroup, "taker", new(int64(0)))
		for i, r := range all {
			if got := len(r.evictions()); got != 1 && i != 2 {
				t.Errorf("%d was told %d times", i, got)
			}
		}
		testkit.Equal(t, len(taker.evictions()), 0, "the taker was told")
	})
}

// C4: an operator ends receivers wherever they are.
func TestDisconnectAtAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		r := mustReceive(t, f.members[0].Broker, DefaultGroup, "r", new(int64(9)))
		n := testkit.Value(f.members[1].Disconnect(t.Context(), "orders", DefaultGroup, "0"))(t)
		if n != 1 || len(r.evictions()) != 1 || r.evictions()[0].NewName != operator {
			t.Errorf("%d, told %v", n, r.evictions())
		}
		testkit.Equal(t, testkit.Value(f.members[1].Disconnect(t.Context(), "orders", DefaultGroup, "0"))(t), 0, "more were there")
		mustReceive(t, f.members[1].Broker, DefaultGroup, "next", new(int64(0)))
	})
}

// C4: where the request to evict is lost, the watch does it, and asking again ends the wait.
func TestARequestToEvictIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		first := mustReceive(t, f.members[0].Broker, DefaultGroup, "first", new(int64(1)))
		asked := 0
		f.lose(func(r cluster.Request) bool {
			asked++
			return r.Subject == subjectEvict && asked <= 2
		})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			mustReceive(t, f.members[1].Broker, DefaultGroup, "second", new(int64(1)))
		}()
		synctest.Wait()
		testkit.Equal(t, len(first.evictions()), 1, "first was told")
		select {
		case <-ended:
			t.Error("nobody has confirmed, and it begins")
		default:
		}
		<-ended
	})
}

// C4: who is cut off is paused, and goes on where nobody came meanwhile.
func TestAPausedReceiverGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		m := f.members[0]
		r := mustReceive(t, m.Broker, DefaultGroup, "r", new(int64(1)))
		plain := mustReceive(t, m.Broker, "billing", "plain", nil)
		woken := 0
		wake := func() { woken++ }
		m.isolate(true)
		time.Sleep(cluster.QuietAfter)
		if r.Ready(wake) || !plain.Ready(wake) {
			t.Error("it is not paused, or the one without epoch is")
		}
		time.Sleep(time.Minute) // the other has seen it dead
		testkit.Equal(t, woken, 0, "woken while it is cut off")
		m.isolate(false)
		time.Sleep(3 * cluster.WriteInterval)
		if !r.Ready(wake) || woken != 1 || len(r.evictions()) > 0 {
			t.Errorf("ready: %t, woken %d times, told %v", r.Ready(wake), woken, r.evictions())
		}
		// It has the slot in a term of its own again, and loses it as anyone does.
		second := mustReceive(t, f.members[1].Broker, DefaultGroup, "second", new(int64(1)))
		if len(r.evictions()) != 1 || len(second.evictions()) != 0 {
			t.Error("the slot was not taken over")
		}
	})
}

// C4: a node that is back has its slot confirmed before another hears that it lives again. That one
// takes it as from anyone who lives.
func TestAReturnThatOthersHaveNotHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		a, b := f.members[0], f.members[1]
		first := mustReceive(t, a.Broker, DefaultGroup, "first", new(int64(1)))
		a.isolate(true)
		testkit.Must(t, b.nodes.AwaitDeath(t.Context(), a.nodes.Self(), 0))
		b.store.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpList && op.Under("nodes/") {
				return meta.ErrUnavailable
			}
			return nil
		})
		a.isolate(false)
		time.Sleep(2 * cluster.WriteInterval)
		if !first.Ready(nil) || b.nodes.Alive(a.nodes.Self()) {
			t.Fatal("it is not back, or the other has heard of it")
		}
		asked := 0
		f.lose(func(r cluster.Request) bool {
			if r.Subject == subjectEvict {
				asked++
			}
			return false
		})
		mustReceive(t, b.Broker, DefaultGroup, "second", new(int64(1)))
		testkit.Equal(t, asked, 2, "requests and answers of evictions") // one each
	})
}

// H7, C4: who is cut off or frozen loses the slot in the end, is silent before, and hears of it.
func TestTheSlotOfADeadNodeIsTaken(t *testing.T) {
	for _, epoch := range []*int64{new(int64(7)), new(int64(0))} {
		for _, how := range []string{"cut off", "frozen"} {
			t.Run(fmt.Sprintf("%s, by epoch %d", how, *epoch), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFederation(t, 3)
					m := f.members[0]
					first := mustReceive(t, m.Broker, DefaultGroup, "first", new(int64(7)))
					thaw := func() { m.isolate(false) }
					if how == "frozen" {
						thaw = m.freeze()
					} else {
						m.isolate(true)
						f.lose(func(r cluster.Request) bool { return r.To == m.nodes.Self() })
					}
					began := time.Now()
					var second *reader
					for second == nil { // a lower epoch is refused until then
						second, _ = receive(t, f.members[1].Broker, DefaultGroup, "second", epoch)
						time.Sleep(100 * time.Millisecond)
					}
					if took := time.Since(began); took < cluster.QuietAfter || took > 25*time.Second {
						t.Errorf("it took %v", took)
					}
					if first.Ready(func() {}) || !second.Ready(func() {}) {
						t.Error("the wrong one reads")
					}
					if got := testkit.Value(f.members[2].Receivers(t.Context(), "orders", DefaultGroup))(t); len(got) != 1 || got[0].Name != "second" {
						t.Errorf("%+v are there", got)
					}
					f.lose(nil)
					thaw()
					time.Sleep(2 * cluster.WriteInterval)
					if len(first.evictions()) != 1 || first.Ready(func() {}) {
						t.Errorf("first was told %v", first.evictions())
					}
					testkit.Equal(t, len(second.evictions()), 0, "second was told")
				})
			})
		}
	}
}

// C4: a receiver without epoch whose node was dead takes its slot again, or is told who has it.
func TestReceiversWithoutEpochComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		m := f.members[0]
		stays := mustReceive(t, m.Broker, DefaultGroup, "stays", nil)
		goes := mustReceive(t, m.Broker, "billing", "goes", nil)
		m.isolate(true)
		time.Sleep(20 * time.Second)
		mustReceive(t, f.members[1].Broker, DefaultGroup, "beside", nil)
		mustReceive(t, f.members[1].Broker, "billing", "instead", new(int64(1)))
		if !stays.Ready(nil) || !goes.Ready(nil) {
			t.Error("they are paused")
		}
		m.isolate(false)
		time.Sleep(3 * cluster.WriteInterval)
		testkit.Equal(t, len(stays.evictions()), 0, "stays was told")
		if got := goes.evictions(); len(got) != 1 || got[0].NewName != "instead" || got[0].NewEpoch != 1 {
			t.Errorf("goes was told %v", got)
		}
		testkit.Equal(t, len(f.slot(t).Holders), 2, "have the slot")
	})
}

// C4: a write whose answer is lost is found, and one that was given up is taken back.
func TestDoubtAboutASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		m := f.members[0]
		m.store.InjectOnce(func(op metatest.Op) bool { return op.Kind == metatest.OpSet && op.Under(slotsPrefix) },
			func(metatest.Op) error { return metatest.Unheard(meta.ErrUncertain) })
		r := mustReceive(t, m.Broker, DefaultGroup, "r", new(int64(1)))
		testkit.Equal(t, len(f.slot(t).Holders), 1, "have the slot")
		testkit.Equal(t, r.Ready(nil), true, "ready")
		m.store.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpSet && op.Under(slotsPrefix) {
				return metatest.Unheard(context.DeadlineExceeded)
			}
			return nil
		})
		_, err := receive(t, m.Broker, "billing", "given up", new(int64(1)))
		testkit.ErrorIs(t, err, context.DeadlineExceeded)
		m.store.Inject(nil)
		time.Sleep(2 * tidyPause)
		if got := testkit.Value(f.members[1].Receivers(t.Context(), "orders", "billing"))(t); len(got) > 0 {
			t.Errorf("%+v are there", got)
		}
	})
}

// C4: a node that stops leaves no receivers behind.
func TestANodeThatStopsLeavesItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		r := mustReceive(t, f.members[0].Broker, DefaultGroup, "r", new(int64(9)))
		r.Close()
		f.members[0].stop()
		began := time.Now()
		mustReceive(t, f.members[1].Broker, DefaultGroup, "next", new(int64(0)))
		testkit.Equal(t, time.Since(began), 0, "it took")
	})
}

// C4: with the hub its slots go.
func TestSlotsAreDeletedWithTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFederation(t, 2)
		r := mustReceive(t, f.members[0].Broker, DefaultGroup, "r", new(int64(9)))
		testkit.Must(t, f.members[1].DeleteHub(t.Context(), "orders"))
		synctest.Wait()
		_, err := r.Cursor.Next(t.Context())
		testkit.ErrorIs(t, err, eventlog.ErrRemoved)
		r.Close()
		time.Sleep(2 * tidyPause)
		if left := testkit.Value(f.Memory.List(t.Context(), slotsPrefix))(t); len(left) > 0 {
			t.Errorf("%d slots stay behind", len(left))
		}
		testkit.Equal(t, len(r.evictions()), 0, "it was told")
	})
}

// witness sees from outside who reads a slot by an epoch: at most one at any time, and nobody comes
// back after another has read.
type witness struct {
	mu      sync.Mutex
	all     map[*guest]bool // guarded by mu
	reading *guest          // guarded by mu
	before  map[*guest]bool // who read before that; guarded by mu
	turns   int             // guarded by mu
}

type guest struct {
	member  *member
	number  int
	r       *Receiver
	evicted bool // guarded by the witness's mu
}

// look finds out who would give events to a client now.
func (w *witness) look() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var reading []*guest
	for g := range w.all {
		if g.r.claim.epoch != nil && !g.evicted && !g.member.frozen() && g.r.Ready(func() {}) {
			reading = append(reading, g)
		}
	}
	switch {
	case len(reading) > 1:
		return fmt.Errorf("%d and %d read at the same time", reading[0].number, reading[1].number)
	case len(reading) == 0 || reading[0] == w.reading:
		return nil
	case w.before[reading[0]]:
		return fmt.Errorf("%d reads again after %d", reading[0].number, w.reading.number)
	}
	if w.reading != nil {
		w.before[w.reading] = true
	}
	w.reading = reading[0]
	w.turns++
	return nil
}

// visit takes the slot for a while.
func (w *witness) visit(ctx context.Context, m *member, number int, epoch *int64, stay time.Duration) {
	g := &guest{member: m, number: number}
	patience, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	r, err := m.Receive(patience, ReceiverConfig{
		Hub: "orders", Group: DefaultGroup, Partition: "0", At: eventlog.Latest(), Epoch: epoch, Name: fmt.Sprint(number),
		Evict: func(*EvictedError) {
			w.mu.Lock()
			defer w.mu.Unlock()
			g.evicted = true
		},
	})
	if err != nil {
		return
	}
	defer r.Cursor.Close()
	w.mu.Lock()
	g.r = r
	w.all[g] = true
	w.mu.Unlock()
	time.Sleep(stay)
	w.mu.Lock()
	delete(w.all, g)
	w.mu.Unlock()
	r.Close()
}

// trouble does something to the nodes for a while.
func (f *federation) trouble(random *rand.Rand) (end func()) {
	m := f.members[random.IntN(len(f.members))]
	switch random.IntN(4) {
	case 0:
		if m.frozen() {
			return func() {}
		}
		return m.freeze()
	case 1:
		m.isolate(true)
		return func() { m.isolate(false) }
	case 2:
		f.lose(func(r cluster.Request) bool { return r.To == m.nodes.Self() || r.From == m.nodes.Self() })
	default:
		chance := rand.New(rand.NewPCG(random.Uint64(), 7)) // guarded by the federation's mu
		f.lose(func(cluster.Request) bool { return chance.IntN(3) == 0 })
	}
	return func() { f.lose(nil) }
}

// H5, H7, C4: whatever happens to nodes, requests and the store, an epoch is never held twice.
func TestEpochsAreNeverDoublyHeld(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 3
	}
	turns := 0
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { turns += watchSlot(t, uint64(seed)) })
		})
	}
	if turns < 20*seeds {
		t.Errorf("the slot changed hands only %d times", turns)
	}
}

func watchSlot(t *testing.T, seed uint64) (turns int) {
	f := newFederation(t, 3)
	random := rand.New(rand.NewPCG(seed, 5))
	w := &witness{all: make(map[*guest]bool), before: make(map[*guest]bool)}
	var visits, troubles sync.WaitGroup
	const length = 4 * time.Minute
	troubles.Go(func() {
		random := rand.New(rand.NewPCG(seed, 6))
		for began := time.Now(); time.Since(began) < length; {
			time.Sleep(time.Duration(random.Int64N(int64(10 * time.Second))))
			end := f.trouble(random)
			time.Sleep(time.Duration(random.Int64N(int64(30 * time.Second))))
			end()
		}
	})
	for number, began := 0, time.Now(); time.Since(began) < length; number++ {
		m := f.members[random.IntN(3)]
		var epoch *int64
		if random.IntN(5) > 0 {
			epoch = new(random.Int64N(3))
		}
		stay := time.Duration(random.Int64N(int64(30 * time.Second)))
		visits.Go(func() { w.visit(t.Context(), m, number, epoch, stay) })
		for range random.IntN(40) {
			time.Sleep(50 * time.Millisecond)
			if err := w.look(); err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
		}
	}
	troubles.Wait()
	visits.Wait()
	time.Sleep(time.Minute)
	for i, m := range f.members { // all is as if nothing had been
		r := mustReceive(t, m.Broker, DefaultGroup, "last", new(int64(i)))
		testkit.Equal(t, r.Ready(nil), true, "ready")
		testkit.Equal(t, len(f.slot(t).Holders), 1, "have the slot")
	}
	time.Sleep(tidyPause) // a node that meets another's change tries again
	testkit.Equal(t, len(f.slot(t).Leaving), 0, "are leaving")
	return w.turns
}
