package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H2: many producers at one partition, each with several batches under way, sent twice by
// chance, and taken over by themselves now and then, while snapshots are written: all of
// it is stored once and in order, now and after a restart.
func TestProducerStorm(t *testing.T) {
	const producers, batches = 6, 60
	y := newYard(t)
	b := y.open(t)
	mustCreate(t, b, "orders", 1)
	var wg, tender sync.WaitGroup
	done := make(chan struct{})
	tender.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				b.ledgers.tend(t.Context(), 0)
			}
		}
	})
	for id := range int64(producers) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(3, uint64(id)))
			for at := int32(0); at < batches; {
				n, burst := min(1+rnd.Int32N(8), batches-at), burst
				if id%2 == 1 {
					burst = burstOfFrames
				}
				if err := burst(t, b, id, at, n, rnd); err != nil {
					t.Error(err)
					return
				}
				at += n
			}
		})
	}
	wg.Wait()
	close(done)
	tender.Wait()
	checkStorm(t, b, producers, batches)
	for _, b := range []*Broker{b, y.open(t)} {
		for id := int64(0); id < producers; id += 2 {
			if last := mustBegin(t, b, "orders", ProducerConfig{ID: &id}).Last(); last != batches {
				t.Errorf("producer %d ends with %d", id, last)
			}
		}
	}
}

// burst begins an epoch, sends some events one by one without waiting, some of them twice,
// and waits for all.
func burst(t *testing.T, b *Broker, id int64, at, n int32, rnd *rand.Rand) error {
	p, err := b.Producer(t.Context(), "orders", "0", ProducerConfig{ID: &id})
	if err != nil {
		return err
	}
	if p.Last() != at {
		return fmt.Errorf("producer %d is at %d, want %d", id, p.Last(), at)
	}
	var waits sync.WaitGroup
	errs := make(chan error, 2*n)
	for i := range n {
		for range 1 + rnd.IntN(2) {
			pending, err := p.Submit(t.Context(), at+i+1, events(fmt.Sprintf("%d %d", id, at+i)))
			if err != nil {
				return err
			}
			waits.Go(func() {
				_, err := pending.Wait(t.Context())
				errs <- err
			})
		}
	}
	waits.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

// burstOfFrames is burst for who sends frames. Its epochs are the numbers of the first event, of which
// each is higher than the one before; and the first of them has number 0.
func burstOfFrames(t *testing.T, b *Broker, id int64, at, n int32, rnd *rand.Rand) error {
	var waits sync.WaitGroup
	positions, errs := make([][2]eventlog.Sequence, n), make([]error, 2*n)
	for i := range n {
		f := frameOf(id, int16(at), i, fmt.Sprintf("%d %d", id, at+i))
		for again := range 1 + rnd.IntN(2) {
			pending, err := b.SubmitFrames(t.Context(), "orders", FrameTarget{}, []eventlog.Batch{f})
			if err != nil {
				return err
			}
			waits.Go(func() {
				stored, err := pending.Wait(t.Context())
				positions[i][again], errs[2*int(i)+again] = stored.First, err
			})
			if again == 0 {
				positions[i][1] = eventlog.NoSequence
			}
		}
	}
	waits.Wait()
	for i, p := range positions {
		if p[1] != eventlog.NoSequence && p[0] != p[1] {
			errs = append(errs, fmt.Errorf("event %d of producer %d is at %d, and its repeat at %d", int(at)+i, id, p[0], p[1]))
		}
	}
	return errors.Join(errs...)
}

func checkStorm(t *testing.T, b *Broker, producers, batches int) {
	t.Helper()
	next := make(map[string]int)
	for _, m := range readAll(t, b, "orders")[0] {
		id, n, _ := strings.Cut(m, " ")
		testkit.MustEqual(t, n, fmt.Sprint(next[id]), "producer %s: after %d", id, next[id]-1)
		next[id]++
	}
	for id := range producers {
		testkit.Equal(t, next[fmt.Sprint(id)], batches, "producer %d", id)
	}
}
