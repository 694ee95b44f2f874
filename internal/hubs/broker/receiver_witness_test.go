package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

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
		if g.r.claim.epoch != nil && !g.evicted && !g.member.isFrozen() && g.r.Ready(func() {}) {
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

// trouble does something to the nodes for a while. look is called where something may go wrong only
// for a moment.
func (f *federation) trouble(random *rand.Rand, look func()) (end func()) {
	m := f.members[random.IntN(len(f.members))]
	toOrFrom := func(r cluster.Request) bool { return r.To == m.nodes.Self() || r.From == m.nodes.Self() }
	switch random.IntN(5) {
	case 0:
		thaw := m.freeze()
		return func() { thaw(look) }
	case 1:
		m.isolate(true)
		return func() { m.isolate(false) }
	case 2:
		f.lose(toOrFrom)
	case 3:
		m.isolate(true)
		f.lose(toOrFrom)
		return func() {
			m.isolate(false)
			f.lose(nil)
		}
	default:
		chance := rand.New(rand.NewPCG(random.Uint64(), 7)) // guarded by the federation's mu
		f.lose(func(cluster.Request) bool { return chance.IntN(3) == 0 })
	}
	return func() { f.lose(nil) }
}

// H5, H7, C4: whatever happens to nodes, requests and the store, an epoch is never held twice.
func TestEpochsAreNeverDoublyHeld(t *testing.T) {
	testengine.NeedsBubble(t)
	seeds := 25
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
		for began := time.Now(); time.Since(began) < length && !t.Failed(); {
			time.Sleep(time.Duration(random.Int64N(int64(10 * time.Second))))
			end := f.trouble(random, func() { testkit.Check(t, w.look(), "at once when a node goes on") })
			time.Sleep(time.Duration(random.Int64N(int64(30 * time.Second))))
			end()
		}
	})
	for number, began := 0, time.Now(); time.Since(began) < length && !t.Failed(); number++ {
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
				t.Errorf("after %v: %v", time.Since(began), err)
				break
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
