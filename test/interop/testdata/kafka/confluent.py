"""confluent-kafka, which is librdkafka."""

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

import task
from login_confluent import settings


def send(codec):
    failed = []
    producer = Producer(settings(**{"enable.idempotence": True, "compression.type": codec, "linger.ms": 20}))
    for key, value in task.records(codec):
        producer.produce(task.HUB, key=key, value=value, headers={"codec": codec},
                         on_delivery=lambda error, _: failed.append(error) if error else None)
    left = producer.flush(task.LIMIT)
    if left or failed:
        raise AssertionError(f"{codec}: {left} were not answered, and {failed[:3]} refused")


for codec in task.CODECS:
    send(codec)
task.proved(f"an idempotent producer with {', '.join(task.CODECS)}")


def read(consumer):
    books = task.Books()
    while books.open():
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            raise AssertionError(message.error())
        books.take(message.key(), message.value(), message.headers())


# Without a group: an id is asked for all the same.
consumer = Consumer(settings(**{"group.id": "nobody", "enable.auto.commit": False}))
consumer.assign([TopicPartition(task.HUB, p, OFFSET_BEGINNING) for p in range(task.PARTITIONS)])
read(consumer)
consumer.close()
task.proved("everything read from the beginning, once, and what was sent over AMQP")

protocol = {"group.protocol": task.PROTOCOL} if task.PROTOCOL else {}
consumer = Consumer(settings(**{"group.id": task.GROUP, "enable.auto.commit": False, "auto.offset.reset": "earliest"} | protocol))
consumer.subscribe([task.HUB])
read(consumer)
consumer.commit(asynchronous=False)
consumer.close()
task.proved("everything read in a group, and committed")
