package processor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// acting is who may act on which partition, as their calls see it: from when one begins until its
// context ends.
type acting struct {
	mu    sync.Mutex // guards all
	now   map[string]string
	wrong []string
}

// handle is a call that never ends by itself.
func (a *acting) handle(id string) processor.Handler {
	return func(ctx context.Context, b *processor.Batch) error {
		partition := b.Partition.ID()
		a.begin(partition, id)
		defer a.end(partition, id)
		select {
		case <-ctx.Done():
		case <-b.Leaving():
		}
		return processor.ErrUndone
	}
}

func (a *acting) begin(partition, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if other := a.now[partition]; other != "" {
		a.wrong = append(a.wrong, fmt.Sprintf("%v: %s begins partition %s while %s has it", time.Now().Format("15:04:05.000"), id, partition, other))
	}
	a.now[partition] = id
}

func (a *acting) end(partition, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now[partition] == id {
		delete(a.now, partition)
	}
}

// owners is who has what now.
func (a *acting) owners() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string]string{}
	for partition, id := range a.now {
		all[partition] = id
	}
	return all
}

// C4: whatever happens to the ways to the store, no two instances act on a partition at once; and
// when the ways are good again every partition is being worked on.
func TestNeverTwoActAtOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		older int // instances of an older version that come and go
	}{{"all of one version", 0}, {"older ones come and go", 2}} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range simSeeds() {
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
					bubbleWith(t, 6, true, func(w *world) { w.simulate(seed, 4, c.older) })
				})
			}
		})
	}
}

// forsake stops an instance that may not be able to hand everything over, and waits for nothing.
func (r *running) forsake() {
	r.cancel()
	go func() { <-r.done }()
}

func simSeeds() uint64 {
	if testing.Short() {
		return 4
	}
	return 16
}

// simulate lets instances work for half an hour with bad ways to the store, and then with good ones.
func (w *world) simulate(seed uint64, instances, older int) {
	random := newRand(seed)
	a := &acting{now: map[string]string{}}
	w.feedAll(0, 1)
	ways := map[string]*late{}
	var all []*running
	start := func(id string, old bool) *running {
		way := &late{Store: w.store, older: old, rand: newRand(random.Uint64()), far: 50 * time.Millisecond}
		ways[id] = way
		cfg := w.config(id)
		cfg.Store, cfg.Handoff, cfg.HandlerTimeout = way, time.Hour, -1
		cfg.Backoff = processor.Backoff{First: 50 * time.Millisecond, Max: time.Second}
		return w.start(cfg, a.handle(id))
	}
	for i := range instances {
		all = append(all, start(fmt.Sprint("new-", i), false))
	}
	var guests []*running
	for step := range 120 {
		for _, way := range ways {
			switch random.IntN(8) {
			case 0:
				way.set(30*time.Second, 0) // some calls are in time, some are not
			case 1:
				way.set(time.Second, 5)
			case 2:
				way.set(time.Minute, 9) // as good as cut off
			case 3:
			default:
				way.set(50*time.Millisecond, 0)
			}
		}
		if older > 0 && step%10 == 5 {
			guests = append(guests, start(fmt.Sprint("old-", step), true))
		}
		if len(guests) > older || len(guests) > 0 && random.IntN(12) == 0 {
			guests[0].forsake()
			guests = guests[1:]
		}
		after(time.Duration(1+random.IntN(25)) * time.Second)
	}
	for _, way := range ways {
		way.set(50*time.Millisecond, 0)
	}
	for _, g := range guests {
		g.forsake()
	}
	after(5 * time.Minute)
	for _, wrong := range a.wrong {
		w.t.Error(wrong)
	}
	if got := a.owners(); len(got) != len(w.hub.IDs()) {
		w.t.Errorf("at the end %v are worked on", got)
	}
	for _, r := range all {
		r.forsake()
	}
	after(5 * time.Minute) // what is on its way arrives
}
