package eventgrid

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/messaging"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/eventgrid/azeventgrid"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/eventgrid/armeventgrid/v2"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

// domain makes one whose keys are those of these tests.
func (y *realYard) domain(name string, kind schema.Kind) topics.Topic {
	y.t.Helper()
	t, err := y.topicRegistry.CreateTopic(y.t.Context(), topics.TopicConfig{Topic: topics.Topic{Name: name, Schema: kind, Key1: key1, Key2: key2, Domain: &topics.Domain{}}})
	testkit.Must(y.t, err)
	return t
}

// G12: the official client publishes to the topics of a domain, and hears Event Grid's own words
// where an event names none.
func TestOfficialPublisherToADomain(t *testing.T) {
	y := newRealYard(t)
	shop, clouds := y.domain("shop", schema.EventGrid), y.domain("clouds", schema.CloudEvents)
	event := func(topic *string) azeventgrid.Event {
		return azeventgrid.Event{
			Topic: topic, ID: to.Ptr("1"), Subject: to.Ptr("s"), EventType: to.Ptr("t"), EventTime: to.Ptr(time.Now()), DataVersion: to.Ptr("1.0"), Data: 1,
		}
	}
	cloud := func(source string) messaging.CloudEvent {
		e, err := messaging.NewCloudEvent(source, "t", 1, nil)
		testkit.Must(t, err)
		return e
	}
	full := shop.Resource + "/topics/us-east"
	for name, client := range y.publishers("shop") {
		_, err := client.PublishEvents(t.Context(), []azeventgrid.Event{event(to.Ptr("eu-west")), event(&full)}, nil)
		testkit.Must(t, err, "%s", name)
		_, err = y.publishers("clouds")[name].PublishCloudEvents(t.Context(), []messaging.CloudEvent{cloud("eu-west"), cloud("us-east")}, nil)
		testkit.Must(t, err, "%s", name)
	}
	testkit.Equal(t, len(y.log(shop))+len(y.log(clouds)), 12, "stored")

	_, silent := y.publishers("shop")["key"].PublishEvents(t.Context(), []azeventgrid.Event{event(to.Ptr("eu-west")), event(nil)}, nil)
	_, absolute := y.publishers("clouds")["key"].PublishCloudEvents(t.Context(), []messaging.CloudEvent{cloud("https://example.com/")}, nil)
	for _, err := range []error{silent, absolute} {
		var said *azcore.ResponseError
		if !errors.As(err, &said) || said.StatusCode != 400 || said.ErrorCode != "BadRequest" || !strings.Contains(err.Error(), "needs to either be a full resource id") {
			t.Errorf("refused with %v", err)
		}
	}
	testkit.Equal(t, len(y.log(shop))+len(y.log(clouds)), 12, "stored")
}

