"""The official management library for Python, with topics, subscriptions, domains and namespaces of a yard."""

import os
import time

from azure.core.credentials import AccessToken, AzureKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.eventgrid import EventGridEvent, EventGridPublisherClient
from azure.mgmt.eventgrid import EventGridManagementClient
from azure.mgmt.eventgrid.models import (
    Domain,
    EventSubscription,
    EventSubscriptionFilter,
    EventSubscriptionUpdateParameters,
    RetryPolicy,
    StorageBlobDeadLetterDestination,
    StringInAdvancedFilter,
    Topic,
    TopicRegenerateKeyRequest,
    TopicUpdateParameters,
    WebHookEventSubscriptionDestination,
)

from yard import holds, proved, run, same

JWT = "eyJhbGciOiJub25lIn0.eyJhdWQiOiJodHRwczovL21hbmFnZW1lbnQuYXp1cmUuY29tIn0."
SUBSCRIPTION = "5b4b650e-28b9-4790-b3ab-ddbd88d727c4"
GROUP = "Shop"
ACCOUNT = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/storage/providers/Microsoft.Storage/storageAccounts/eventyard"


class Token:
    def get_token(self, *scopes, **options):
        return AccessToken(JWT, int(time.time()) + 3600)


def topics(client):
    wanted = Topic(location="northeurope", tags={"team": "shop"}, input_schema="EventGridSchema")
    made = client.topics.begin_create_or_update(GROUP, "orders", wanted).result()
    for topic in (made, client.topics.get(GROUP, "orders")):
        same((topic.name, topic.location, topic.tags), ("orders", "northeurope", {"team": "shop"}), "the topic")
        same((topic.provisioning_state, topic.input_schema), ("Succeeded", "EventGridSchema"), "the topic")
        holds(topic.id, f"/resourceGroups/{GROUP}/")
    client.topics.begin_update(GROUP, "orders", TopicUpdateParameters(tags={"team": "post"})).result()
    same(client.topics.get(GROUP, "orders").tags, {"team": "post"}, "tags that were changed")
    for found in (client.topics.list_by_resource_group(GROUP), client.topics.list_by_subscription()):
        holds([topic.name for topic in found], "'orders'")
    before = client.topics.list_shared_access_keys(GROUP, "orders")
    after = client.topics.begin_regenerate_key(GROUP, "orders", TopicRegenerateKeyRequest(key_name="key1")).result()
    same((before.key1 != after.key1, before.key2), (True, after.key2), "keys")
    proved("topics are made, changed, listed and their keys renewed; location, tags and group come back as given")


def wanted():
    return EventSubscription(
        destination=WebHookEventSubscriptionDestination(endpoint_url=os.environ["YARD_HOOK"], max_events_per_batch=10),
        filter=EventSubscriptionFilter(
            included_event_types=["order.placed"], advanced_filters=[StringInAdvancedFilter(key="data.region", values=["north"])]
        ),
        labels=["a"],
        retry_policy=RetryPolicy(max_delivery_attempts=7, event_time_to_live_in_minutes=60),
        dead_letter_destination=StorageBlobDeadLetterDestination(resource_id=ACCOUNT, blob_container_name="dead"),
    )


