// The official library for JavaScript.
"use strict";
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const {
  EventHubProducerClient, EventHubConsumerClient, EventHubBufferedProducerClient, earliestEventPosition, latestEventPosition,
} = require("@azure/event-hubs");
const { AzureNamedKeyCredential } = require("@azure/core-auth");
const { types } = require("rhea"); // which the library writes and reads AMQP with
const yard = require("./yard.js");
const { proved } = yard;

const producer = (connection = yard.connection) => new EventHubProducerClient(connection, yard.options());

// withProducer gives work a producer and closes it after.
async function withProducer(work, connection) {
  const client = producer(connection);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

// Reader subscribes, to one partition or to all.
class Reader {
  events = new yard.Mailbox();
  errors = new yard.Mailbox();

  constructor({ partition, position = earliestEventPosition, group = "$Default", connection = yard.connection, ...more } = {}) {
    this.client = new EventHubConsumerClient(group, connection, yard.options());
    const handlers = {
      processEvents: async (events, context) => {
        for (const event of events) this.events.put({ event, partition: context.partitionId, last: context.lastEnqueuedEventProperties });
      },
      processError: async (error) => this.errors.put(error),
    };
    const options = { startPosition: position, maxWaitTimeInSeconds: 1, ...more };
    this.subscription =
      partition === undefined ? this.client.subscribe(handlers, options) : this.client.subscribe(partition, handlers, options);
  }

  async next(count) {
    const found = [];
    while (found.length < count) found.push(await this.events.take(`event ${found.length} of ${count}`));
    return found;
  }

  error() {
    return this.errors.take("an error");
  }

  async close() {
    await this.subscription.close();
    await this.client.close();
  }
}

async function reading(options, work) {
  const reader = new Reader(options);
  try {
    return await work(reader);
  } finally {
    await reader.close();
  }
}

const read = (count, options) => reading(options, async (reader) => (await reader.next(count)).map((found) => found.event));

async function sending() {
  await withProducer(async (client) => {
    await client.sendBatch([{ body: "list 0" }, { body: { number: 1 } }, { body: Buffer.from([0, 255]) }], { partitionId: "0" });
    const batch = await client.createBatch({ partitionId: "0" });
    for (let i = 0; i < 100; i++) {
      assert.ok(batch.tryAdd({ body: `batch ${i}`, properties: { i, text: "ü" }, messageId: `id ${i}`, correlationId: i, contentType: "text/plain" }));
    }
    await client.sendBatch(batch);
  });
  const events = await read(103, { partition: "0" });
  assert.deepEqual(events.slice(0, 2).map((event) => event.body), ["list 0", { number: 1 }]);
  assert.deepEqual([...events[2].body], [0, 255]);
  events.slice(3).forEach((event, i) => {
    assert.equal(event.body, `batch ${i}`);
    assert.deepEqual(event.properties, { i, text: "ü" });
    assert.deepEqual([event.messageId, event.correlationId, event.contentType], [`id ${i}`, i, "text/plain"]);
    assert.equal(event.sequenceNumber, i + 3);
    assert.ok(event.enqueuedTimeUtc instanceof Date);
  });
  proved("lists and batches come back in order, with their properties, numbered from 0");
}

async function largeBatch() {
  const count = await withProducer(async (client) => {
    const batch = await client.createBatch({ partitionId: "1" });
    while (batch.tryAdd({ body: Buffer.alloc(50_000, batch.count) }));
    await client.sendBatch(batch);
    await yard.refused(
      client.sendBatch([{ body: Buffer.alloc(1_500_000) }], { partitionId: "1" }),
      /larger|exceeds the limit/,
    );
    await client.sendBatch([{ body: "after" }], { partitionId: "1" });
    return batch.count;
  });
  const events = await read(count + 1, { partition: "1" });
  for (let i = 0; i < count; i++) assert.ok(Buffer.alloc(50_000, i).equals(events[i].body), `event ${i}`);
  assert.equal(events[count].body, "after");
  proved(`a batch as large as may be, ${count} events, comes back whole; a larger one is refused and the link goes on`);
}

async function keys() {
  const mark = randomUUID();
  await withProducer(async (client) => {
    for (const partitionKey of Object.keys(yard.KEYS)) await client.sendBatch([{ body: mark }], { partitionKey });
  });
  const seen = {};
  await reading({ group: "readers" }, async (reader) => {
    while (Object.keys(seen).length < Object.keys(yard.KEYS).length) {
      const [{ event, partition }] = await reader.next(1);
      if (event.body === mark) seen[event.partitionKey] = partition;
    }
  });
  assert.deepEqual(seen, { ...yard.KEYS });
  proved("partition keys choose Azure's partitions and come back");
}

async function positions() {
  await withProducer(async (client) => {
    for (let i = 0; i < 10; i++) await client.sendBatch([{ body: `position ${i}` }], { partitionId: "2" });
  });
  const { lastEnqueuedSequenceNumber: last } = await withProducer((client) => client.getPartitionProperties("2"));
  const all = await read(last + 1, { partition: "2" });
  const middle = all.at(-6);
  const first = async (position) => (await read(1, { partition: "2", position }))[0].sequenceNumber;
  const n = middle.sequenceNumber;
  assert.equal(await first({ offset: middle.offset }), n + 1);
  assert.equal(await first({ offset: middle.offset, isInclusive: true }), n);
  assert.equal(await first({ sequenceNumber: n }), n + 1);
  assert.equal(await first({ sequenceNumber: n, isInclusive: true }), n);
  const before = new Date(middle.enqueuedTimeUtc.getTime() - 1);
  assert.equal(await first({ enqueuedOn: before }), all.find((event) => event.enqueuedTimeUtc > before).sequenceNumber);
  await latest();
  proved("reading starts at the earliest, the latest, an offset, a sequence number and a time");
}

// latest sends until the reader gets something: whatever it gets was sent after it began.
async function latest() {
  const mark = randomUUID();
  await reading({ partition: "3", position: latestEventPosition }, (reader) =>
    withProducer(async (client) => {
      for (let i = 0; ; i++) {
        await client.sendBatch([{ body: `${mark} ${i}` }], { partitionId: "3" });
        const first = await reader.events.take("the first", 100).catch(() => undefined);
        if (first) return assert.ok(first.event.body.startsWith(mark));
        assert.ok(i < 1000, "nothing came");
      }
    }),
  );
}

async function annotated() {
  const { lastEnqueuedSequenceNumber: sequenceNumber } = await withProducer((client) => client.getPartitionProperties("3"));
  const sent = [
    {
      bodyType: "value", body: { key: ["list", 1], flag: true },
      properties: { messageId: "m", to: "to", subject: "s", replyTo: "r", correlationId: "c", groupId: "g", groupSequence: 5 },
      applicationProperties: { text: "t", number: 1, flag: false },
      messageAnnotations: { "x-ours": "kept" },
    },
    { bodyType: "sequence", body: [[1, "two"], [3.5]] },
    { bodyType: "data", body: Buffer.from("data") },
  ];
  await withProducer((client) => client.sendBatch(sent, { partitionId: "3" }));
  const [value, sequence, data] = (await read(3, { partition: "3", position: { sequenceNumber } })).map((event) => event.getRawAmqpMessage());
  assert.deepEqual([value.bodyType, value.body], ["value", sent[0].body]);
  for (const [name, want] of Object.entries(sent[0].properties)) assert.equal(value.properties[name], want, name);
  assert.deepEqual({ ...value.applicationProperties }, sent[0].applicationProperties);
  assert.equal(value.messageAnnotations["x-ours"], "kept");
  // The library gives these as it got them from below, in a wrapper.
  assert.deepEqual([sequence.bodyType, sequence.body.content], ["sequence", sent[1].body]);
  assert.deepEqual([data.bodyType, data.body.content.toString()], ["data", "data"]);
  proved("AMQP values, sequences and data, properties and annotations come back as sent");
}

async function withoutBody() {
  const { lastEnqueuedSequenceNumber: sequenceNumber } = await withProducer((client) => client.getPartitionProperties("3"));
  const sent = [
    { body: null },
    { body: undefined, properties: { of: "nothing" } },
    // rhea writes the footer before the body.
    { bodyType: "data", body: null, footer: { foot: "note" }, messageAnnotations: { "x-ours": "kept" } },
    { bodyType: "data", body: Buffer.from("data"), footer: { foot: "note" }, deliveryAnnotations: { hop: 1 } },
    { bodyType: "sequence", body: null },
    { bodyType: "value", body: null },
  ];
  await withProducer((client) => client.sendBatch(sent, { partitionId: "3" }));
  const events = await read(sent.length, { partition: "3", position: { sequenceNumber } });
  assert.deepEqual(events.map((event) => event.body), [null, null, null, "data", null, null].map((body) => (body ? Buffer.from(body) : body)));
  assert.deepEqual(events[1].properties, { of: "nothing" });
  for (const event of events.slice(2, 4)) assert.deepEqual({ ...event.getRawAmqpMessage().footer }, { foot: "note" });
  assert.equal(events[2].getRawAmqpMessage().messageAnnotations["x-ours"], "kept");
  assert.equal(events[2].getRawAmqpMessage().bodyType, "data");
  proved("events without a body come back so, and footers that were written before the body");
}

async function described() {
  const { lastEnqueuedSequenceNumber: sequenceNumber } = await withProducer((client) => client.getPartitionProperties("3"));
  const one = () => types.described(types.wrap_int(5), types.wrap_string("described"));
  const sent = [
    { bodyType: "value", body: one() },
    { bodyType: "value", body: { inside: [one()] } },
    { bodyType: "sequence", body: [[one(), 1]] },
    { body: "after" },
  ];
  await withProducer((client) => client.sendBatch(sent, { partitionId: "3" }));
  const events = await read(sent.length, { partition: "3", position: { sequenceNumber } });
  // Inside of a value the library gives what its AMQP library does, descriptor and all.
  const parts = ({ descriptor, value }) => [descriptor.value, value];
  const [alone, inMap, inSequence, after] = events.map((event) => event.body);
  assert.deepEqual([alone, parts(inMap.inside[0]), parts(inSequence[0][0]), inSequence[0][1], after],
    ["described", [5, "described"], [5, "described"], 1, "after"]);
  proved("described values with an int for their descriptor come back");
}

async function ownerLevels() {
  const where = { partition: "0", group: "readers" };
  await reading({ ...where, ownerLevel: 5 }, async (first) => {
    await first.next(1);
    await reading({ ...where, ownerLevel: 6 }, async (second) => {
      await second.next(1);
      const error = await first.error();
      assert.equal(error.code, "ReceiverDisconnectedError");
      assert.match(error.message, /New receiver .* with higher epoch of '6' is created/);
      proved("a higher owner level takes over, and the reader it replaces is told why");
      await reading({ ...where, ownerLevel: 4 }, async (third) => {
        assert.match((await third.error()).message, /with a higher epoch '6' already exists/);
      });
      await reading(where, async (fourth) => {
        assert.match((await fourth.error()).message, /non-epoch receiver is not allowed/);
      });
      proved("a lower owner level and a reader without one are refused");
    });
  });
  await read(1, where);
  proved("once the owner is gone a reader without owner level is let in");
}

async function information() {
  await withProducer(async (client) => {
    const properties = await client.getEventHubProperties();
    assert.deepEqual([properties.name, properties.partitionIds], [yard.hub, ["0", "1", "2", "3"]]);
    assert.ok(Date.now() - properties.createdOn < 3_600_000);
    const partition = await client.getPartitionProperties("0");
    const [tip] = await read(1, { partition: "0", position: { sequenceNumber: partition.lastEnqueuedSequenceNumber, isInclusive: true } });
    assert.equal(partition.isEmpty, false);
    assert.equal(partition.beginningSequenceNumber, 0);
    assert.equal(partition.lastEnqueuedSequenceNumber, tip.sequenceNumber);
    assert.equal(partition.lastEnqueuedOffset, tip.offset);
    assert.equal(+partition.lastEnqueuedOnUtc, +tip.enqueuedTimeUtc);
    await yard.refused(client.getPartitionProperties("99"), /The specified partition is invalid for an EventHub partition sender or receiver/);
    await reading({ partition: "0", trackLastEnqueuedEventProperties: true }, async (reader) => {
      const [{ last }] = await reader.next(1);
      assert.equal(last.sequenceNumber, tip.sequenceNumber);
      assert.equal(last.offset, tip.offset);
      assert.equal(+last.enqueuedOn, +tip.enqueuedTimeUtc);
      assert.ok(last.retrievedOn instanceof Date);
    });
  });
  proved("runtime information of the hub, a partition, and beside each delivery");
}

async function idempotent() {
  const mark = randomUUID();
  const failures = [];
  let stored = 0;
  const client = new EventHubBufferedProducerClient(yard.connection, {
    ...yard.options(),
    enableIdempotentRetries: true,
    maxWaitTimeInMs: 200,
    onSendEventsErrorHandler: async (context) => failures.push(context.error),
    onSendEventsSuccessHandler: async (context) => (stored += context.events.length),
  });
  const { lastEnqueuedSequenceNumber: sequenceNumber } = await withProducer((other) => other.getPartitionProperties("1"));
  for (let i = 0; i < 500; i++) await client.enqueueEvent({ body: `${mark} ${i}` }, { partitionId: "1" });
  await client.flush();
  await client.close();
  assert.deepEqual([stored, failures], [500, []]);
  const events = await read(500, { partition: "1", position: { sequenceNumber } });
  events.forEach((event, i) => assert.equal(event.body, `${mark} ${i}`));
  for (const name of Object.keys(events[0].getRawAmqpMessage().messageAnnotations)) assert.doesNotMatch(name, /producer/);
  proved("the buffered, idempotent producer stores each event once, and consumers see nothing of it");
}

async function access() {
  const one = (connection) => withProducer((client) => client.sendBatch([{ body: "by right" }]), connection);
  await one(yard.sender);
  await yard.refused(one(yard.listener), /UnauthorizedError.*'Send' claim\(s\) are required/);
  await read(1, { partition: "0", connection: yard.listener });
  await reading({ partition: "0", connection: yard.sender }, async (reader) => {
    assert.match((await reader.error()).message, /'Listen' claim\(s\) are required/);
  });
  proved("Send sends, Listen receives, and each is refused the other's work");
  await one(yard.signed(yard.connection));
  await yard.refused(one(yard.signed(yard.connection, -60)), /Unauthorized|ExpiredToken/);
  proved("a connection string that has only a signature works, without any SASL; an expired one is refused");
  for (const [part, broken] of [[/&sig=[^&]*/, ""], [/&se=/, "&se=x"], [/&sig=/, "&sig=x"], [/sr=[^&]*/, "sr=x%zz"]]) {
    await yard.refused(one(yard.signed(yard.connection).replace(part, broken)), /UnauthorizedError.*Token is malformed: /);
  }
  proved("a malformed signature is unauthorized, whatever is wrong with it");
  await yard.refused(one(yard.connection.replace(`EntityPath=${yard.hub}`, "EntityPath=no-such-hub")), /MessagingEntityNotFoundError/);
  proved("an unknown hub is not found");
}

// A credential whose key is changed works with TLS only: there is no other way to name the yard.
async function rotation() {
  const { Endpoint, SharedAccessKeyName: name, SharedAccessKey: key, UseDevelopmentEmulator } = yard.parts(yard.connection);
  if (UseDevelopmentEmulator) return;
  const credential = new AzureNamedKeyCredential(name, key);
  const client = new EventHubProducerClient(new URL(Endpoint).host, yard.hub, credential, yard.options());
  try {
    await client.getPartitionIds();
    credential.update(name, "d3Jvbmc=");
    await yard.refused(client.getPartitionIds(), /UnauthorizedError.*InvalidSignature/);
    credential.update(name, key);
    await client.getPartitionIds();
  } finally {
    await client.close();
  }
  proved("a key that is changed to a wrong one is refused at the next question, and the right one taken again");
}

yard.run([sending, largeBatch, keys, positions, annotated, withoutBody, described, ownerLevels, information, idempotent, access, rotation]);
