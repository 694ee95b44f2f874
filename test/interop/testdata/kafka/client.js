// KafkaJS. It consumes in groups only, so that what it sends is read by others.
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
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
