package eventgrid

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/messaging"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/eventgrid/azeventgrid"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/eventgrid/aznamespaces"

	"github.com/eventyard/eventyard/internal/grid/delivery"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// anyToken is a credential that everybody has.
type anyToken struct{}

func (anyToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "any", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// options trust the yard and repeat nothing.
func (y *yard) options() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: y.server.Client(), Retry: policy.RetryOptions{MaxRetries: -1}}
}

// publishers are the official clients for a topic, by what they show.
func (y *yard) publishers(topic string) map[string]*azeventgrid.Client {
	y.t.Helper()
	endpoint := y.server.URL + "/topics/" + topic + "/api/events"
	options := &azeventgrid.ClientOptions{ClientOptions: y.options()}
	byKey, err := azeventgrid.NewClientWithSharedKeyCredential(endpoint, azcore.NewKeyCredential(key1), options)
	testkit.Must(y.t, err)
	bySignature, err := azeventgrid.NewClientWithSAS(endpoint, azcore.NewSASCredential(signed(y.t, endpoint, key2, time.Hour)), options)
	testkit.Must(y.t, err)
	byBearer, err := azeventgrid.NewClient(endpoint, anyToken{}, options)
	testkit.Must(y.t, err)
	return map[string]*azeventgrid.Client{"key": byKey, "signature": bySignature, "bearer": byBearer}
}

func newCloudEvent(t testing.TB, data any) messaging.CloudEvent {
	t.Helper()
	e, err := messaging.NewCloudEvent("/source", "type", data, &messaging.CloudEventOptions{Subject: to.Ptr("subject"), Extensions: map[string]any{"mine": "kept"}})
	testkit.Must(t, err)
	return e
}

// G12: the official client publishes every schema, by key, signature and bearer token.
func TestOfficialPublisher(t *testing.T) {
	for name := range newYard(t).publishers("orders") {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			grid := azeventgrid.Event{
				ID: to.Ptr("1"), Subject: to.Ptr("s"), EventType: to.Ptr("t"), EventTime: to.Ptr(time.Now()), DataVersion: to.Ptr("1.0"), Data: map[string]any{"n": 1},
			}
			_, err := y.publishers("orders")[name].PublishEvents(t.Context(), []azeventgrid.Event{grid, grid}, nil)
			testkit.Must(t, err)
			testkit.Equal(t, ids(t, schema.EventGridForm, y.topics.stored("orders")), "1 1", "stored")
			binary, structured := newCloudEvent(t, []byte{0xff}), newCloudEvent(t, map[string]string{"a": "b"})
			_, err = y.publishers("clouds")[name].PublishCloudEvents(t.Context(), []messaging.CloudEvent{binary, structured}, nil)
			testkit.Must(t, err)
			testkit.Equal(t, ids(t, schema.CloudEventForm, y.topics.stored("clouds")), binary.ID+" "+structured.ID, "stored")
			_, err = y.publishers("mapped")[name].PublishCustomEventEvents(t.Context(), []any{map[string]any{"path": "x", "z": 1}}, nil)
			testkit.Must(t, err)
			testkit.Equal(t, len(y.topics.stored("mapped")), 1, "stored")
		})
	}
}

// G12: the official client understands what is wrong.
func TestOfficialPublisherIsRefused(t *testing.T) {
	y := newYard(t)
	wrong, err := azeventgrid.NewClientWithSharedKeyCredential(y.server.URL+"/topics/orders/api/events", azcore.NewKeyCredential("wrong"), &azeventgrid.ClientOptions{ClientOptions: y.options()})
	testkit.Must(t, err)
	good := y.publishers("orders")["key"]
	_, keyErr := wrong.PublishEvents(t.Context(), nil, nil)
	_, schemaErr := good.PublishEvents(t.Context(), []azeventgrid.Event{{ID: to.Ptr("1")}}, nil)
	y.topics.fails = eventlog.ErrNoSpace
	_, spaceErr := good.PublishCustomEventEvents(t.Context(), []any{map[string]any{"id": "1", "subject": "s", "eventType": "t", "eventTime": time.Now()}}, nil)
	for _, test := range []struct {
		err    error
		status int
		code   string
	}{{keyErr, 401, "Unauthorized"}, {schemaErr, 400, "BadRequest"}, {spaceErr, 503, "Busy"}} {
		t.Run(test.code, func(t *testing.T) {
			var reported *azcore.ResponseError
			if !errors.As(test.err, &reported) || reported.StatusCode != test.status || reported.ErrorCode != test.code {
				t.Errorf("got %v, want %d", test.err, test.status)
			}
		})
	}
}

