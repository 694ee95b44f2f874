package broker

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// hall watches a slot from outside: who has been let in and not been told to go.
type hall struct {
	t  *testing.T
	mu sync.Mutex
	// in are those whose Receive has returned; gone those who were told before that.
	in, gone map[*visitor]bool
	evicted  int
}

type visitor struct{ epoch *int64 }

func (h *hall) enter(v *visitor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone[v] {
		return
	}
	h.in[v] = true
	epochs, others := 0, 0
	for other := range h.in {
		if other.epoch != nil {
			epochs++
		} else {
			others++
		}
	}
	if epochs > 1 || others > MaxReceivers || epochs > 0 && others > 0 {
		h.t.Errorf("%d with epoch and %d without are in at once", epochs, others)
	}
}

// leave is called before the slot is freed.
func (h *hall) leave(v *visitor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.in, v)
}

func (h *hall) evict(v *visitor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone[v] {
		h.t.Error("one is told twice")
	}
	h.gone[v] = true
	h.evicted++
	delete(h.in, v)
}

// H5, H6, H7: however many come and go at once, never do two with epoch read, nor six
// without, nor both kinds.
func TestReceiverStorm(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	h := &hall{t: t, in: make(map[*visitor]bool), gone: make(map[*visitor]bool)}
	var wg sync.WaitGroup
	for who := range 12 {
		wg.Go(func() { h.party(b, rand.New(rand.NewPCG(7, uint64(who)))) })
	}
	wg.Wait()
	if h.evicted == 0 {
		t.Error("nobody was ever evicted")
	}
	testkit.Equal(t, len(b.slots.all), 0, "slots are kept")
}

// party sends visitors in and calls them back, in no order.
func (h *hall) party(b *Broker, rnd *rand.Rand) {
	var out []func()
	for range 200 {
		if n := len(out); n > 0 && rnd.IntN(2) == 0 {
			at := rnd.IntN(n)
			out[at]()
			out[at], out = out[n-1], out[:n-1]
			continue
		}
		v := &visitor{}
		if rnd.IntN(4) == 0 {
			v.epoch = new(rnd.Int64N(4))
		}
		if leave := h.visit(b, v); leave != nil {
			out = append(out, leave)
		}
	}
	for _, leave := range out {
		leave()
	}
}

// visit gives back how to leave, nil if the visitor was refused.
func (h *hall) visit(b *Broker, v *visitor) (leave func()) {
	r, err := b.Receive(h.t.Context(), ReceiverConfig{
		Hub: "orders", Group: DefaultGroup, Partition: "0", At: eventlog.Latest(), Epoch: v.epoch,
		Evict: func(*EvictedError) { h.evict(v) },
	})
	if err != nil {
		return nil
	}
	h.enter(v)
	return func() {
		h.leave(v)
		r.Close()
		r.Cursor.Close()
	}
}

// H5: of many who come at once with the same epoch exactly one stays.
func TestOneOfManyStays(t *testing.T) {
	b := newYard(t).open(t)
	mustCreate(t, b, "orders", 1)
	const many = 16
	readers := make([]*reader, many)
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			var err error
			if readers[i], err = receive(t, b, DefaultGroup, "", new(int64(1))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	staying := 0
	for i, r := range readers {
		switch watched := len(r.evictions()); watched {
		case 0:
			staying++
		case 1:
		default:
			t.Errorf("%d was told %d times", i, watched)
		}
	}
	testkit.Equal(t, staying, 1, "stay")
}
