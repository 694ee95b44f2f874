"""confluent-kafka, which is librdkafka: transactions."""

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

import task
from login_confluent import settings


def producer(name):
    made = Producer(settings(**{"transactional.id": f"{task.HUB}-{name}", "linger.ms": 5}))
    made.init_transactions(task.LIMIT)
    return made


def write():
    writer = producer("writer")
    for n in range(task.TRANSACTIONS):
        writer.begin_transaction()
        for i in range(task.SIZE):
            writer.produce(task.HUB, key=str(i), value=f"{n}-{i}")
        if writer.flush(task.LIMIT):
            raise AssertionError("not everything was answered")
        if n % 2 == 0:
            writer.commit_transaction(task.LIMIT)
        else:
            writer.abort_transaction(task.LIMIT)


def messages(consumer, missing):
    while missing.open():
        for message in consumer.consume(100, 0.5):
            if message.error():
                raise AssertionError(message.error())
            missing.take(message.value())
            yield message


def read(hub):
    consumer = Consumer(settings(**{"group.id": "nobody", "enable.auto.commit": False, "isolation.level": "read_committed"}))
    consumer.assign([TopicPartition(hub, p, OFFSET_BEGINNING) for p in range(task.PARTITIONS)])
    for _ in messages(consumer, task.Committed()):
        pass
    consumer.close()


def copy():
    copier = producer("copier")
    consumer = Consumer(settings(**{"group.id": task.GROUP, "enable.auto.commit": False, "auto.offset.reset": "earliest",
                                    "isolation.level": "read_committed"}))
    consumer.subscribe([task.HUB])
    for message in messages(consumer, task.Committed()):
        copier.begin_transaction()
        copier.produce(task.HUB + "-copy", key=message.key(), value=message.value(), partition=message.partition())
        offsets = [TopicPartition(task.HUB, message.partition(), message.offset() + 1)]
        copier.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
        copier.commit_transaction(task.LIMIT)
    committed = consumer.committed(consumer.assignment(), task.LIMIT)
    if not any(p.offset > 0 for p in committed):
        raise AssertionError(f"no offsets were committed: {committed}")
    consumer.close()


write()
task.proved("transactions, committed and aborted")
read(task.HUB)
task.proved("what is committed is read, once, and nothing else")
copy()
read(task.HUB + "-copy")
task.proved("a hub copied with its offsets")
