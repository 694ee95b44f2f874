// The official management library for JavaScript, with topics, subscriptions and domains of a yard. Of namespaces it
// knows nothing; Python's does.
"use strict";
const assert = require("node:assert/strict");
const { EventGridManagementClient } = require("@azure/arm-eventgrid");
const { AzureKeyCredential, EventGridPublisherClient } = require("@azure/eventgrid");
const { proved, run } = require("./yard.js");

const SUBSCRIPTION = "5b4b650e-28b9-4790-b3ab-ddbd88d727c4";
const GROUP = "Shop";
const ACCOUNT = `/subscriptions/${SUBSCRIPTION}/resourceGroups/storage/providers/Microsoft.Storage/storageAccounts/eventyard`;
const JWT = "eyJhbGciOiJub25lIn0.eyJhdWQiOiJodHRwczovL21hbmFnZW1lbnQuYXp1cmUuY29tIn0.";

const credential = { getToken: async () => ({ token: JWT, expiresOnTimestamp: Date.now() + 3_600_000 }) };
const client = new EventGridManagementClient(credential, SUBSCRIPTION, { endpoint: process.env.YARD_SERVER, $host: process.env.YARD_SERVER });
const quickly = { updateIntervalInMs: 100 };

async function names(list) {
  const found = [];
  for await (const one of list) found.push(one.name);
  return found;
}

async function topics() {
  const wanted = { location: "northeurope", tags: { team: "shop" }, inputSchema: "CloudEventSchemaV1_0" };
  const made = await client.topics.beginCreateOrUpdateAndWait(GROUP, "orders", wanted, quickly);
  for (const topic of [made, await client.topics.get(GROUP, "orders")]) {
    const { location, tags, inputSchema } = topic;
    assert.deepEqual({ location, tags, inputSchema }, wanted);
    assert.ok(topic.id.includes(`/resourceGroups/${GROUP}/`), topic.id);
  }
  await client.topics.beginUpdateAndWait(GROUP, "orders", { tags: { team: "post" } }, quickly);
  assert.deepEqual((await client.topics.get(GROUP, "orders")).tags, { team: "post" });
  assert.ok((await names(client.topics.listByResourceGroup(GROUP))).includes("orders"));
  const before = await client.topics.listSharedAccessKeys(GROUP, "orders");
  const after = await client.topics.beginRegenerateKeyAndWait(GROUP, "orders", { keyName: "key2" }, quickly);
  assert.equal(after.key1, before.key1);
  assert.notEqual(after.key2, before.key2);
  proved("topics are made, changed, listed and their keys renewed; location, tags and group come back as given");
}

async function subscriptions() {
  const id = (await client.topics.get(GROUP, "orders")).id.slice(1); // the library puts the slash before it
  const deadLetterDestination = { endpointType: "StorageBlob", resourceId: ACCOUNT, blobContainerName: "dead" };
  const made = await client.eventSubscriptions.beginCreateOrUpdateAndWait(id, "billing", {
    destination: { endpointType: "WebHook", endpointUrl: process.env.YARD_HOOK },
    eventDeliverySchema: "CloudEventSchemaV1_0",
    filter: { includedEventTypes: ["order.placed"] },
    labels: ["a"],
    retryPolicy: { maxDeliveryAttempts: 7, eventTimeToLiveInMinutes: 60 },
    deadLetterDestination,
  }, quickly);
  for (const shown of [made, await client.topicEventSubscriptions.get(GROUP, "orders", "billing")]) {
    assert.deepEqual(shown.deadLetterDestination, deadLetterDestination);
    assert.deepEqual(shown.retryPolicy, { maxDeliveryAttempts: 7, eventTimeToLiveInMinutes: 60 });
    assert.deepEqual(shown.filter.includedEventTypes, ["order.placed"]);
  }
  const changed = await client.eventSubscriptions.beginUpdateAndWait(id, "billing", { labels: ["b"] }, quickly);
  assert.deepEqual([changed.labels, changed.retryPolicy.maxDeliveryAttempts], [["b"], 7]);
  proved("a subscription with dead letters by an account's resource id comes back as given, and its changes are answered as the library demands");

  assert.deepEqual(await names(client.topicEventSubscriptions.list(GROUP, "orders")), ["billing"]);
  assert.deepEqual(await names(client.eventSubscriptions.listRegionalByResourceGroup(GROUP, "northeurope")), ["billing"]);
  assert.deepEqual(await names(client.eventSubscriptions.listRegionalBySubscription("westus")), []);
  assert.ok((await names(client.topicTypes.list())).includes("Microsoft.EventGrid.Topics"));
  await client.eventSubscriptions.beginDeleteAndWait(id, "billing", quickly);
  await client.topics.beginDeleteAndWait(GROUP, "orders", quickly);
  await assert.rejects(client.topics.get(GROUP, "orders"), { statusCode: 404 });
  proved("subscriptions are listed by topic and location; what is deleted is not found");
}

async function domains() {
  const wanted = { location: "northeurope", tags: { team: "shop" } };
  const made = await client.domains.beginCreateOrUpdateAndWait(GROUP, "shops", wanted, quickly);
  for (const { name, location, tags, provisioningState } of [made, await client.domains.get(GROUP, "shops")]) {
    assert.deepEqual({ name, location, tags, provisioningState }, { name: "shops", ...wanted, provisioningState: "Succeeded" });
  }
  await client.domainTopics.beginCreateOrUpdateAndWait(GROUP, "shops", "eu-west", quickly);
  assert.deepEqual(await names(client.domainTopics.listByDomain(GROUP, "shops")), ["eu-west"]);

  const hook = { destination: { endpointType: "WebHook", endpointUrl: process.env.YARD_HOOK } };
  const { domainEventSubscriptions: ofDomain, domainTopicEventSubscriptions: ofTopic } = client;
  await ofDomain.beginCreateOrUpdateAndWait(GROUP, "shops", "all", hook, quickly);
  await ofTopic.beginCreateOrUpdateAndWait(GROUP, "shops", "eu-west", "one", hook, quickly);
  const changed = await ofTopic.beginUpdateAndWait(GROUP, "shops", "eu-west", "one", { labels: ["b"] }, quickly);
  assert.deepEqual(changed.labels, ["b"]);
  assert.deepEqual(await names(ofDomain.list(GROUP, "shops")), ["all"]);
  assert.deepEqual(await names(ofTopic.list(GROUP, "shops", "eu-west")), ["one"]);

  const { key1 } = await client.domains.listSharedAccessKeys(GROUP, "shops");
  const publisher = new EventGridPublisherClient(made.endpoint, "EventGrid", new AzureKeyCredential(key1), { allowInsecureConnection: true });
  await publisher.send([{ topic: "eu-west", subject: "/shops/1", eventType: "order.placed", dataVersion: "1", data: { total: 42 } }]);
  await client.domains.beginDeleteAndWait(GROUP, "shops", quickly);
  await assert.rejects(client.domains.get(GROUP, "shops"), { statusCode: 404 });
  proved("a domain, its topics and the subscriptions of both are managed, and events published to it by topic");
}

run([topics, subscriptions, domains]);
