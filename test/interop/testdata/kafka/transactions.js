// KafkaJS: transactions. It consumes in groups only.
"use strict";
const { Kafka, Partitioners, logLevel } = require("kafkajs");

const env = process.env;
const hub = env.YARD_HUB;
const kafka = new Kafka({ clientId: "interop", brokers: [env.YARD_KAFKA], logLevel: logLevel.WARN });

function committed() {
  const all = new Set();
  for (let n = 0; n < Number(env.YARD_TRANSACTIONS); n += 2) for (let i = 0; i < Number(env.YARD_SIZE); i++) all.add(`${n}-${i}`);
  return all;
}

async function producer(name) {
  const made = kafka.producer({ transactionalId: `${hub}-${name}`, idempotent: true, maxInFlightRequests: 1, createPartitioner: Partitioners.DefaultPartitioner });
  await made.connect();
  return made;
}

async function write() {
  const writer = await producer("writer");
  for (let n = 0; n < Number(env.YARD_TRANSACTIONS); n++) {
    const transaction = await writer.transaction();
    const messages = [];
    for (let i = 0; i < Number(env.YARD_SIZE); i++) messages.push({ key: `${i}`, value: `${n}-${i}` });
    await transaction.send({ topic: hub, acks: -1, messages });
    await (n % 2 === 0 ? transaction.commit() : transaction.abort());
  }
  await writer.disconnect();
}

// read reads a hub in a group, and does something with each message.
async function read(from, group, each) {
  const missing = committed();
  const consumer = kafka.consumer({ groupId: group, readUncommitted: false });
  await consumer.connect();
  await consumer.subscribe({ topics: [from], fromBeginning: true });
  await new Promise((done, failed) => {
    setTimeout(() => failed(new Error(`${missing.size} did not come`)), 60_000).unref();
    consumer
      .run({
        autoCommit: false,
        partitionsConsumedConcurrently: 1,
        eachMessage: async ({ partition, message }) => {
          if (!missing.delete(message.value.toString())) failed(new Error(`${message.value} came that does not count, or came twice`));
          await each(partition, message);
          if (missing.size === 0) done();
        },
      })
      .catch(failed);
  });
  await consumer.stop();
  await consumer.disconnect();
}

async function copy() {
  const copier = await producer("copier");
  await read(hub, env.YARD_GROUP, async (partition, { key, value, offset }) => {
    const transaction = await copier.transaction();
    await transaction.send({ topic: `${hub}-copy`, acks: -1, messages: [{ key, value, partition }] });
    const topics = [{ topic: hub, partitions: [{ partition, offset: String(BigInt(offset) + 1n) }] }];
    await transaction.sendOffsets({ consumerGroupId: env.YARD_GROUP, topics });
    await transaction.commit();
  });
  await copier.disconnect();
}

async function main() {
  await write();
  console.log("proved: transactions, committed and aborted");
  await read(hub, `${env.YARD_GROUP}-reader`, async () => {});
  console.log("proved: what is committed is read, once, and nothing else");
  await copy();
  await read(`${hub}-copy`, `${env.YARD_GROUP}-reader-copy`, async () => {});
  console.log("proved: a hub copied with its offsets");
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