// A yard that is full for a moment, or a quota that is used up (R4), is tried again by the official
// client itself.
func TestOfficialPublisherTriesAgain(t *testing.T) {
	for _, trouble := range []error{eventlog.ErrFenced, &quota.Error{What: "topic", Of: "events", Wait: time.Minute}} {
		t.Run(trouble.Error(), func(t *testing.T) { triesAgain(t, trouble) })
	}
}

func triesAgain(t *testing.T, trouble error) {
	y := newYard(t)
	y.topics.fails = trouble
	transport := mend{y}
	client, err := azeventgrid.NewClientWithSharedKeyCredential(y.server.URL+"/topics/orders/api/events", azcore.NewKeyCredential(key1),
		&azeventgrid.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: transport, Retry: policy.RetryOptions{RetryDelay: time.Millisecond}}})
	testkit.Must(t, err)
	_, err = client.PublishCustomEventEvents(t.Context(), []any{map[string]any{"id": "1", "subject": "s", "eventType": "t", "eventTime": time.Now()}}, nil)
	testkit.Must(t, err)
	testkit.Equal(t, len(y.topics.stored("orders")), 1, "stored")
}

// mend ends the trouble after the first request, and spares the test the wait that it is told.
type mend struct{ y *yard }

func (m mend) Do(r *http.Request) (*http.Response, error) {
	response, err := m.y.server.Client().Do(r)
	m.y.topics.mu.Lock()
	defer m.y.topics.mu.Unlock()
	m.y.topics.fails = nil
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// namespace is a pair of official clients for a topic and a subscription to pull from.
func (y *yard) namespace(byKey bool) (*aznamespaces.SenderClient, *aznamespaces.ReceiverClient) {
	y.t.Helper()
	send, receive := &aznamespaces.SenderClientOptions{ClientOptions: y.options()}, &aznamespaces.ReceiverClientOptions{ClientOptions: y.options()}
	if byKey {
		sender, err := aznamespaces.NewSenderClientWithSharedKeyCredential(y.server.URL, "clouds", azcore.NewKeyCredential(key1), send)
		testkit.Must(y.t, err)
		receiver, err := aznamespaces.NewReceiverClientWithSharedKeyCredential(y.server.URL, "clouds", "jobs", azcore.NewKeyCredential(key2), receive)
		testkit.Must(y.t, err)
		return sender, receiver
	}
	sender, err := aznamespaces.NewSenderClient(y.server.URL, "clouds", anyToken{}, send)
	testkit.Must(y.t, err)
	receiver, err := aznamespaces.NewReceiverClient(y.server.URL, "clouds", "jobs", anyToken{}, receive)
	testkit.Must(y.t, err)
	return sender, receiver
}

// G12: the official clients of namespaces publish, receive and settle.
func TestOfficialNamespaceClients(t *testing.T) {
	for _, byKey := range []bool{true, false} {
		t.Run(fmt.Sprintf("by key: %v", byKey), func(t *testing.T) {
			y := newYard(t)
			sender, receiver := y.namespace(byKey)
			one, two := newCloudEvent(t, []byte("bytes")), newCloudEvent(t, map[string]any{"n": 1.0})
			_, err := sender.SendEvent(t.Context(), &one, nil)
			testkit.Must(t, err)
			_, err = sender.SendEvents(t.Context(), []*messaging.CloudEvent{&two}, nil)
			testkit.Must(t, err)
			for i, e := range y.topics.stored("clouds") {
				y.pull.events = append(y.pull.events, delivery.Received{Token: fmt.Sprint("token", i), Delivery: i + 1, Form: schema.CloudEventForm, Event: []byte(e)})
			}
			got, err := receiver.ReceiveEvents(t.Context(), &aznamespaces.ReceiveEventsOptions{MaxEvents: to.Ptr[int32](5), MaxWaitTime: to.Ptr[int32](10)})
			testkit.Must(t, err)
			if len(got.Details) != 2 || got.Details[0].Event.ID != one.ID || string(got.Details[0].Event.Data.([]byte)) != "bytes" || got.Details[1].Event.Extensions["mine"] != "kept" {
				t.Fatalf("received %+v", got.Details)
			}
			if b := got.Details[1].BrokerProperties; *b.LockToken != "token1" || *b.DeliveryCount != 2 {
				t.Errorf("the broker says %v %v", *b.LockToken, *b.DeliveryCount)
			}
			y.settleOfficially(receiver)
		})
	}
}

func (y *yard) settleOfficially(receiver *aznamespaces.ReceiverClient) {
	t := y.t
	t.Helper()
	y.pull.lost = "lost"
	tokens := []string{"token0", "lost"}
	acknowledged, err := receiver.AcknowledgeEvents(t.Context(), tokens, nil)
	testkit.Must(t, err)
	released, err := receiver.ReleaseEvents(t.Context(), tokens, &aznamespaces.ReleaseEventsOptions{ReleaseDelayInSeconds: to.Ptr(aznamespaces.ReleaseDelayTenSeconds)})
	testkit.Must(t, err)
	rejected, err := receiver.RejectEvents(t.Context(), tokens, nil)
	testkit.Must(t, err)
	renewed, err := receiver.RenewEventLocks(t.Context(), tokens, nil)
	testkit.Must(t, err)
	for _, outcome := range []struct {
		good []string
		bad  []aznamespaces.FailedLockToken
	}{
		{acknowledged.SucceededLockTokens, acknowledged.FailedLockTokens},
		{released.SucceededLockTokens, released.FailedLockTokens},
		{rejected.SucceededLockTokens, rejected.FailedLockTokens},
		{renewed.SucceededLockTokens, renewed.FailedLockTokens},
	} {
		if strings.Join(outcome.good, " ") != "token0" || len(outcome.bad) != 1 || *outcome.bad[0].LockToken != "lost" || *outcome.bad[0].Error.Code != "TokenLost" || outcome.bad[0].Error.Error() != "Token has expired." {
			t.Errorf("settled %+v", outcome)
		}
	}
	want := "settle jobsjobsjobsj 0 0s token0,lost; settle jobsjobsjobsj 1 10s token0,lost; settle jobsjobsjobsj 2 0s token0,lost; settle jobsjobsjobsj 3 0s token0,lost"
	if asked := y.pull.seen(); !strings.HasSuffix(asked, want) {
		t.Errorf("asked %s", asked)
	}
}

// The official clients understand what a pull is refused with.
func TestOfficialReceiverIsRefused(t *testing.T) { // G12
	y := newYard(t)
	receiver, err := aznamespaces.NewReceiverClientWithSharedKeyCredential(y.server.URL, "clouds", "no such", azcore.NewKeyCredential(key1), &aznamespaces.ReceiverClientOptions{ClientOptions: y.options()})
	testkit.Must(t, err)
	_, err = receiver.ReceiveEvents(t.Context(), nil)
	var reported *azcore.ResponseError
	if !errors.As(err, &reported) || reported.StatusCode != 404 || reported.ErrorCode != "NotFound" {
		t.Errorf("got %v", err)
	}
}
