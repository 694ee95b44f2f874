package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/internal/testkit"
)

// pull receives and acknowledges an event through each of the nodes, of which one holds the
// subscription. C4
func (y *yard) pull(t *testing.T) {
	t.Helper()
	client := y.nodes[0].admin(t)
	testkit.Value(client.CreateTopic(t.Context(), admin.TopicRequest{Name: "pulled", Schema: "cloudevents", Key1: topicKey}))(t)
	testkit.Value(client.CreateSubscription(t.Context(), admin.SubscriptionRequest{Name: "pull", Topic: "pulled", Pull: &admin.Pull{}}))(t)
	publisher := testkit.Value(y.nodes[1].publisher("pulled", grid.CloudEvents))(t)
	for i, n := range y.nodes {
		id := strconv.Itoa(i)
		testkit.Must(t, publisher.Publish(t.Context(), grid.Event{ID: id, Type: "numbered", Source: "/test"}))
		queue := testkit.Value(grid.NewPullClient(grid.PullConfig{
			Endpoint: "http://" + n.http, Topic: "pulled", Subscription: "pull", Key: topicKey, Log: testkit.Quiet(),
		}))(t)
		var got []grid.Received
		testkit.Eventually(t, "nothing is received through "+n.name, func() bool {
			got = testkit.Value(queue.Receive(t.Context(), grid.ReceiveConfig{MaxWait: 10 * time.Second}))(t)
			return len(got) > 0
		})
		testkit.Equal(t, got[0].Event.ID, id, "received through "+n.name)
		testkit.Equal(t, got[0].Attempt, 1, "attempt: all before it were acknowledged")
		testkit.Must(t, queue.Acknowledge(t.Context(), got[0].Lock), "acknowledge through %s", n.name)
	}
	y.waitQuiet(t, admin.SubscriptionRef{Name: "pull", Topic: "pulled"})
}

// deadLetters lists and redrives dead letters through each of the nodes, of which one holds the
// subscription. C4
func (y *yard) deadLetters(t *testing.T) {
	t.Helper()
	client := y.nodes[0].admin(t)
	testkit.Value(client.CreateTopic(t.Context(), admin.TopicRequest{Name: "refused", Key1: topicKey}))(t)
	var accepts atomic.Bool
	accepted := make(chan string, 100)
	url := y.serve(t, testkit.Value(grid.NewHandler(func(_ context.Context, batch []grid.Delivery) error {
		if !accepts.Load() {
			return grid.Reject(errors.New("not yet"))
		}
		accepted <- batch[0].Event.ID
		return nil
	}, grid.HandlerConfig{OnError: func(error) {}}))(t))
	yard, ref := "yard", admin.SubscriptionRef{Name: "refusing", Topic: "refused"}
	testkit.Value(client.CreateSubscription(t.Context(), admin.SubscriptionRequest{
		Name: ref.Name, Topic: ref.Topic, Endpoint: &url, DeadLetter: &yard,
	}))(t)
	for i := range y.nodes {
		publisher := testkit.Value(y.nodes[i].publisher("refused", grid.EventGrid))(t)
		testkit.Must(t, publisher.Publish(t.Context(), grid.Event{ID: strconv.Itoa(i), Type: "numbered", Subject: "numbers"}))
	}
	for _, n := range y.nodes {
		testkit.Eventually(t, "the dead letters do not show at "+n.name, func() bool {
			page, err := n.admin(t).DeadLetters(t.Context(), ref, admin.DeadLetterChoice{}, 0, 10)
			return err == nil && len(page.Letters) == size
		})
	}
	accepts.Store(true)
	for i, n := range y.nodes {
		id := strconv.Itoa(i)
		done := testkit.Value(n.admin(t).Redrive(t.Context(), ref, admin.RedriveRequest{DeadLetterChoice: admin.DeadLetterChoice{EventID: id}}))(t)
		testkit.Equal(t, done.Redriven, 1, "redriven through "+n.name)
		select {
		case got := <-accepted:
			testkit.Equal(t, got, id, fmt.Sprintf("delivered after a redrive through %s", n.name))
		case <-time.After(time.Minute):
			t.Fatalf("what was redriven through %s is not delivered", n.name)
		}
	}
	y.waitQuiet(t, ref)
}
