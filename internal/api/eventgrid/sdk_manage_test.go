package eventgrid

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	azcloud "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/eventgrid/armeventgrid/v2"

	"github.com/eventyard/eventyard/internal/testkit"
)

// manages makes the official management clients.
func (y *yard) manages() *armeventgrid.ClientFactory {
	y.t.Helper()
	options := &arm.ClientOptions{ClientOptions: y.options(), DisableRPRegistration: true}
	options.Cloud = azcloud.Configuration{Services: map[azcloud.ServiceName]azcloud.ServiceConfiguration{
		azcloud.ResourceManager: {Endpoint: y.server.URL, Audience: "https://management.azure.com"},
	}}
	factory, err := armeventgrid.NewClientFactory("5b4b650e-28b9-4790-b3ab-ddbd88d727c4", anyToken{}, options)
	testkit.Must(y.t, err)
	return factory
}

const shop = "/subscriptions/5b4b650e-28b9-4790-b3ab-ddbd88d727c4/resourceGroups/shop"

// ended is the answer of a call that the official client may have to wait for.
func ended[T any](t *testing.T, poller *runtime.Poller[T], err error) T {
	t.Helper()
	testkit.Must(t, err)
	result, err := poller.PollUntilDone(t.Context(), nil)
	testkit.Must(t, err)
	return result
}

// G12: the official management client makes, changes and reads topics and subscriptions, again and
// again, and reads what it wrote: nothing that an infrastructure tool would take for a difference.
func TestOfficialManager(t *testing.T) {
	y := newRealYard(t)
	topics, subs := y.manages().NewTopicsClient(), y.manages().NewEventSubscriptionsClient()
	for range 2 { // made, and then the same again
		poller, err := topics.BeginCreateOrUpdate(t.Context(), "shop", "orders", armeventgrid.Topic{
			Location: to.Ptr("West Europe"), Tags: map[string]*string{"team": to.Ptr("a")},
		}, nil)
		ended(t, poller, err)
	}
	patched, err := topics.BeginUpdate(t.Context(), "shop", "orders", armeventgrid.TopicUpdateParameters{Tags: map[string]*string{"team": to.Ptr("b")}}, nil)
	ended(t, patched, err)
	got, err := topics.Get(t.Context(), "shop", "orders", nil)
	testkit.Must(t, err)
	testkit.Equal(t, *got.ID, shop+"/providers/Microsoft.EventGrid/topics/orders", "the topic's id")
	testkit.Equal(t, *got.Location+" "+*got.Tags["team"], "West Europe b", "location and tags")
	all := topics.NewListBySubscriptionPager(nil)
	page, err := all.NextPage(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, *page.Value[0].ID, *got.ID, "the topic's id in a list of all groups")

	const hub = "/subscriptions/other/resourceGroups/data/providers/Microsoft.EventHub/namespaces/ns/eventhubs/a/b"
	destination := &armeventgrid.EventHubEventSubscriptionDestination{
		EndpointType: to.Ptr(armeventgrid.EndpointTypeEventHub), Properties: &armeventgrid.EventHubEventSubscriptionDestinationProperties{ResourceID: to.Ptr(hub)},
	}
	const account = "/subscriptions/other/resourceGroups/data/providers/Microsoft.Storage/storageAccounts/eventyard"
	dead := &armeventgrid.StorageBlobDeadLetterDestination{
		EndpointType: to.Ptr(armeventgrid.DeadLetterEndPointTypeStorageBlob),
		Properties:   &armeventgrid.StorageBlobDeadLetterDestinationProperties{ResourceID: to.Ptr(account), BlobContainerName: to.Ptr("dead")},
	}
	for range 2 {
		poller, err := subs.BeginCreateOrUpdate(t.Context(), *got.ID, "billing", armeventgrid.EventSubscription{
			Properties: &armeventgrid.EventSubscriptionProperties{Destination: destination, DeadLetterDestination: dead},
		}, nil)
		ended(t, poller, err)
	}
	changed, err := subs.BeginUpdate(t.Context(), *got.ID, "billing", armeventgrid.EventSubscriptionUpdateParameters{Labels: []*string{to.Ptr("c")}}, nil)
	ended(t, changed, err)
	byTopic, err := y.manages().NewTopicEventSubscriptionsClient().BeginUpdate(t.Context(), "shop", "orders", "billing",
		armeventgrid.EventSubscriptionUpdateParameters{Labels: []*string{to.Ptr("d")}}, nil)
	ended(t, byTopic, err)
	read, err := subs.Get(t.Context(), *got.ID, "billing", nil)
	testkit.Must(t, err)
	testkit.Equal(t, *read.Properties.Topic, *got.ID, "what the subscription is of")
	testkit.Equal(t, *read.Properties.Labels[0], "d", "the label")
	testkit.Equal(t, *read.Properties.Destination.(*armeventgrid.EventHubEventSubscriptionDestination).Properties.ResourceID, hub, "the hub")
	shown := read.Properties.DeadLetterDestination.(*armeventgrid.StorageBlobDeadLetterDestination).Properties
	testkit.Equal(t, *shown.ResourceID+" "+*shown.BlobContainerName, account+" dead", "where dead letters go")

	for location, want := range map[string]int{"westeurope": 1, "eastus": 0} {
		page, err := subs.NewListRegionalBySubscriptionPager(location, nil).NextPage(t.Context())
		testkit.Must(t, err)
		testkit.Equal(t, len(page.Value), want, "subscriptions at %s", location)
	}
	for kind, want := range map[string]int{"Microsoft.EventGrid.Topics": 1, "Microsoft.EventHub.Namespaces": 0, "Microsoft.Storage.StorageAccounts": 0} {
		page, err := subs.NewListRegionalByResourceGroupForTopicTypePager("shop", "westeurope", kind, nil).NextPage(t.Context())
		testkit.Must(t, err)
		testkit.Equal(t, len(page.Value), want, "subscriptions of %s", kind)
	}
}

