package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
)

// epochs is one sender to a partition, and receivers that take it over from each other through one
// node after the other.
type epochs struct {
	yard    *yard
	hub     string
	clients [size]*hub.Client
	cancel  context.CancelFunc
	all     sync.WaitGroup
	// next is the number of the next event: one that is sent later has no lower number.
	next atomic.Int64

	// current is the receiver with the highest epoch, old the one before it.
	current, old *receiver
}

// receiver is one that has an epoch.
type receiver struct {
	epoch  int64
	took   time.Duration // until it was let in
	reader hub.Reader
	ended  chan struct{}
	failed error // why, once it has ended

	mu    sync.Mutex
	first int64 // the next event's number when it had received its first; -1 before
	last  int64 // the highest number received
}

// compete makes a hub and starts the sender and the first receiver.
func (y *yard) compete(t testing.TB, name string) *epochs {
	t.Helper()
	y.createHub(t, name, 1)
	ctx, cancel := context.WithCancel(t.Context())
	e := &epochs{yard: y, hub: name, cancel: cancel, current: &receiver{}}
	for i, n := range y.nodes {
		e.clients[i] = testkit.Value(hub.Dial(ctx, n.connection(), hub.Config{Log: testkit.Quiet()}))(t)
		t.Cleanup(func() { _ = e.clients[i].Close() }) // its node may be gone
	}
	e.all.Go(func() { e.send(ctx) })
	t.Cleanup(e.stop)
	testkit.Must(t, e.takeOver(ctx))
	return e
}

// send sends numbered events, through one node until it fails and then through the next.
func (e *epochs) send(ctx context.Context) {
	for at := 0; ctx.Err() == nil; {
		trying, cancel := context.WithTimeout(ctx, tryTime)
		err := e.clients[at%size].Hub(e.hub).SendTo(trying, "0", event.Text(strconv.FormatInt(e.next.Add(1)-1, 10)))
		cancel()
		if err != nil {
			at++
		}
		idle(ctx, pause)
	}
}

// takeOver has a receiver with the next epoch begin through the next node, and waits until it has
// received an event.
func (e *epochs) takeOver(ctx context.Context) error {
	r := &receiver{epoch: e.current.epoch + 1, first: -1, last: -1, ended: make(chan struct{})}
	begun := time.Now()
	for r.reader == nil {
		reader, err := e.clients[r.epoch%size].Hub(e.hub).Open(ctx, hub.ReadConfig{Partition: "0", From: hub.Latest, Epoch: hub.Exclusive(r.epoch)})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			r.reader = reader
		} else {
			idle(ctx, pause)
		}
	}
	r.took = time.Since(begun)
	e.old, e.current = e.current, r
	received := make(chan struct{})
	e.all.Go(func() { r.receive(ctx, &e.next, received) })
	select {
	case <-received:
		return nil
	case <-r.ended:
		return fmt.Errorf("epoch %d ended before it had received anything: %w", r.epoch, r.failed)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// receive notes what comes, until the reader ends.
func (r *receiver) receive(ctx context.Context, next *atomic.Int64, received chan<- struct{}) {
	defer close(r.ended)
	for {
		batch, err := r.reader.Next(ctx, nil, 100)
		if err != nil {
			r.failed = err
			return
		}
		r.mu.Lock()
		for _, ev := range batch {
			if number, err := strconv.ParseInt(string(ev.Body), 10, 64); err == nil {
				r.last = max(r.last, number)
			}
		}
		if r.first < 0 {
			r.first = next.Load()
			close(received)
		}
		r.mu.Unlock()
	}
}

// judge: what was sent after the higher epoch had received did not come to the lower one. It
// ends the lower one.
func (e *epochs) judge(t testing.TB) {
	t.Helper()
	if e.old.reader == nil {
		return
	}
	e.current.mu.Lock()
	first := e.current.first
	e.current.mu.Unlock()
	e.old.mu.Lock()
	last := e.old.last
	e.old.mu.Unlock()
	testkit.That(t, last < first, "epoch %d received number %d, which was sent after epoch %d had received: %d", e.old.epoch, last, e.current.epoch, first)
	closing, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = e.old.reader.Close(closing) // it was evicted, and its node may be gone
	<-e.old.ended
	e.old = &receiver{}
}

// race has receivers take over from each other while all is well, and prints how long that takes.
func (e *epochs) race(t testing.TB) {
	t.Helper()
	var took []time.Duration
	for range 15 {
		testkit.Must(t, e.takeOver(t.Context()))
		took = append(took, e.current.took)
		e.judge(t)
	}
	slices.Sort(took)
	t.Logf("take-over across nodes: p50 %v, longest %v", took[len(took)/2].Round(10*time.Microsecond), took[len(took)-1].Round(10*time.Microsecond))
}

// stop ends sender and receivers.
func (e *epochs) stop() {
	e.cancel()
	e.all.Wait()
}
