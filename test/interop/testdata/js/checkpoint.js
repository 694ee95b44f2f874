// The official consumers for JavaScript sharing partitions, with checkpoints in a blob
// service. They have the right to listen and no other: that must suffice. // H9
"use strict";
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { EventHubProducerClient, EventHubConsumerClient, earliestEventPosition } = require("@azure/event-hubs");
const { BlobCheckpointStore } = require("@azure/eventhubs-checkpointstore-blob");
const { ContainerClient } = require("@azure/storage-blob");
const yard = require("./yard.js");

const container = new ContainerClient(process.env.YARD_BLOBS, `checkpoints-${randomUUID()}`);
const EVENTS = 200;

async function send(label) {
  const client = new EventHubProducerClient(yard.connection, yard.options());
  const bodies = [];
  for (let i = 0; i < EVENTS; i++) {
    bodies.push(`${label} ${i}`);
    await client.sendBatch([{ body: bodies[i] }], { partitionId: `${i % 4}` });
  }
  await client.close();
  return bodies;
}

// consume counts in seen what a new consumer is given, and in numbers which of each partition.
function consume(seen, numbers = new Map()) {
  const owned = new Set();
  const client = new EventHubConsumerClient("readers", yard.listener, new BlobCheckpointStore(container), {
    ...yard.options(),
    loadBalancingOptions: { strategy: "greedy", updateIntervalInMs: 300, partitionOwnershipExpirationIntervalInMs: 10_000 },
  });
  const subscription = client.subscribe(
    {
      processInitialize: async (context) => void owned.add(context.partitionId),
      processClose: async (reason, context) => void owned.delete(context.partitionId),
      processError: async (error) => console.log("error:", error.message),
      processEvents: async (events, context) => {
        // First: to close waits for no checkpoint, and all are closed when everything was seen.
        if (events.length > 0) await context.updateCheckpoint(events.at(-1));
        for (const { body, sequenceNumber } of events) {
          seen.set(body, (seen.get(body) ?? 0) + 1);
          numbers.set(context.partitionId, [...(numbers.get(context.partitionId) ?? []), sequenceNumber]);
        }
      },
    },
    { startPosition: earliestEventPosition, maxWaitTimeInSeconds: 0.2 },
  );
  return { client, owned, close: async () => void (await subscription.close(), await client.close()) };
}

// until looks again and again: ownership moves without an event to tell.
async function until(what, ready) {
  const end = Date.now() + yard.LIMIT;
  while (!ready()) {
    assert.ok(Date.now() < end, `waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function share() {
  await container.create();
  const seen = new Map();
  const early = await send("early");
  const pair = [consume(seen), consume(seen)];
  await until("each has two partitions", () => pair.every(({ owned }) => owned.size === 2));
  const late = await send("late");
  await until("all is read", () => [...early, ...late].every((body) => seen.has(body)));
  yard.proved(`two consumers share four partitions, ${pair.map(({ owned }) => [...owned].sort().join("+")).join(" and ")}, and read everything`);
  await Promise.all(pair.map((consumer) => consumer.close()));
}

// Whoever loses a partition may write a checkpoint after the one who takes it, and an older one: the
// store asks for no order. So what has to come is told by the checkpoints that are there, not by what was
// read before.
async function resume() {
  const seen = new Map();
  const numbers = new Map();
  const fresh = await send("fresh");
  const kept = new Map();
  const asker = new EventHubConsumerClient("readers", yard.listener, yard.options());
  const store = new BlobCheckpointStore(container);
  for (const c of await store.listCheckpoints(asker.fullyQualifiedNamespace, asker.eventHubName, "readers")) kept.set(c.partitionId, c.sequenceNumber);
  await asker.close();
  assert.equal(kept.size, 4, "partitions with a checkpoint");
  const consumer = consume(seen, numbers);
  await until("all that is new is read", () => fresh.every((body) => seen.has(body)));
  await consumer.close();
  const last = (3 * EVENTS) / 4 - 1; // early, late and fresh, spread over four
  for (const [partition, at] of kept) {
    const wanted = Array.from({ length: last - at }, (_, i) => at + 1 + i);
    assert.deepEqual(numbers.get(partition), wanted, `partition ${partition}, from its checkpoint on`);
  }
  yard.proved("a new consumer resumes from the checkpoints: nothing lost, nothing twice");
}

yard.run([share, resume]);