// G12: what the official client asks of a yard as of a service: its kinds of topics, and a
// namespace of any name, with topics and subscriptions that are shown as its own.
func TestOfficialManagerOfANamespace(t *testing.T) {
	y := newRealYard(t)
	types := y.manages().NewTopicTypesClient()
	page, err := types.NewListPager(nil).NextPage(t.Context())
	testkit.Must(t, err)
	for _, kind := range page.Value {
		got, err := types.Get(t.Context(), *kind.Name, nil)
		testkit.Must(t, err)
		testkit.Equal(t, *got.Properties.ProvisioningState, armeventgrid.TopicTypeProvisioningStateSucceeded, "state of %s", *kind.Name)
		none, err := types.NewListEventTypesPager(*kind.Name, nil).NextPage(t.Context())
		testkit.Must(t, err)
		testkit.Equal(t, len(none.Value), 0, "event types of %s", *kind.Name)
	}
	y.ask("GET", "/providers/Microsoft.EventGrid/topicTypes/none", "", asRoot).refused(404, codeNotFound)

	const namespace = shop + "/providers/Microsoft.EventGrid/namespaces/market"
	got, err := y.manages().NewNamespacesClient().Get(t.Context(), "shop", "market", nil)
	testkit.Must(t, err)
	testkit.Equal(t, *got.ID+" "+string(*got.Properties.ProvisioningState), namespace+" Succeeded", "the namespace")
	topics := y.manages().NewNamespaceTopicsClient()
	for range 2 {
		made, err := topics.BeginCreateOrUpdate(t.Context(), "shop", "market", "readings", armeventgrid.NamespaceTopic{}, nil)
		testkit.Equal(t, *ended(t, made, err).ID, namespace+"/topics/readings", "the topic")
	}
	subs := y.manages().NewNamespaceTopicEventSubscriptionsClient()
	made, err := subs.BeginCreateOrUpdate(t.Context(), "shop", "market", "readings", "worker", armeventgrid.Subscription{
		Properties: &armeventgrid.SubscriptionProperties{DeliveryConfiguration: &armeventgrid.DeliveryConfiguration{DeliveryMode: to.Ptr(armeventgrid.DeliveryModeQueue)}},
	}, nil)
	worker := ended(t, made, err)
	testkit.Equal(t, *worker.ID+" "+*worker.Type, namespace+"/topics/readings/eventSubscriptions/worker Microsoft.EventGrid/namespaces/topics/eventSubscriptions", "the subscription")
	changed, err := subs.BeginUpdate(t.Context(), "shop", "market", "readings", "worker", armeventgrid.SubscriptionUpdateParameters{
		Properties: &armeventgrid.SubscriptionUpdateParametersProperties{FiltersConfiguration: &armeventgrid.FiltersConfiguration{IncludedEventTypes: []*string{to.Ptr("a")}}},
	}, nil)
	ended(t, changed, err)
}
