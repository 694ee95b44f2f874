"""kafka-python, a member of a group that reads numbers and commits what it has read."""

from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError

import member

consumer = KafkaConsumer(
    member.HUB, bootstrap_servers=member.ADDRESS, group_id=member.GROUP, group_instance_id=member.INSTANCE,
    enable_auto_commit=False, auto_offset_reset="earliest", session_timeout_ms=member.SESSION, heartbeat_interval_ms=1000,
    partition_assignment_strategy=[CooperativeStickyAssignor if member.COOPERATIVE else RangePartitionAssignor],
)
# Longer than a rebalance takes: where the time of a poll ends just when SyncGroup is answered, version 3.0.12 forgets that it
# was joining, has no partitions and sends no heartbeats any more.
PATIENCE = 10_000
story = member.Story()
while not member.ended.is_set():
    polled = consumer.poll(timeout_ms=PATIENCE)
    story.has(p.partition for p in consumer.assignment())
    if not polled:
        continue
    after = member.read((m.partition, m.offset, m.value) for messages in polled.values() for m in messages)
    try:
        consumer.commit()
        member.committed(after)
    except KafkaError as refused:  # it is read again, by whoever has it then
        member.say("refused", repr(refused))
consumer.close(autocommit=False)
