package cluster

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/internal/testkit"
)

// publishOnce publishes an event through a node until it is acknowledged. Where nothing was heard of an
// attempt it may be there twice.
func (n *node) publishOnce(t testing.TB, topic string, schema grid.Schema, ev grid.Event) {
	t.Helper()
	eventually(t, "nothing can be published through "+n.name, func() bool { return n.publish(t.Context(), tryTime, topic, schema, ev) == nil })
}

// pull receives and acknowledges an event through each of the nodes, of which one holds the
// subscription. C4
func (y *yard) pull(t *testing.T) {
	t.Helper()
	y.createTopic(t, admin.TopicRequest{Name: "pulled", Schema: "cloudevents", Key1: topicKey})
	y.createSubscription(t, admin.SubscriptionRequest{Name: "pull", Topic: "pulled", Pull: &admin.Pull{}})
	for i, n := range y.nodes {
		id := strconv.Itoa(i)
		y.nodes[1].publishOnce(t, "pulled", grid.CloudEvents, grid.Event{ID: id, Type: "numbered", Source: "/test"})
		queue := testkit.Value(grid.NewPullClient(grid.PullConfig{
			Endpoint: "http://" + n.http, Topic: "pulled", Subscription: "pull", Key: topicKey, Log: testkit.Quiet(),
		}))(t)
		eventually(t, "event "+id+" is not received and acknowledged through "+n.name, func() bool {
			return acknowledge(t.Context(), queue, id)
		})
	}
	y.waitQuiet(t, admin.SubscriptionRef{Name: "pull", Topic: "pulled"})
}

// acknowledge receives events and acknowledges each, and tells whether one with that ID was among them.
// A subscription that another node takes over meanwhile forgets its locks and gives events again.
func acknowledge(ctx context.Context, queue *grid.PullClient, id string) (found bool) {
	got, err := queue.Receive(ctx, grid.ReceiveConfig{MaxWait: 10 * time.Second})
	if err != nil {
		return false
	}
	for _, one := range got {
		found = queue.Acknowledge(ctx, one.Lock) == nil && one.Event.ID == id || found
	}
	return found
}

// letters are dead letters' endpoint: it refuses all events, and later takes them.
type letters struct {
	takes atomic.Bool

	mu    sync.Mutex
	taken map[string]bool // by the ID of the event
}

func (l *letters) handle(_ context.Context, batch []grid.Delivery) error {
	if !l.takes.Load() {
		return grid.Reject(errors.New("not yet"))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range batch {
		l.taken[d.Event.ID] = true
	}
	return nil
}

func (l *letters) has(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken[id]
}

// deadLetters lists and redrives dead letters through each of the nodes, of which one holds the
// subscription. C4
func (y *yard) deadLetters(t *testing.T) {
	t.Helper()
	y.createTopic(t, admin.TopicRequest{Name: "refused", Key1: topicKey})
	endpoint := &letters{taken: map[string]bool{}}
	url := y.serve(t, testkit.Value(grid.NewHandler(endpoint.handle, grid.HandlerConfig{OnError: func(error) {}}))(t))
	where, ref := "yard", admin.SubscriptionRef{Name: "refusing", Topic: "refused"}
	y.createSubscription(t, admin.SubscriptionRequest{Name: ref.Name, Topic: ref.Topic, Endpoint: &url, DeadLetter: &where})
	for i, n := range y.nodes {
		n.publishOnce(t, "refused", grid.EventGrid, grid.Event{ID: strconv.Itoa(i), Type: "numbered", Subject: "numbers"})
	}
	for _, n := range y.nodes {
		client := n.admin(t)
		eventually(t, "the dead letters do not show at "+n.name, func() bool {
			page, err := client.DeadLetters(t.Context(), ref, admin.DeadLetterChoice{}, 0, 100)
			there := map[string]bool{}
			for _, one := range page.Letters {
				there[one.EventID] = true
			}
			return err == nil && len(there) == size
		})
	}
	endpoint.takes.Store(true)
	for i, n := range y.nodes {
		client, id := n.admin(t), strconv.Itoa(i)
		eventually(t, "what is redriven through "+n.name+" is not delivered", func() bool {
			// One that was redriven is not redriven again: only the delivery counts.
			_, _ = client.Redrive(t.Context(), ref, admin.RedriveRequest{DeadLetterChoice: admin.DeadLetterChoice{EventID: id}})
			idle(t.Context(), pause)
			return endpoint.has(id)
		})
	}
	y.waitQuiet(t, ref)
}
