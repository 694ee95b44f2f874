package eventgrid

import (
	"context"
	"errors"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/messaging"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/eventgrid/aznamespaces"

	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/testkit"
)

// late is a delivery service that comes into being after the listener. The field is set before the
// first request.
type late struct{ *delivery.Service }

// noDead has no room: nothing is put away here.
type noDead struct{}

func (noDead) Put(context.Context, *topics.Subscription, []pending.Delivery) error {
	return errors.New("an event was given up")
}

// deliver runs the real delivery service until the test ends.
func (y *realYard) deliver(service *late) {
	t := y.t
	log := testkit.Quiet()
	retries, err := retrylog.Open(t.Context(), retrylog.Config{Engine: y.engine, Meta: y.store, Ladder: retry.Ladder(), Log: log})
	testkit.Must(t, err)
	service.Service, err = delivery.Open(t.Context(), delivery.Config{
		Meta: y.store, Topics: y.topicRegistry, Broker: y.hubs, Sender: idle{}, Dead: noDead{}, RetryLogs: retries, Log: log,
	})
	testkit.Must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- service.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		testkit.Must(t, <-done)
	})
}

// G12: what the official client of namespaces publishes comes to the one that receives, again
// after it was released, and not once it is acknowledged.
func TestOfficialClientsOverRealDelivery(t *testing.T) {
	service := &late{}
	y := newRealYard(t, func(c *Config) { c.Pull = service })
	y.topic("clouds", schema.CloudEvents)
	_, err := y.topicRegistry.Create(t.Context(), topics.Source{Topic: "clouds"}, "jobs", topics.Settings{Pull: &topics.Pull{}})
	testkit.Must(t, err)
	y.deliver(service)

	sender, receiver := y.namespace(true)
	sent := newCloudEvent(t, map[string]any{"n": 1.0})
	_, err = sender.SendEvents(t.Context(), []*messaging.CloudEvent{&sent}, nil)
	testkit.Must(t, err)
	receive := func() aznamespaces.ReceiveDetails {
		t.Helper()
		got, err := receiver.ReceiveEvents(t.Context(), &aznamespaces.ReceiveEventsOptions{MaxEvents: to.Ptr[int32](10), MaxWaitTime: to.Ptr[int32](20)})
		testkit.Must(t, err)
		if len(got.Details) != 1 || got.Details[0].Event.ID != sent.ID || got.Details[0].Event.Extensions["mine"] != "kept" {
			t.Fatalf("received %+v", got.Details)
		}
		return got.Details[0]
	}
	first := receive()
	released, err := receiver.ReleaseEvents(t.Context(), []string{*first.BrokerProperties.LockToken}, nil)
	testkit.Must(t, err)
	testkit.MustEqual(t, len(released.SucceededLockTokens), 1, "released %+v", released)
	second := receive()
	if *first.BrokerProperties.DeliveryCount != 1 || *second.BrokerProperties.DeliveryCount != 2 {
		t.Errorf("delivered for the %d. and the %d. time", *first.BrokerProperties.DeliveryCount, *second.BrokerProperties.DeliveryCount)
	}
	tokens := []string{*first.BrokerProperties.LockToken, *second.BrokerProperties.LockToken, "alien"}
	settled, err := receiver.AcknowledgeEvents(t.Context(), tokens, nil)
	testkit.Must(t, err)
	if failed := settled.FailedLockTokens; len(settled.SucceededLockTokens) != 1 || len(failed) != 2 || *failed[0].Error.Code != "TokenLost" || *failed[1].Error.Code != "BadToken" {
		t.Errorf("settled %+v", settled)
	}
	none, err := receiver.ReceiveEvents(t.Context(), &aznamespaces.ReceiveEventsOptions{MaxWaitTime: to.Ptr[int32](1)})
	testkit.Must(t, err)
	testkit.Equal(t, len(none.Details), 0, "received %+v", none.Details)
}

// A subscription that is pushed cannot be pulled from.
func TestPushedSubscriptionsAreNotPulled(t *testing.T) {
	service := &late{}
	y := newRealYard(t, func(c *Config) { c.Pull = service })
	y.topic("clouds", schema.CloudEvents)
	y.ask("PUT", "/topics/clouds/eventSubscriptions/jobs", `{"properties":{"destination":{"endpointType":"EventHub","properties":{"eventHub":"a/b"}}}}`, asRoot).want(201)
	y.deliver(service)
	y.ask("POST", jobs+":receive?maxWaitTime=1", "", withKey).refused(400, "InvalidDeliveryMode")
	y.ask("POST", jobs+":acknowledge", `{"lockTokens":["a"]}`, withKey).refused(400, "InvalidDeliveryMode")
}

// idle is a sender who never has to go: nothing is published.
type idle struct{}

func (idle) Prepare(*topics.Subscription, string) (*webhook.Order, error) {
	return &webhook.Order{}, nil
}

func (idle) Deliver(context.Context, *webhook.Order, []*pending.Delivery) webhook.Result {
	panic("nothing is to be delivered")
}
