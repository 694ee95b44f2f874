"""confluent-kafka, a member of a group that reads numbers and commits what it has read."""

from confluent_kafka import Consumer, KafkaException

import member

settings = {
    "bootstrap.servers": member.ADDRESS, "group.id": member.GROUP, "enable.auto.commit": False, "auto.offset.reset": "earliest",
}
if member.PROTOCOL:  # the rest is the yard's to say
    settings["group.protocol"] = member.PROTOCOL
else:
    settings |= {
        "session.timeout.ms": member.SESSION, "heartbeat.interval.ms": 1000,
        "partition.assignment.strategy": "cooperative-sticky" if member.COOPERATIVE else "range",
    }
if member.INSTANCE:
    settings["group.instance.id"] = member.INSTANCE

consumer = Consumer(settings)
consumer.subscribe([member.HUB])
story = member.Story()
while not member.ended.is_set():
    messages = [m for m in consumer.consume(500, 0.2) if not m.error()]
    story.has(p.partition for p in consumer.assignment())
    if not messages:
        continue
    after = member.read((m.partition(), m.offset(), m.value()) for m in messages)
    try:
        for p in consumer.commit(asynchronous=False):
            if p.error:
                raise KafkaException(p.error)
        member.committed(after)
    except KafkaException as refused:  # it is read again, by whoever has it then
        member.say("refused", refused)
consumer.close()