// G12: the official management client makes, changes, lists and deletes domains, their topics, and
// subscriptions of both, again and again, and reads what it wrote.
func TestOfficialManagerOfADomain(t *testing.T) {
	y := newRealYard(t)
	y.topic("plain", schema.EventGrid)
	const id = shop + "/providers/Microsoft.EventGrid/domains/market"
	domains, ofDomain, ofTopic := y.manages().NewDomainsClient(), y.manages().NewDomainEventSubscriptionsClient(), y.manages().NewDomainTopicEventSubscriptionsClient()
	for range 2 {
		made, err := domains.BeginCreateOrUpdate(t.Context(), "shop", "market", armeventgrid.Domain{
			Location: to.Ptr("westeurope"), Properties: &armeventgrid.DomainProperties{InputSchema: to.Ptr(armeventgrid.InputSchemaCloudEventSchemaV10)},
		}, nil)
		testkit.Equal(t, *ended(t, made, err).ID, id, "the domain")
	}
	patched, err := domains.BeginUpdate(t.Context(), "shop", "market", armeventgrid.DomainUpdateParameters{
		Tags: map[string]*string{"team": to.Ptr("a")}, Properties: &armeventgrid.DomainUpdateParameterProperties{AutoDeleteTopicWithLastSubscription: to.Ptr(false)},
	}, nil)
	ended(t, patched, err)
	got, err := domains.Get(t.Context(), "shop", "market", nil)
	testkit.Must(t, err)
	testkit.Equal(t, *got.Type+" "+*got.Location+" "+*got.Tags["team"], "Microsoft.EventGrid/domains westeurope a", "the domain")
	testkit.That(t, *got.Properties.AutoCreateTopicWithFirstSubscription && !*got.Properties.AutoDeleteTopicWithLastSubscription, "its topics: %+v", got.Properties)
	keys, err := domains.ListSharedAccessKeys(t.Context(), "shop", "market", nil)
	testkit.Must(t, err)
	fresh, err := domains.RegenerateKey(t.Context(), "shop", "market", armeventgrid.DomainRegenerateKeyRequest{KeyName: to.Ptr("key1")}, nil)
	testkit.Must(t, err)
	testkit.That(t, *keys.Key1 != *fresh.Key1 && *keys.Key2 == *fresh.Key2, "the keys are %v, then %v", keys, fresh)

	its := y.manages().NewDomainTopicsClient()
	for range 2 {
		made, err := its.BeginCreateOrUpdate(t.Context(), "shop", "market", "eu-west", nil)
		testkit.Equal(t, *ended(t, made, err).ID, id+"/topics/eu-west", "the domain topic")
	}
	sub := armeventgrid.EventSubscription{Properties: &armeventgrid.EventSubscriptionProperties{Destination: &armeventgrid.EventHubEventSubscriptionDestination{
		EndpointType: to.Ptr(armeventgrid.EndpointTypeEventHub), Properties: &armeventgrid.EventHubEventSubscriptionDestinationProperties{
			ResourceID: to.Ptr("/subscriptions/x/resourceGroups/y/providers/Microsoft.EventHub/namespaces/ns/eventhubs/a/b"),
		},
	}}}
	label := armeventgrid.EventSubscriptionUpdateParameters{Labels: []*string{to.Ptr("c")}}
	for range 2 {
		domain, err := ofDomain.BeginCreateOrUpdate(t.Context(), "shop", "market", "billing", sub, nil)
		testkit.Equal(t, *ended(t, domain, err).ID, id+"/eventSubscriptions/billing", "of the domain")
		changed, err := ofDomain.BeginUpdate(t.Context(), "shop", "market", "billing", label, nil)
		ended(t, changed, err)
		topic, err := ofTopic.BeginCreateOrUpdate(t.Context(), "shop", "market", "us-east", "billing", sub, nil)
		testkit.Equal(t, *ended(t, topic, err).ID, id+"/topics/us-east/eventSubscriptions/billing", "of a domain topic")
		updated, err := ofTopic.BeginUpdate(t.Context(), "shop", "market", "us-east", "billing", label, nil)
		ended(t, updated, err)
	}
	// The older form: any resource is a scope.
	scoped := y.manages().NewEventSubscriptionsClient()
	made, err := scoped.BeginCreateOrUpdate(t.Context(), id+"/topics/us-east", "shipping", sub, nil)
	testkit.Equal(t, *ended(t, made, err).Properties.Topic, id+"/topics/us-east", "what it is of")
	read, err := ofTopic.Get(t.Context(), "shop", "market", "us-east", "billing", nil)
	testkit.Must(t, err)
	testkit.Equal(t, *read.Properties.Labels[0], "c", "the label")

	y.wantListed(id)
	gone, err := its.BeginDelete(t.Context(), "shop", "market", "us-east", nil)
	ended(t, gone, err)
	_, err = its.Get(t.Context(), "shop", "market", "us-east", nil)
	testkit.That(t, err != nil, "the domain topic is still there")
	deleted, err := domains.BeginDelete(t.Context(), "shop", "market", nil)
	ended(t, deleted, err)
	_, err = y.topicRegistry.Topic("market")
	testkit.ErrorIs(t, err, topics.ErrTopicNotFound)
}

// wantListed looks at every list that the domain is in, or is not.
func (y *realYard) wantListed(id string) {
	y.t.Helper()
	const account = "/subscriptions/5b4b650e-28b9-4790-b3ab-ddbd88d727c4/providers/Microsoft.EventGrid"
	for path, want := range map[string]string{
		account + "/domains": "market", shop + "/providers/Microsoft.EventGrid/domains": "market", account + "/topics": "plain yard-events",
		id + "/topics": "eu-west us-east", id + "/eventSubscriptions": "billing", id + "/topics/us-east/eventSubscriptions": "billing shipping",
		id + "/topics/us-east/providers/Microsoft.EventGrid/eventSubscriptions": "billing shipping",
		id + "/providers/Microsoft.EventGrid/eventSubscriptions":                "billing", id + "/topics/eu-west/eventSubscriptions": "",
		account + "/eventSubscriptions": "billing billing shipping", account + "/topicTypes/Microsoft.EventGrid.Domains/eventSubscriptions": "billing billing shipping",
		account + "/topicTypes/Microsoft.EventGrid.Topics/eventSubscriptions": "",
	} {
		var got struct{ Value []struct{ Name string } }
		y.ask("GET", path, "", asRoot).want(200).json(&got)
		var names []string
		for _, v := range got.Value {
			names = append(names, v.Name)
		}
		testkit.Equal(y.t, strings.Join(names, " "), want, "%s", path)
	}
}

