package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
)

const (
	workHub   = "work"
	workGroup = "billing"
	workTopic = "work-topic"
)

type position struct {
	partition int
	sequence  int64
}

// work is what a yard has to do while it is backed up: senders to a hub, which a processor reads, and
// publishers to a topic with subscriptions.
type work struct {
	yard   *yard
	hooks  *hooks
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu sync.Mutex
	so done // guarded by mu
}

// done is what was done up to some moment.
type done struct {
	acked     map[position]string // what senders were told: the text of the event with a number
	handled   map[position]bool   // by the processor
	published map[int]bool        // numbers of acknowledged events of the topic
	received  [hooked]map[int]bool
}

// work begins it, and waits until all of it has begun.
func (y *yard) work(t *testing.T) *work {
	t.Helper()
	y.createHub(t, workHub, partitions)
	manage(t, "create the group", func(ctx context.Context) error {
		return testkit.Err(y.nodes[0].admin(t).CreateGroup(ctx, workHub, workGroup))
	})
	ctx, cancel := context.WithCancel(t.Context())
	w := &work{yard: y, hooks: y.hook(t), cancel: cancel}
	w.so = done{acked: map[position]string{}, handled: map[position]bool{}, published: map[int]bool{}}
	t.Cleanup(w.stop)
	for i := range 2 * size {
		client := y.nodes[i%size].admin(t)
		w.all.Go(func() { w.send(ctx, client, i) })
	}
	for i := range size {
		w.all.Go(func() { w.publish(ctx, i) })
	}
	client := testkit.Value(hub.Dial(t.Context(), y.nodes[1].connection(), hub.Config{Log: testkit.Quiet()}))(t)
	w.all.Go(func() {
		defer client.Close()
		p := processor.New(client.Hub(workHub), processor.Config{Group: workGroup, OnError: func(error) {}, Log: testkit.Quiet()})
		if err := p.Run(ctx, w.handle); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the processor has ended: %v", err)
		}
	})
	w.goesOn(t)
	return w
}

// send sends batches through a node, one after the other. One of which nothing was heard is not sent again.
func (w *work) send(ctx context.Context, client *admin.Client, sender int) {
	for number := 0; ctx.Err() == nil; {
		batch := admin.Batch{Partition: strconv.Itoa(sender % partitions)}
		var texts []string
		for range 1 + number%5 {
			texts = append(texts, fmt.Sprintf("sender%d %d", sender, number))
			encoded, _ := admin.Event{Body: []byte(texts[len(texts)-1])}.Encode() // it is text
			batch.Events = append(batch.Events, encoded)
			number++
		}
		trying, cancel := context.WithTimeout(ctx, tryTime)
		sent, err := client.Send(trying, workHub, batch)
		cancel()
		if err == nil {
			w.mu.Lock()
			for i, text := range texts {
				w.so.acked[position{sender % partitions, sent.First + int64(i)}] = text
			}
			w.mu.Unlock()
		}
		idle(ctx, pause)
	}
}

// handle notes what the processor is given, and then has a checkpoint written.
func (w *work) handle(ctx context.Context, b *processor.Batch) error {
	p, err := strconv.Atoi(b.Partition.ID())
	if err != nil {
		return err
	}
	w.mu.Lock()
	for _, ev := range b.Events {
		w.so.handled[position{p, ev.Sequence}] = true
	}
	w.mu.Unlock()
	return b.Checkpoint(ctx)
}

// publish publishes one event after the other through a node, each until it is acknowledged.
func (w *work) publish(ctx context.Context, publisher int) {
	for number := publisher; ctx.Err() == nil; {
		if w.yard.nodes[publisher].publish(ctx, tryTime, workTopic, grid.EventGrid, grid.Event{ID: strconv.Itoa(number), Type: "numbered", Subject: "numbers"}) == nil {
			w.mu.Lock()
			w.so.published[number] = true
			w.mu.Unlock()
			number += size
		}
		idle(ctx, 2*pause)
	}
}

// done is what was done up to now.
func (w *work) done() done {
	w.mu.Lock()
	defer w.mu.Unlock()
	return done{acked: maps.Clone(w.so.acked), handled: maps.Clone(w.so.handled), published: maps.Clone(w.so.published), received: w.hooks.copy()}
}

func (w *work) acked() map[position]string { return w.done().acked }

// goesOn waits until each partition has got, and the processor has handled, more events, and each
// subscription was sent more.
func (w *work) goesOn(t testing.TB) {
	t.Helper()
	begun := w.done()
	eventually(t, "the work does not get on", func() bool {
		now := w.done()
		for p := range partitions {
			if count(now.handled, p) < count(begun.handled, p)+20 {
				return false
			}
		}
		for i := range hooked {
			if len(now.received[i]) < len(begun.received[i])+5 && i != down {
				return false
			}
		}
		return len(now.published) > len(begun.published)+20
	})
}

func count(all map[position]bool, partition int) (n int) {
	for at := range all {
		if at.partition == partition {
			n++
		}
	}
	return n
}

func (w *work) stop() {
	w.cancel()
	w.all.Wait()
}

// hooked is how many subscriptions there are. The endpoint of one is down until it is restored.
const (
	hooked = 4
	down   = 1
)

// hooks are the endpoints of the subscriptions.
type hooks struct {
	up atomic.Bool // the one that is down is up again

	mu       sync.Mutex
	received [hooked]map[int]bool // guarded by mu
}

// hook makes the topic with its subscriptions.
func (y *yard) hook(t testing.TB) *hooks {
	t.Helper()
	h := &hooks{}
	y.createTopic(t, admin.TopicRequest{Name: workTopic, Key1: topicKey})
	mux := http.NewServeMux()
	url := y.serve(t, mux)
	for i := range hooked {
		h.received[i] = map[int]bool{}
		path := fmt.Sprintf("/work%d", i)
		mux.Handle(path, testkit.Value(grid.NewHandler(func(_ context.Context, batch []grid.Delivery) error {
			return h.note(i, batch)
		}, grid.HandlerConfig{OnError: func(error) {}}))(t))
		endpoint, schedule := url+path, "10s" // thirty times, which is longer than it is down
		y.createSubscription(t, admin.SubscriptionRequest{Name: path[1:], Topic: workTopic, Endpoint: &endpoint, RetrySchedule: &schedule})
	}
	return h
}

var errDown = errors.New("it is down")

func (h *hooks) note(i int, batch []grid.Delivery) error {
	if i == down && !h.up.Load() {
		return errDown
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range batch {
		number, err := strconv.Atoi(d.Event.ID)
		if err != nil {
			return err
		}
		h.received[i][number] = true
	}
	return nil
}

func (h *hooks) copy() (all [hooked]map[int]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range all {
		all[i] = maps.Clone(h.received[i])
	}
	return all
}

// forget has been received only what had been at some moment, and nothing be down any more.
func (h *hooks) forget(received [hooked]map[int]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.received = received
	h.up.Store(true)
}

// judge waits until each subscription has received all that was published.
func (h *hooks) judge(t testing.TB, published map[int]bool) {
	t.Helper()
	for i := range hooked {
		eventually(t, fmt.Sprintf("subscription work%d does not receive all that was acknowledged", i), func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			for number := range published {
				if !h.received[i][number] {
					return false
				}
			}
			return true
		})
	}
}
