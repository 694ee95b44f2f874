//go:build linux

package interop

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/messaging"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/eventgrid/azeventgrid"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/eventgrid/aznamespaces"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// nobodysToken is a bearer token that nobody issued.
func nobodysToken() string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(`{"aud":"https://eventgrid.azure.net"}`)) + "."
}

// anybodysToken is a credential of Azure Identity's kind that everybody has.
type anybodysToken struct{}

func (anybodysToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: nobodysToken(), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// gridSignature is a token for an endpoint, made with a topic's key the way that Microsoft's sample
// for C# does it.
func gridSignature(t *testing.T, endpoint, key string, until time.Time) string {
	t.Helper()
	secret, err := base64.StdEncoding.DecodeString(key)
	testkit.Must(t, err)
	unsigned := "r=" + url.QueryEscape(endpoint) + "&e=" + url.QueryEscape(until.UTC().Format("1/2/2006 3:04:05 PM"))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(unsigned))
	return unsigned + "&s=" + url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

func (y *yard) goOptions(t *testing.T) azcore.ClientOptions {
	t.Helper()
	return azcore.ClientOptions{Transport: y.trusting(t), Retry: policy.RetryOptions{MaxRetries: -1}}
}

// goPublishers are the official clients of a topic, by what they show.
func (y *yard) goPublishers(t *testing.T, topic admin.Topic) map[string]*azeventgrid.Client {
	t.Helper()
	options := &azeventgrid.ClientOptions{ClientOptions: y.goOptions(t)}
	at := topic.SecureEndpoint
	byKey, err1 := azeventgrid.NewClientWithSharedKeyCredential(at, azcore.NewKeyCredential(topic.Keys.Key1), options)
	bySignature, err2 := azeventgrid.NewClientWithSAS(at, azcore.NewSASCredential(gridSignature(t, at, topic.Keys.Key2, time.Now().Add(time.Hour))), options)
	byToken, err3 := azeventgrid.NewClient(at, anybodysToken{}, options)
	testkit.Must(t, errors.Join(err1, err2, err3))
	return map[string]*azeventgrid.Client{"key": byKey, "signature": bySignature, "bearer": byToken}
}

// TestGridGo publishes with the official library for Go: every schema, by key, signature and bearer
// token; and has it refused. // G9, G12
func TestGridGo(t *testing.T) {
	t.Parallel()
	y := startGrid(t, quickGrid, "acceptAnyJwt: true")
	t.Run("event grid", func(t *testing.T) { goPublishesGridEvents(t, y) })
	t.Run("cloudevents", func(t *testing.T) { goPublishesCloudEvents(t, y) })
	t.Run("custom", func(t *testing.T) { goPublishesCustomEvents(t, y) })
	t.Run("refused", func(t *testing.T) { goIsRefused(t, y) })
}

func goPublishesGridEvents(t *testing.T, y *yard) {
	topic := y.topic(t, "orders", "eventgrid")
	h := newHook(t, nil)
	y.subscribe(t, topic.Name, "all", h.URL)
	clients := y.goPublishers(t, topic)
	at := time.Now().UTC()
	for shown, client := range clients {
		_, err := client.PublishEvents(t.Context(), []azeventgrid.Event{{
			ID: to.Ptr(shown), Subject: to.Ptr("/shops/1"), EventType: to.Ptr("order.placed"), EventTime: &at, DataVersion: to.Ptr("1.0"),
			Data: map[string]any{"total": 42},
		}}, nil)
		testkit.Must(t, err, "by %s", shown)
	}
	for _, got := range h.await(t, len(clients)) {
		// The library reads its own events back.
		back := read[[]azeventgrid.Event](t, got.body)
		if len(back) != 1 || clients[*back[0].ID] == nil || !back[0].EventTime.Equal(at) || *back[0].DataVersion != "1.0" || *back[0].Topic != topic.Resource ||
			back[0].Data.(map[string]any)["total"] != 42.0 {
			t.Errorf("delivered %s", got.body)
		}
		delete(clients, *back[0].ID)
	}
}

func goPublishesCloudEvents(t *testing.T, y *yard) {
	topic := y.topic(t, "clouds", "cloudevents")
	h := newHook(t, nil)
	y.subscribe(t, topic.Name, "all", h.URL)
	sent := map[string]messaging.CloudEvent{}
	for shown, client := range y.goPublishers(t, topic) {
		object, err1 := messaging.NewCloudEvent("/source", "order.placed", map[string]any{"by": shown}, &messaging.CloudEventOptions{
			Subject: to.Ptr("a"), Extensions: map[string]any{"mine": "kept"}, DataSchema: to.Ptr("https://example.test/schema"),
		})
		bytes, err2 := messaging.NewCloudEvent("/source", "order.photo", []byte{0xff, 0, 1}, &messaging.CloudEventOptions{DataContentType: to.Ptr("image/png")})
		_, err3 := client.PublishCloudEvents(t.Context(), []messaging.CloudEvent{object, bytes}, nil)
		testkit.Must(t, errors.Join(err1, err2, err3), "by %s", shown)
		sent[object.ID], sent[bytes.ID] = object, bytes
	}
	for _, got := range h.await(t, len(sent)) {
		back := read[messaging.CloudEvent](t, got.body)
		want, ours := sent[back.ID]
		delete(sent, back.ID)
		if !ours || back.Type != want.Type || !back.Time.Equal(*want.Time) || back.Extensions["mine"] != want.Extensions["mine"] {
			t.Errorf("delivered %s", got.body)
		}
		if raw, isBytes := want.Data.([]byte); isBytes && !slices.Equal(back.Data.([]byte), raw) {
			t.Errorf("delivered %s", got.body)
		}
	}
	if len(sent) > 0 {
		t.Errorf("not delivered: %v", sent)
	}
}

func goPublishesCustomEvents(t *testing.T, y *yard) {
	topic := y.topic(t, "readings", "custom")
	h := newHook(t, nil)
	y.subscribe(t, topic.Name, "all", h.URL, "--schema", "custom")
	_, err := y.goPublishers(t, topic)["key"].PublishCustomEventEvents(t.Context(), []any{
		map[string]any{"id": "7", "eventType": "reading", "subject": "kitchen", "eventTime": time.Now(), "celsius": 21.5},
	}, nil)
	testkit.Must(t, err)
	got := h.await(t, 1)[0]
	if back := read[[]object](t, got.body); len(back) != 1 || back[0]["celsius"] != 21.5 || back[0]["subject"] != "kitchen" || back[0]["metadataVersion"] != nil {
		t.Errorf("delivered %s", got.body)
	}
}

// goIsRefused looks at what the library makes of the yard's refusals.
func goIsRefused(t *testing.T, y *yard) {
	topic := y.topic(t, "strict", "eventgrid")
	for what, test := range goRefusals(t, y, topic) {
		t.Run(what, func(t *testing.T) {
			_, err := test.client.PublishEvents(t.Context(), test.events, nil)
			var reported *azcore.ResponseError
			if !errors.As(err, &reported) || reported.StatusCode != test.status || reported.ErrorCode != test.code {
				t.Errorf("got %v; want %d %s", err, test.status, test.code)
			}
		})
	}
	testkit.Equal(t, ask[admin.Topic](t, y, "topic", "show", topic.Name).Events, 0,
		"events were stored all the same")
}

// goRefusal is a publication that is refused with a status and a code.
type goRefusal struct {
	client *azeventgrid.Client
	events []azeventgrid.Event
	status int
	code   string
}

func goRefusals(t *testing.T, y *yard, topic admin.Topic) map[string]goRefusal {
	t.Helper()
	other := y.topic(t, "other", "eventgrid").Keys.Key1
	options := &azeventgrid.ClientOptions{ClientOptions: y.goOptions(t)}
	byKey := func(key string) *azeventgrid.Client {
		client, err := azeventgrid.NewClientWithSharedKeyCredential(topic.SecureEndpoint, azcore.NewKeyCredential(key), options)
		testkit.Must(t, err)
		return client
	}
	bySignature := func(key string, until time.Duration) *azeventgrid.Client {
		signature := gridSignature(t, topic.SecureEndpoint, key, time.Now().Add(until))
		client, err := azeventgrid.NewClientWithSAS(topic.SecureEndpoint, azcore.NewSASCredential(signature), options)
		testkit.Must(t, err)
		return client
	}
	good := azeventgrid.Event{ID: to.Ptr("1"), Subject: to.Ptr("s"), EventType: to.Ptr("t"), EventTime: to.Ptr(time.Now()), DataVersion: to.Ptr("1")}
	large := good
	large.Data = strings.Repeat("x", 1<<20+4096)
	one := []azeventgrid.Event{good}
	key := topic.Keys.Key1
	return map[string]goRefusal{
		"a key of another topic":           {byKey(other), one, 401, "Unauthorized"},
		"a key of nobody":                  {byKey("bm9uZQ=="), one, 401, "Unauthorized"},
		"a signature by another key":       {bySignature(other, time.Hour), one, 401, "Unauthorized"},
		"a signature whose time is over":   {bySignature(key, -time.Hour), one, 401, "Unauthorized"},
		"an event of more than a mebibyte": {byKey(key), []azeventgrid.Event{large}, 413, "PayloadTooLarge"},
		"more events than 5000":            {byKey(key), slices.Repeat(one, 5001), 413, "PayloadTooLarge"},
		"an event without a type":          {byKey(key), []azeventgrid.Event{{ID: to.Ptr("1"), Subject: to.Ptr("s")}}, 400, "BadRequest"},
	}
}

// TestGridGoNamespace publishes, receives and settles with the official library for namespaces. G12
func TestGridGoNamespace(t *testing.T) {
	t.Parallel()
	y := startGrid(t, quickGrid, "acceptAnyJwt: true")
	topic := y.topic(t, "readings", "cloudevents")
	y.do(t, "subscription", "create", "worker", "--topic", topic.Name, "--pull", "--lock", "60s", "--dead-letter", "yard")
	y.awaitDelivered(t, "worker")
	at := strings.TrimSuffix(topic.SecureEndpoint, "/topics/readings/api/events")
	send, receive := &aznamespaces.SenderClientOptions{ClientOptions: y.goOptions(t)}, &aznamespaces.ReceiverClientOptions{ClientOptions: y.goOptions(t)}
	sender, err1 := aznamespaces.NewSenderClientWithSharedKeyCredential(at, topic.Name, azcore.NewKeyCredential(topic.Keys.Key1), send)
	receiver, err2 := aznamespaces.NewReceiverClientWithSharedKeyCredential(at, topic.Name, "worker", azcore.NewKeyCredential(topic.Keys.Key2), receive)
	other, err3 := aznamespaces.NewReceiverClient(at, topic.Name, "worker", anybodysToken{}, receive)
	testkit.Must(t, errors.Join(err1, err2, err3))
	var sent []*messaging.CloudEvent
	for _, kind := range []string{"acknowledged", "released", "rejected", "kept"} {
		e, err := messaging.NewCloudEvent("/source", kind, map[string]any{"n": 1.0}, &messaging.CloudEventOptions{Extensions: map[string]any{"mine": "kept"}})
		testkit.Must(t, err)
		sent = append(sent, &e)
	}
	_, err1 = sender.SendEvent(t.Context(), sent[0], nil)
	_, err2 = sender.SendEvents(t.Context(), sent[1:], nil)
	testkit.Must(t, errors.Join(err1, err2))
	tokens := map[string]string{} // by the event's type
	for len(tokens) < len(sent) {
		for _, d := range goReceives(t, receiver, 10) {
			if *d.BrokerProperties.DeliveryCount != 1 || d.Event.Extensions["mine"] != "kept" || d.Event.Data == nil {
				t.Errorf("received %+v, %d times", d.Event, *d.BrokerProperties.DeliveryCount)
			}
			tokens[d.Event.Type] = *d.BrokerProperties.LockToken
		}
	}
	goSettles(t, receiver, tokens)
	// What was released comes again, to anybody; nothing else does.
	for _, d := range goReceives(t, other, 10) {
		if d.Event.Type != "released" || *d.BrokerProperties.DeliveryCount != 2 {
			t.Errorf("%s came again, for the %dth time", d.Event.Type, *d.BrokerProperties.DeliveryCount)
		}
		if _, err := other.AcknowledgeEvents(t.Context(), []string{*d.BrokerProperties.LockToken}, nil); err != nil {
			t.Error(err)
		}
	}
	if dead := y.dead(t, "worker"); len(dead) != 1 || dead[0].EventType != "rejected" {
		t.Errorf("dead letters: %+v", dead)
	}
	_, err := receiver.AcknowledgeEvents(t.Context(), nil, nil)
	var reported *azcore.ResponseError
	if !errors.As(err, &reported) || reported.StatusCode != http.StatusBadRequest {
		t.Errorf("acknowledging nothing: %v", err)
	}
}

func goReceives(t *testing.T, receiver *aznamespaces.ReceiverClient, most int32) []aznamespaces.ReceiveDetails {
	t.Helper()
	got, err := receiver.ReceiveEvents(t.Context(), &aznamespaces.ReceiveEventsOptions{MaxEvents: &most, MaxWaitTime: to.Ptr[int32](10)})
	testkit.Must(t, err)
	if len(got.Details) == 0 {
		t.Fatal("nothing came within ten seconds")
	}
	return got.Details
}

// goSettles has each event end as its type says.
func goSettles(t *testing.T, receiver *aznamespaces.ReceiverClient, tokens map[string]string) {
	t.Helper()
	with := func(kind string) []string { return []string{tokens[kind], "no token of ours"} }
	renewed, err1 := receiver.RenewEventLocks(t.Context(), with("kept"), nil)
	acknowledged, err2 := receiver.AcknowledgeEvents(t.Context(), with("acknowledged"), nil)
	released, err3 := receiver.ReleaseEvents(t.Context(), with("released"), &aznamespaces.ReleaseEventsOptions{ReleaseDelayInSeconds: to.Ptr(aznamespaces.ReleaseDelayNoDelay)})
	rejected, err4 := receiver.RejectEvents(t.Context(), with("rejected"), nil)
	testkit.Must(t, errors.Join(err1, err2, err3, err4))
	for kind, outcome := range map[string]struct {
		good []string
		bad  []aznamespaces.FailedLockToken
	}{
		"kept":         {renewed.SucceededLockTokens, renewed.FailedLockTokens},
		"acknowledged": {acknowledged.SucceededLockTokens, acknowledged.FailedLockTokens},
		"released":     {released.SucceededLockTokens, released.FailedLockTokens},
		"rejected":     {rejected.SucceededLockTokens, rejected.FailedLockTokens},
	} {
		if len(outcome.good) != 1 || outcome.good[0] != tokens[kind] || len(outcome.bad) != 1 || *outcome.bad[0].LockToken != "no token of ours" || outcome.bad[0].Error == nil {
			t.Errorf("%s: %+v", kind, outcome)
		}
	}
}
