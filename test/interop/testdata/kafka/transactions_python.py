"""kafka-python: transactions."""

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

import task


def producer(name):
    made = KafkaProducer(bootstrap_servers=task.ADDRESS, transactional_id=f"{task.HUB}-{name}", linger_ms=5)
    made.init_transactions()
    return made


def consumer(*hubs, group=None):
    return KafkaConsumer(*hubs, bootstrap_servers=task.ADDRESS, group_id=group, enable_auto_commit=False,
                         auto_offset_reset="earliest", isolation_level="read_committed")


def write():
    writer = producer("writer")
    for n in range(task.TRANSACTIONS):
        writer.begin_transaction()
        for i in range(task.SIZE):
            writer.send(task.HUB, key=str(i).encode(), value=f"{n}-{i}".encode())
        writer.flush(task.LIMIT)
        if n % 2 == 0:
            writer.commit_transaction()
        else:
            writer.abort_transaction()
    writer.close()


def messages(reader, missing):
    while missing.open():
        for some in reader.poll(timeout_ms=500).values():
            for message in some:
                missing.take(message.value)
                yield message


def read(hub):
    reader = consumer()
    reader.assign([TopicPartition(hub, p) for p in range(task.PARTITIONS)])
    reader.seek_to_beginning()
    for _ in messages(reader, task.Committed()):
        pass
    reader.close()


def copy():
    copier, reader = producer("copier"), consumer(task.HUB, group=task.GROUP)
    for message in messages(reader, task.Committed()):
        copier.begin_transaction()
        copier.send(task.HUB + "-copy", key=message.key, value=message.value, partition=message.partition)
        place = {TopicPartition(task.HUB, message.partition): OffsetAndMetadata(message.offset + 1, "", -1)}
        copier.send_offsets_to_transaction(place, reader.group_metadata())
        copier.commit_transaction()
    committed = {p: reader.committed(p) for p in reader.assignment()}
    if not any(committed.values()):
        raise AssertionError(f"no offsets were committed: {committed}")
    reader.close()
    copier.close()


write()
task.proved("transactions, committed and aborted")
read(task.HUB)
task.proved("what is committed is read, once, and nothing else")
copy()
read(task.HUB + "-copy")
task.proved("a hub copied with its offsets")
