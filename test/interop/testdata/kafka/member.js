// KafkaJS, a member of a group that reads numbers and commits what it has read.
"use strict";
const { Kafka, logLevel } = require("kafkajs");

const env = process.env;
const say = (...words) => console.log(words.join(" "));

async function main() {
  const retry = { initialRetryTime: 100, maxRetryTime: 1000, retries: 200 };
  const kafka = new Kafka({ clientId: "member", brokers: env.YARD_KAFKA.split(","), logLevel: logLevel.ERROR, retry });
  const consumer = kafka.consumer({ groupId: env.YARD_GROUP, sessionTimeout: Number(env.YARD_SESSION), heartbeatInterval: 1000, retry });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => say("has", ...(payload.memberAssignment[env.YARD_HUB] ?? []).sort()));
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    say("crash", payload.error, payload.restart);
    if (!payload.restart) process.exit(1);
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [env.YARD_HUB], fromBeginning: true });
  const ended = new Promise((done) => process.stdin.on("end", done).resume());
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, heartbeat }) => {
      const { topic, partition, messages } = batch;
      for (const { offset, value } of messages) {
        if (value.toString() !== offset) {
          say(`partition ${partition} has ${value} at ${offset}`);
          process.exit(1);
        }
      }
      const last = BigInt(batch.lastOffset());
      say("read", partition, batch.firstOffset(), last);
      try {
        await consumer.commitOffsets([{ topic, partition, offset: String(last + 1n) }]);
        say("committed", partition, last + 1n);
      } catch (refused) {
        say("refused", refused); // it is read again, by whoever has it then
        throw refused;
      }
      await heartbeat();
    },
  });
  await ended;
  await consumer.disconnect();
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