def subscriptions(client):
    scope = client.topics.get(GROUP, "orders").id
    made = client.event_subscriptions.begin_create_or_update(scope, "billing", wanted()).result()
    for shown in (made, client.event_subscriptions.get(scope, "billing"), client.topic_event_subscriptions.get(GROUP, "orders", "billing")):
        same((shown.name, shown.provisioning_state, shown.labels), ("billing", "Succeeded", ["a"]), "the subscription")
        same(shown.filter.included_event_types, ["order.placed"], "event types")
        same(shown.filter.advanced_filters[0].values, ["north"], "filter")
        same((shown.retry_policy.max_delivery_attempts, shown.retry_policy.event_time_to_live_in_minutes), (7, 60), "retry policy")
        dead = shown.dead_letter_destination
        same((type(dead), dead.resource_id, dead.blob_container_name), (StorageBlobDeadLetterDestination, ACCOUNT, "dead"), "dead letters")
    same(client.event_subscriptions.get_full_url(scope, "billing").endpoint_url, os.environ["YARD_HOOK"], "full URL")
    proved("a subscription by scope and by topic, with dead letters in a blob account by its resource id, comes back as given")

    change = EventSubscriptionUpdateParameters(labels=["b"])
    same(client.event_subscriptions.begin_update(scope, "billing", change).result().labels, ["b"], "labels that were changed")
    again = client.topic_event_subscriptions.begin_update(GROUP, "orders", "billing", EventSubscriptionUpdateParameters(labels=["c"])).result()
    same((again.labels, again.retry_policy.max_delivery_attempts), (["c"], 7), "what was changed, and what was not")
    proved("changes of a subscription are answered as the library demands, and leave the rest alone")

    for what, found in {
        "of the topic": client.topic_event_subscriptions.list(GROUP, "orders"),
        "of the resource": client.event_subscriptions.list_by_resource(GROUP, "Microsoft.EventGrid", "topics", "orders"),
        "of the location": client.event_subscriptions.list_regional_by_resource_group(GROUP, "northeurope"),
        "of location and type": client.event_subscriptions.list_regional_by_subscription_for_topic_type("northeurope", "Microsoft.EventGrid.Topics"),
    }.items():
        same([one.name for one in found], ["billing"], "subscriptions " + what)
    same([one.name for one in client.event_subscriptions.list_regional_by_subscription("westus")], [], "subscriptions elsewhere")
    holds([kind.name for kind in client.topic_types.list()], "Microsoft.EventGrid.Topics")
    proved("subscriptions are listed by topic, resource, location and type of topic")

    refused = wanted()
    refused.retry_policy.max_delivery_attempts = 99
    try:
        client.event_subscriptions.begin_create_or_update(scope, "wrong", refused).result()
    except HttpResponseError as error:
        same((error.status_code, bool(error.error and error.error.code)), (400, True), "refusal")
    else:
        raise AssertionError("99 attempts were taken")
    client.event_subscriptions.begin_delete(scope, "billing").result()
    client.topics.begin_delete(GROUP, "orders").result()
    try:
        client.topics.get(GROUP, "orders")
    except ResourceNotFoundError:
        proved("a bad request is refused with a code; what is deleted is not found")
    else:
        raise AssertionError("the topic is still there")


def domains(client):
    made = client.domains.begin_create_or_update(GROUP, "shops", Domain(location="northeurope", tags={"team": "shop"})).result()
    for domain in (made, client.domains.get(GROUP, "shops")):
        same((domain.name, domain.location, domain.tags, domain.provisioning_state), ("shops", "northeurope", {"team": "shop"}, "Succeeded"), "the domain")
    client.domain_topics.begin_create_or_update(GROUP, "shops", "eu-west").result()
    same([topic.name for topic in client.domain_topics.list_by_domain(GROUP, "shops")], ["eu-west"], "topics of the domain")
    hook = EventSubscription(destination=WebHookEventSubscriptionDestination(endpoint_url=os.environ["YARD_HOOK"]))
    client.domain_event_subscriptions.begin_create_or_update(GROUP, "shops", "all", hook).result()
    client.domain_topic_event_subscriptions.begin_create_or_update(GROUP, "shops", "eu-west", "one", hook).result()
    change = EventSubscriptionUpdateParameters(labels=["b"])
    changed = client.domain_topic_event_subscriptions.begin_update(GROUP, "shops", "eu-west", "one", change).result()
    same(changed.labels, ["b"], "labels that were changed")
    same([one.name for one in client.domain_event_subscriptions.list(GROUP, "shops")], ["all"], "subscriptions of the domain")
    same([one.name for one in client.domain_topic_event_subscriptions.list(GROUP, "shops", "eu-west")], ["one"], "subscriptions of its topic")
    key = client.domains.list_shared_access_keys(GROUP, "shops").key1
    event = EventGridEvent(topic="eu-west", subject="/shops/1", event_type="order.placed", data={"total": 42}, data_version="1")
    with EventGridPublisherClient(made.endpoint, AzureKeyCredential(key), connection_verify=os.environ["YARD_CA"]) as publisher:
        publisher.send([event])
    client.domains.begin_delete(GROUP, "shops").result()
    proved("a domain, its topics and the subscriptions of both are managed, and events published to it by topic")


def namespaces(client):
    namespace = client.namespaces.get(GROUP, "shop")
    same((namespace.name, namespace.provisioning_state), ("shop", "Succeeded"), "the namespace")
    proved("a namespace is shown")


def main():
    at, authority = os.environ["YARD_SERVER"], os.environ["YARD_CA"]
    with EventGridManagementClient(
        Token(), SUBSCRIPTION, base_url=at, credential_scopes=[at + "/.default"], connection_verify=authority, polling_interval=1
    ) as client:
        topics(client)
        subscriptions(client)
        domains(client)
        namespaces(client)


run(main)
