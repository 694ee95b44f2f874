package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/internal/testkit"
)

const (
	// subscriptions are so many that each node has shards of some: all but surely.
	subscriptions = 16
	// topicKey is the key of every topic here.
	topicKey = "a-key-of-the-tests-0123456789"
	// publishPause keeps the number of deliveries such that all processes have a share of the machine.
	publishPause = 250 * time.Millisecond
)

// webhooks is publishers to a topic, one beginning at each node, and the receivers of its
// subscriptions.
type webhooks struct {
	yard    *yard
	topic   string
	refused errorList // of publishers: what clients give up after
	heard   refusals  // of publishers
	cancel  context.CancelFunc
	all     sync.WaitGroup

	mu           sync.Mutex
	next         int // number of the next event
	acknowledged []int
	attempts     map[int]int                // to publish each number: as often may it be stored
	received     [subscriptions]map[int]int // how often
	again        int                        // how many deliveries were of a number that the subscription had
	newest       [subscriptions]int         // the highest number received
}

// deliver makes a topic with subscriptions and starts to publish.
func (y *yard) deliver(t testing.TB, topic string) *webhooks {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &webhooks{yard: y, topic: topic, cancel: cancel, attempts: map[int]int{}}
	y.createTopic(t, admin.TopicRequest{Name: topic, Key1: topicKey})
	mux := http.NewServeMux()
	url := y.serve(t, mux)
	for i := range subscriptions {
		w.received[i], w.newest[i] = map[int]int{}, -1
		mux.Handle("/"+w.subscription(i), testkit.Value(grid.NewHandler(func(_ context.Context, batch []grid.Delivery) error {
			return w.note(i, batch)
		}, grid.HandlerConfig{}))(t))
		endpoint, schedule := url+"/"+w.subscription(i), "1s"
		y.createSubscription(t, admin.SubscriptionRequest{Name: w.subscription(i), Topic: topic, Endpoint: &endpoint, RetrySchedule: &schedule})
	}
	for i := range size {
		w.all.Go(func() { w.publish(ctx, i) })
	}
	t.Cleanup(w.stop)
	return w
}

func (w *webhooks) subscription(i int) string { return fmt.Sprintf("subscription%d", i) }

func (w *webhooks) ref(i int) admin.SubscriptionRef {
	return admin.SubscriptionRef{Name: w.subscription(i), Topic: w.topic}
}

// publisher is a client of a topic through a node, which makes one attempt for as long as its context lets it.
func (n *node) publisher(topic string, schema grid.Schema) (*grid.Client, error) {
	return grid.NewClient(grid.Config{
		Endpoint: "http://" + n.http + "/topics/" + topic + "/api/events", Key: topicKey, Schema: schema,
		Retry: grid.Retry{Attempts: 1, Timeout: patience}, Log: testkit.Quiet(),
	})
}

// publish makes one attempt to publish an event through a node.
func (n *node) publish(ctx context.Context, within time.Duration, topic string, schema grid.Schema, ev grid.Event) error {
	client, err := n.publisher(topic, schema)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return client.Publish(ctx, ev)
}

// publish publishes one event after the other, each through one node after the other until one
// acknowledges it.
func (w *webhooks) publish(ctx context.Context, at int) {
	for ctx.Err() == nil {
		w.mu.Lock()
		number := w.next
		w.next++
		w.mu.Unlock()
		for ctx.Err() == nil {
			w.mu.Lock()
			w.attempts[number]++
			w.mu.Unlock()
			begun := time.Now()
			err := w.yard.nodes[at%size].publish(ctx, answerTime, w.topic, grid.EventGrid, grid.Event{ID: strconv.Itoa(number), Type: "numbered", Subject: "numbers"})
			if err == nil {
				w.mu.Lock()
				w.acknowledged = append(w.acknowledged, number)
				w.mu.Unlock()
				break
			}
			if err := w.heard.add(begun, err, webRefusalOf); err != nil {
				w.refused.add(fmt.Errorf("publish number %d: %w", number, err))
			}
			at++
			idle(ctx, pause)
		}
		idle(ctx, publishPause)
	}
}

// note notes what a subscription was sent.
func (w *webhooks) note(i int, batch []grid.Delivery) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range batch {
		number, err := strconv.Atoi(d.Event.ID)
		if err != nil {
			return err
		}
		if w.received[i][number]++; w.received[i][number] > 1 {
			w.again++
		}
		w.newest[i] = max(w.newest[i], number)
	}
	return nil
}

// repeats is how many deliveries were repeats so far, and how many of these were beyond the attempts to publish: a
// number may be stored twice if an attempt was not heard of and was made again.
func (w *webhooks) repeats() (all, beyond int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.received {
		for number, times := range w.received[i] {
			beyond += max(0, times-w.attempts[number])
		}
	}
	return w.again, beyond
}

// goesOn waits until each subscription has received an event that was published since.
func (w *webhooks) goesOn(t testing.TB, when string) {
	t.Helper()
	w.mu.Lock()
	since := w.next
	w.mu.Unlock()
	for i := range subscriptions {
		eventually(t, fmt.Sprintf("%s receives nothing more %s", w.subscription(i), when), func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.newest[i] >= since
		})
	}
}

// stop ends the publishers.
func (w *webhooks) stop() {
	w.cancel()
	w.all.Wait()
}

// judge waits until all that was acknowledged was received by each subscription, and then until
// nothing is left waiting, whichever node is asked.
func (w *webhooks) judge(t testing.TB) {
	t.Helper()
	for i := range subscriptions {
		eventually(t, w.subscription(i)+" does not receive all that was acknowledged", func() bool { return len(w.missing(i)) == 0 })
	}
	for i := range subscriptions {
		w.yard.waitQuiet(t, w.ref(i))
	}
	for _, err := range w.refused.list() {
		t.Error(err)
	}
	again, beyond := w.repeats()
	t.Logf("webhooks: %d events were acknowledged, and received by each of %d subscriptions; %d deliveries were repeats, all but %d of which may be of events that were published again; publishers were told: %v",
		len(w.acknowledged), subscriptions, again, beyond, w.heard.counts())
}

// missing are the acknowledged numbers that a subscription has not received.
func (w *webhooks) missing(i int) (numbers []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.acknowledged {
		if w.received[i][n] == 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// waitQuiet waits until nothing waits for a subscription, whichever node is asked.
func (y *yard) waitQuiet(t testing.TB, ref admin.SubscriptionRef) {
	t.Helper()
	for _, n := range y.nodes {
		client := n.admin(t)
		eventually(t, fmt.Sprintf("%s has something waiting, says %s", ref.Name, n.name), func() bool {
			s, err := client.Subscription(t.Context(), ref, false)
			return err == nil && s.Stats != nil && quiet(*s.Stats)
		})
	}
}

// quiet: nothing waits, and nothing is under way.
func quiet(s admin.DeliveryStats) bool {
	waiting := int64(s.InFlight) + int64(s.Queued) + s.Behind + s.Parked
	for _, one := range s.Waiting {
		waiting += one.Events
	}
	return waiting == 0
}
