// The official Event Grid libraries for JavaScript: they publish every schema and receive from
// namespaces; what a webhook gets is read with their own deserializer.  // G9, G11, G12
"use strict";
const assert = require("node:assert/strict");
const http = require("node:http");
const grid = require("@azure/eventgrid");
const namespaces = require("@azure/eventgrid-namespaces");
const { Mailbox, connection, proved, run } = require("./yard");

const topics = JSON.parse(process.env.YARD_TOPICS);
const reader = new grid.EventGridDeserializer();
const jwt = "eyJhbGciOiJub25lIn0.eyJhdWQiOiJodHRwczovL2V2ZW50Z3JpZC5henVyZS5uZXQifQ.";
const bearer = { getToken: async () => ({ token: jwt, expiresOnTimestamp: Date.now() + 3600e3 }) };
const inAnHour = () => new Date(Date.now() + 3600e3);

// webhook is one that is subscribed, by the JSON of Azure's resource manager; its deliveries go
// into a mailbox.
async function webhook(topic, name, properties = {}) {
  const box = new Mailbox();
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const part of request.setEncoding("utf8")) body += part;
    if (request.method === "OPTIONS") {
      response.setHeader("WebHook-Allowed-Origin", request.headers["webhook-request-origin"]);
      response.end();
      return;
    }
    if (request.headers["aeg-event-type"] === "SubscriptionValidation") {
      const [event] = await reader.deserializeEventGridEvents(body);
      assert.ok(grid.isSystemEvent("Microsoft.EventGrid.SubscriptionValidationEvent", event));
      response.end(JSON.stringify({ validationResponse: event.data.validationCode }));
      return;
    }
    response.end();
    box.put({ headers: request.headers, body });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const destination = { endpointType: "WebHook", properties: { endpointUrl: `http://127.0.0.1:${server.address().port}/`, ...properties.batch } };
  await subscribe(topic, name, { destination, ...properties.more });
  return box;
}

async function subscribe(topic, name, properties) {
  const key = Object.fromEntries(connection.split(";").map((part) => part.split(/=(.*)/s)));
  const login = Buffer.from(`${key.SharedAccessKeyName}:${key.SharedAccessKey}`).toString("base64");
  const answer = await fetch(`${process.env.YARD_SERVER}/topics/${topic.name}/eventSubscriptions/${name}`, {
    method: "PUT",
    headers: { Authorization: `Basic ${login}`, "Content-Type": "application/json" },
    body: JSON.stringify({ properties }),
  });
  const made = await answer.json();
  assert.equal(made.properties?.provisioningState, "Succeeded", JSON.stringify(made));
}

async function credentials(topic) {
  const key = new grid.AzureKeyCredential(topic.keys.key1);
  const signature = await grid.generateSharedAccessSignature(topic.secureEndpoint, key, inAnHour());
  return { key, signature: new grid.AzureSASCredential(signature), bearer };
}

async function gridEvents() {
  const topic = topics.grid;
  const box = await webhook(topic, "javascript");
  const sent = {};
  for (const [shown, credential] of Object.entries(await credentials(topic))) {
    const event = { id: shown, eventType: "order.placed", subject: "/shops/1", dataVersion: "1.0", eventTime: new Date(), data: { total: 42, text: "größe 日本" } };
    await new grid.EventGridPublisherClient(topic.secureEndpoint, "EventGrid", credential).send([event]);
    sent[shown] = event;
  }
  const plain = { id: "plain", eventType: "order.placed", subject: "/shops/1", dataVersion: "1.0", data: { none: null } };
  await new grid.EventGridPublisherClient(topic.endpoint, "EventGrid", new grid.AzureKeyCredential(topic.keys.key2), { allowInsecureConnection: true }).send([plain]);
  sent.plain = plain;
  for (let left = Object.keys(sent).length; left > 0; left--) {
    const { body } = await box.take("an event");
    const [back] = await reader.deserializeEventGridEvents(body);
    const event = sent[back.id];
    assert.deepEqual({ ...back, eventTime: event.eventTime, topic: "", metadataVersion: "" }, { ...event, eventTime: event.eventTime, topic: "", metadataVersion: "" });
    assert.equal(back.topic, topic.resource);
    if (event.eventTime) assert.equal(back.eventTime.getTime(), event.eventTime.getTime());
    delete sent[back.id];
  }
  assert.deepEqual(sent, {});
  proved("Event Grid's schema by key, signature and token, and without TLS; the deserializer reads it");
}

async function cloudEvents() {
  const topic = topics.clouds;
  const single = await webhook(topic, "single");
  const batched = await webhook(topic, "batched", { batch: { maxEventsPerBatch: 10 } });
  const sent = {};
  for (const [shown, credential] of Object.entries(await credentials(topic))) {
    const events = [
      { id: shown, type: "order.placed", source: "/source", subject: "a", time: new Date(), data: { by: shown }, datacontenttype: "application/json", extensionAttributes: { mine: "kept" } },
      { id: shown + "-bytes", type: "order.photo", source: "/source", data: new Uint8Array([255, 0, 1]), datacontenttype: "image/png" },
    ];
    await new grid.EventGridPublisherClient(topic.secureEndpoint, "CloudEvent", credential).send(events);
    for (const event of events) sent[event.id] = event;
  }
  for (const [name, box] of Object.entries({ single, batched })) {
    const left = { ...sent };
    while (Object.keys(left).length > 0) {
      const { headers, body } = await box.take("a CloudEvent");
      assert.match(headers["content-type"], name === "single" ? /^application\/cloudevents\+json/ : /^application\/cloudevents-batch\+json/);
      for (const back of await reader.deserializeCloudEvents(body)) {
        const event = left[back.id];
        assert.deepEqual([back.type, back.source, back.subject, back.datacontenttype], [event.type, event.source, event.subject, event.datacontenttype]);
        assert.deepEqual(event.data instanceof Uint8Array ? new Uint8Array(back.data) : back.data, event.data);
        assert.equal(back.extensionAttributes?.mine, event.extensionAttributes?.mine);
        delete left[back.id];
      }
    }
  }
  proved("CloudEvents with objects and bytes, one by one and in batches; the deserializer reads them");
}