// A topic is not found among domains, nor a domain among topics, and neither is made of the other.
func TestTopicsAndDomainsAreDistinguished(t *testing.T) {
	y := newRealYard(t)
	y.topic("plain", schema.EventGrid)
	y.domain("market", schema.EventGrid)
	const under = shop + "/providers/Microsoft.EventGrid"
	for _, path := range []string{"/domains/plain", "/topics/market", "/topics/market/eventSubscriptions", "/domains/plain/topics", "/domains/plain/topics/abc", "/domains/market/topics/none"} {
		y.ask("GET", under+path, "", asRoot).refused(404, "ResourceNotFound")
	}
	for _, path := range []string{"/domains/plain", "/topics/market"} {
		y.ask("PUT", under+path, "{}", asRoot).refused(400, codeInvalid)
		y.ask("DELETE", under+path, "", asRoot).want(204)
	}
	y.ask("PUT", under+"/domains/plain/topics/abc", "{}", asRoot).refused(404, "ResourceNotFound")
	y.ask("PUT", under+"/domains/market/topics/a+b", "{}", asRoot).refused(400, codeInvalid)
	y.ask("GET", "/topics/market", "", asRoot).refused(404, "ResourceNotFound")
	for _, path := range []string{"/domains/market", "/topics/plain"} {
		y.ask("GET", under+path, "", asRoot).want(200)
	}
}

// toHub is the body of a subscription that needs no handshake.
const toHub = `{"properties":{"destination":{"endpointType":"EventHub","properties":{"resourceId":"/subscriptions/x/resourceGroups/y/providers/Microsoft.EventHub/namespaces/ns/eventhubs/a/b"}}}}`

// A domain topic is spelt as whoever made it spelt it, by itself or by a subscription, in every
// answer: infrastructure tools take another spelling for a change.
func TestTheSpellingOfADomainTopic(t *testing.T) {
	y := newRealYard(t)
	y.domain("market", schema.EventGrid)
	const under = shop + "/providers/Microsoft.EventGrid/domains/market/topics"
	y.ask("PUT", under+"/made", "{}", asRoot).want(201)
	y.ask("PUT", under+"/EU-West/eventSubscriptions/billing", toHub, asRoot).want(201)
	type resource struct{ ID, Name string }
	want := []resource{{under + "/EU-West", "EU-West"}, {under + "/made", "made"}}
	for _, method := range []string{"GET", "PUT", "GET"} {
		for i, path := range []string{"/eu-west", "/MADE"} {
			var got resource
			y.ask(method, under+path, "", asRoot).json(&got)
			testkit.Equal(t, got, want[i], "%s %s", method, path)
		}
		var all struct{ Value []resource }
		y.ask("GET", under, "", asRoot).want(200).json(&all)
		testkit.Slices(t, all.Value, want)
	}
	var sub resource
	y.ask("PUT", under+"/MADE/eventSubscriptions/shipping", toHub, asRoot).want(201).json(&sub)
	testkit.Equal(t, sub.ID, under+"/made/eventSubscriptions/shipping", "a subscription's id")
}

// G12: what is listed as a topic of the domain takes subscriptions, also after subscriptions make
// none any more.
func TestSubscribingToAListedTopic(t *testing.T) {
	y := newRealYard(t)
	y.domain("market", schema.EventGrid)
	const id = shop + "/providers/Microsoft.EventGrid/domains/market"
	y.ask("PUT", id+"/topics/eu-west/eventSubscriptions/billing", toHub, asRoot).want(201)
	y.ask("PATCH", id, `{"properties":{"autoCreateTopicWithFirstSubscription":false}}`, asRoot).want(200)
	y.ask("GET", id+"/topics/eu-west", "", asRoot).want(200)
	y.ask("PUT", id+"/topics/eu-west/eventSubscriptions/shipping", toHub, asRoot).want(201)
	y.ask("PUT", id+"/topics/us-east/eventSubscriptions/billing", toHub, asRoot).refused(404, "ResourceNotFound")
}
