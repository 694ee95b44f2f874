// KafkaJS. It consumes in groups only.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const { CompressionCodecs, CompressionTypes, Kafka, Partitioners, logLevel } = require("kafkajs");

CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");

const env = process.env;
const types = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy };

const settings = { clientId: "interop", brokers: [env.YARD_KAFKA], logLevel: logLevel.WARN };
if (env.YARD_USER) {
  settings.ssl = { ca: [fs.readFileSync(env.YARD_CA, "utf8")] };
  settings.sasl = { mechanism: "plain", username: env.YARD_USER, password: env.YARD_PASSWORD };
}

function records(codec) {
  const all = [];
  for (let i = 0; i < Number(env.YARD_EACH); i++) all.push({ key: `key-${i}`, value: `${codec}-${i}`, headers: { codec } });
  if (codec === "none") all.push({ key: "large", value: "x".repeat(Number(env.YARD_LARGE)), headers: { codec } });
  return all;
}

async function main() {
  const kafka = new Kafka(settings);
  const codecs = env.YARD_CODECS.split(" ");
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  let sent = 0;
  for (const codec of codecs) {
    const messages = records(codec);
    await producer.send({ topic: env.YARD_HUB, acks: -1, compression: types[codec], messages });
    sent += messages.length;
  }
  await producer.disconnect();
  console.log(`proved: an idempotent producer with ${codecs.join(", ")}`);

  const admin = kafka.admin();
  await admin.connect();
  const offsets = await admin.fetchTopicOffsets(env.YARD_HUB);
  const stored = offsets.reduce((sum, p) => sum + Number(p.high) - Number(p.low), 0);
  assert.equal(stored, sent + 1, "events between the first and the last offset"); // one was sent over AMQP
  await admin.disconnect();
  console.log("proved: the offsets of all partitions");

  const missing = new Map([[env.YARD_PLANTED, null]]);
  for (const codec of codecs) for (const r of records(codec)) missing.set(r.value, `${r.key} ${codec}`);
  const consumer = kafka.consumer({ groupId: env.YARD_GROUP });
  await consumer.connect();
  await consumer.subscribe({ topics: [env.YARD_HUB], fromBeginning: true });
  await new Promise((done, failed) => {
    setTimeout(() => failed(new Error(`${missing.size} did not come`)), 60_000).unref();
    consumer
      .run({
        eachMessage: async ({ message }) => {
          const value = message.value.toString();
          if (!missing.has(value)) failed(new Error(`${value.slice(0, 100)} came that was not sent, or came twice`));
          const want = missing.get(value);
          if (want !== null && want !== `${message.key} ${message.headers.codec}`) failed(new Error(`${value.slice(0, 100)} came otherwise than ${want}`));
          missing.delete(value);
          if (missing.size === 0) done();
        },
      })
      .catch(failed);
  });
  await consumer.stop(); // what was read is committed when it stops
  await consumer.disconnect();
  console.log("proved: everything read in a group, and committed");
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
