package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/testkit/history"
)

// epochs is one sender to a partition, and receivers that take it over from each other through one
// node after the other. A receiver that was replaced goes on until it is judged: it is to hear by itself
// that another has its place.
type epochs struct {
	yard    *yard
	hub     string
	clients [size]*hub.Client
	life    context.Context // of the sender and all receivers; ends with stop
	cancel  context.CancelFunc
	all     sync.WaitGroup
	// past is who had the partition when. Each event has the moment at which it was sent as its text.
	past history.Receivers

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
}

// compete makes a hub and starts the sender and the first receiver.
func (y *yard) compete(t testing.TB, name string) *epochs {
	t.Helper()
	y.createHub(t, name, 1)
	e := &epochs{yard: y, hub: name, current: &receiver{}}
	e.life, e.cancel = context.WithCancel(t.Context())
	for i, n := range y.nodes {
		e.clients[i] = testkit.Value(hub.Dial(e.life, n.connection(), hub.Config{Log: testkit.Quiet()}))(t)
		t.Cleanup(func() { _ = e.clients[i].Close() }) // its node may be gone
	}
	e.all.Go(func() { e.send(e.life) })
	t.Cleanup(e.stop)
	testkit.Must(t, e.takeOver())
	return e
}

// send sends events, through one node until it fails and then through the next.
func (e *epochs) send(ctx context.Context) {
	for at := 0; ctx.Err() == nil; {
		trying, cancel := context.WithTimeout(ctx, tryTime)
		err := e.clients[at%size].Hub(e.hub).SendTo(trying, "0", event.Text(strconv.FormatInt(int64(e.past.Now()), 10)))
		cancel()
		if err != nil {
			at++
		}
		idle(ctx, pause)
	}
}

// takeOver has a receiver with the next epoch begin through the next node, and waits until it has
// received an event. The one before it goes on.
func (e *epochs) takeOver() error {
	r := &receiver{epoch: e.current.epoch + 1, ended: make(chan struct{})}
	begun, moment := time.Now(), e.past.Now()
	waiting, cancel := context.WithTimeout(e.life, patience)
	defer cancel()
	for r.reader == nil {
		reader, err := e.clients[r.epoch%size].Hub(e.hub).Open(waiting, hub.ReadConfig{Partition: "0", From: hub.Latest, Epoch: hub.Exclusive(r.epoch)})
		switch {
		case err == nil:
			r.reader = reader
		case waiting.Err() != nil:
			return fmt.Errorf("epoch %d is not let in within %v: %w", r.epoch, patience, err)
		default:
			idle(waiting, pause)
		}
	}
	r.took = time.Since(begun)
	e.old, e.current = e.current, r
	received := make(chan struct{})
	e.all.Go(func() { r.receive(e.life, &e.past, moment, received) })
	select {
	case <-received:
		return nil
	case <-r.ended:
		return fmt.Errorf("epoch %d ended before it had received anything: %w", r.epoch, r.failed)
	case <-waiting.Done():
		return fmt.Errorf("epoch %d was let in after %v and receives nothing within %v", r.epoch, r.took, patience)
	}
}

// receive records what comes, until the reader ends. That it has the partition is known with the first
// event only: a hub may accept a reader before it lets it in.
func (r *receiver) receive(ctx context.Context, past *history.Receivers, begun history.Moment, received chan<- struct{}) {
	defer close(r.ended)
	for first := true; ; first = false {
		batch, err := r.reader.Next(ctx, nil, 100)
		if err != nil {
			r.failed = err
			return
		}
		var newest int64 // which says the most
		for _, ev := range batch {
			sent, err := strconv.ParseInt(string(ev.Body), 10, 64)
			if err != nil {
				r.failed = err
				return
			}
			newest = max(newest, sent)
		}
		if first {
			past.TakeOver(begun, r.epoch)
		}
		past.Receive(history.Moment(newest), r.epoch)
		if first {
			close(received)
		}
	}
}

// judge: the lower epoch hears that it was replaced.
func (e *epochs) judge(t testing.TB) {
	t.Helper()
	if e.old.reader == nil {
		return
	}
	eventually(t, fmt.Sprintf("epoch %d does not hear that it was replaced", e.old.epoch), func() bool { return e.old.hasEnded() })
	testkit.That(t, errors.Is(e.old.failed, hub.ErrEvicted) || errors.Is(e.old.failed, hub.ErrRefused), "epoch %d ended with %v", e.old.epoch, e.old.failed)
	closing, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = e.old.reader.Close(closing) // it was evicted
	e.old = &receiver{}
}

func (r *receiver) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// race has receivers take over from each other while all is well, and prints how long that takes.
func (e *epochs) race(t testing.TB) {
	t.Helper()
	var took []time.Duration
	for range 15 {
		testkit.Must(t, e.takeOver())
		took = append(took, e.current.took)
		e.judge(t)
	}
	slices.Sort(took)
	t.Logf("take-over across nodes: p50 %v, longest %v", took[len(took)/2].Round(10*time.Microsecond), took[len(took)-1].Round(10*time.Microsecond))
}

// judgeAll: no two epochs had the partition at once. What was sent after a higher one had received did
// not come to a lower one.
func (e *epochs) judgeAll(t testing.TB) {
	t.Helper()
	testkit.Check(t, e.past.Check())
	t.Logf("receivers: a history of %d calls", e.past.Len())
}

// stop ends sender and receivers.
func (e *epochs) stop() {
	e.cancel()
	e.all.Wait()
}
