"""kafka-python."""

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

import task


def settings(**more):
    found = {"bootstrap_servers": task.ADDRESS, **more}
    if task.USER:
        found |= {
            "security_protocol": "SASL_SSL", "sasl_mechanism": task.MECHANISM, "ssl_cafile": task.CA,
            "sasl_plain_username": task.USER, "sasl_plain_password": task.PASSWORD,
        }
    return found


for codec in task.CODECS:
    producer = KafkaProducer(**settings(
        acks="all", enable_idempotence=True, compression_type=None if codec == "none" else codec, linger_ms=20))
    answers = [
        producer.send(task.HUB, key=key.encode(), value=value.encode(), headers=[("codec", codec.encode())])
        for key, value in task.records(codec)
    ]
    for answer in answers:
        answer.get(timeout=task.LIMIT)
    producer.close()
task.proved(f"an idempotent producer with {', '.join(task.CODECS)}")


def read(consumer):
    books = task.Books()
    while books.open():
        for messages in consumer.poll(timeout_ms=1000).values():
            for message in messages:
                books.take(message.key, message.value, message.headers)


consumer = KafkaConsumer(**settings(group_id=None, enable_auto_commit=False))
consumer.assign([TopicPartition(task.HUB, p) for p in range(task.PARTITIONS)])
consumer.seek_to_beginning()
read(consumer)
consumer.close()
task.proved("everything read from the beginning, once, and what was sent over AMQP")

consumer = KafkaConsumer(task.HUB, **settings(group_id=task.GROUP, enable_auto_commit=False, auto_offset_reset="earliest"))
read(consumer)
consumer.commit()
consumer.close()
task.proved("everything read in a group, and committed")