async function customEvents() {
  const topic = topics.custom;
  const box = await webhook(topic, "javascript", { more: { eventDeliverySchema: "CustomInputSchema" } });
  await new grid.EventGridPublisherClient(topic.secureEndpoint, "Custom", new grid.AzureKeyCredential(topic.keys.key1)).send([{ meter: 7, kWh: 1.5 }]);
  assert.deepEqual(JSON.parse((await box.take("an event")).body), [{ meter: 7, kWh: 1.5 }]);
  proved("a schema of one's own arrives unchanged");
}

async function refusals() {
  const event = { eventType: "t", subject: "s", dataVersion: "1", data: {} };
  const key = new grid.AzureKeyCredential(topics.grid.keys.key1);
  const at = topics.grid.secureEndpoint;
  const over = await grid.generateSharedAccessSignature(at, key, new Date(Date.now() - 3600e3));
  const large = { ...event, data: { text: "x".repeat(1024 * 1024 + 4096) } };
  for (const [what, status, credential, schema, sent] of [
    ["the key of another topic", 401, new grid.AzureKeyCredential(topics.clouds.keys.key1), "EventGrid", event],
    ["a signature that is over", 401, new grid.AzureSASCredential(over), "EventGrid", event],
    ["too much", 413, key, "EventGrid", large],
    ["an event without a type", 400, key, "Custom", { id: "1", subject: "s", eventTime: new Date(), dataVersion: "1", data: {} }],
    ["an event with more than there is", 400, key, "Custom", { ...event, id: "1", eventTime: new Date(), color: "red" }],
  ]) {
    await assert.rejects(new grid.EventGridPublisherClient(at, schema, credential).send([sent]), (error) => error.statusCode === status, what);
  }
  proved("refusals have the statuses that the library knows");
}

async function pulling() {
  const topic = topics.pulled;
  const at = topic.secureEndpoint.split("/topics/")[0];
  const key = new namespaces.AzureKeyCredential(topic.keys.key1);
  await subscribe(topic, "worker", { deliveryConfiguration: { deliveryMode: "Queue", queue: { receiveLockDurationInSeconds: 60, maxDeliveryCount: 5 } }, eventDeliverySchema: "CloudEventSchemaV1_0" });
  const sender = new namespaces.EventGridSenderClient(at, key, topic.name);
  const receiver = new namespaces.EventGridReceiverClient(at, key, topic.name, "worker");
  const other = new namespaces.EventGridReceiverClient(at, bearer, topic.name, "worker");
  const make = (type, data) => ({ type, source: "/source", id: type, time: new Date(), data }); // it leaves other attributes out, both ways
  await sender.sendEvents(make("acknowledged", { n: 1 }));
  await sender.sendEvents([make("released", { n: 2 }), make("rejected", { n: 3 }), make("kept", { n: 4 })]);
  const held = {};
  while (Object.keys(held).length < 4) {
    const { details } = await receiver.receiveEvents({ maxEvents: 10, maxWaitTime: 10 });
    assert.ok(details.length > 0, "nothing came within ten seconds");
    for (const detail of details) {
      assert.equal(detail.brokerProperties.deliveryCount, 1);
      held[detail.event.type] = detail;
    }
  }
  assert.deepEqual(held.acknowledged.event.data, { n: 1 });
  const token = (kind) => held[kind].brokerProperties.lockToken;
  const strange = "no token of ours";
  for (const [kind, work] of [
    ["kept", (tokens) => receiver.renewEventLocks(tokens)],
    ["acknowledged", (tokens) => receiver.acknowledgeEvents(tokens)],
    ["released", (tokens) => receiver.releaseEvents(tokens, { releaseDelay: "0" })],
    ["rejected", (tokens) => receiver.rejectEvents(tokens)],
  ]) {
    const done = await work([token(kind), strange]);
    assert.deepEqual(done.succeededLockTokens, [token(kind)], kind);
    assert.deepEqual(done.failedLockTokens.map((failed) => failed.lockToken), [strange], kind);
  }
  const { details } = await other.receiveEvents({ maxEvents: 10, maxWaitTime: 10 });
  assert.deepEqual(details.map((detail) => [detail.event.type, detail.brokerProperties.deliveryCount]), [["released", 2]]);
  assert.deepEqual((await other.acknowledgeEvents([details[0].brokerProperties.lockToken])).failedLockTokens, []);
  proved("a namespace's topic: publish, receive, renew, acknowledge, release, reject");
}

run([gridEvents, cloudEvents, customEvents, refusals, pulling]);
