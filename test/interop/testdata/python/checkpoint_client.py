"""The official consumers for Python sharing partitions, with checkpoints in a blob service.

They have the right to listen and no other: that must suffice.  # H9
"""

import os
import threading
import uuid

from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore
from azure.eventhub.extensions.checkpointstoreblob._vendor.storage.blob import ContainerClient

import yard
from yard import proved, same

CONTAINER = "checkpoints-" + uuid.uuid4().hex
EVENTS = 200


class Seen:
    """What the consumers of one round were given."""

    def __init__(self, want):
        self.lock = threading.Condition()
        self.want, self.counts, self.owners = want, {}, {}

    def event(self, name, context, event):
        with self.lock:
            body = event.body_as_str()
            self.counts[body] = self.counts.get(body, 0) + 1
            self.owners.setdefault(name, set()).add(context.partition_id)
            self.lock.notify_all()

    def wait(self, ready):
        with self.lock:
            if not self.lock.wait_for(ready, yard.LIMIT):
                raise AssertionError(f"{len(self.counts)} of {len(self.want)} events, owners {self.owners}")


class Consumer:
    def __init__(self, name, seen):
        store = BlobCheckpointStore.from_connection_string(os.environ["YARD_BLOBS"], CONTAINER)
        self.owned = set()
        self.client = EventHubConsumerClient.from_connection_string(
            yard.LISTENER, "readers", checkpoint_store=store, load_balancing_interval=1, **yard.options()
        )

        def on_event(context, event):
            context.update_checkpoint(event)  # first: all are closed when everything was seen
            seen.event(name, context, event)

        self.thread = threading.Thread(
            target=self.client.receive,
            args=(on_event,),
            kwargs=dict(
                starting_position="-1",
                on_partition_initialize=lambda context: self.owned.add(context.partition_id),
                on_partition_close=lambda context, reason: self.owned.discard(context.partition_id),
            ),
            daemon=True,
        )
        self.thread.start()

    def close(self):
        self.client.close()
        self.thread.join(yard.LIMIT)


def send(label):
    bodies = [f"{label} {i}" for i in range(EVENTS)]
    with EventHubProducerClient.from_connection_string(yard.CONNECTION, **yard.options()) as client:
        for i, body in enumerate(bodies):
            client.send_batch([EventData(body)], partition_id=str(i % yard.PARTITIONS))
    return set(bodies)


def share():
    """Two consumers until each has two partitions and all events are read."""
    seen = Seen(send("first"))
    pair = [Consumer("a", seen), Consumer("b", seen)]
    with seen.lock:
        balanced = lambda: all(len(c.owned) == 2 for c in pair)
        while not balanced():
            seen.lock.wait(0.1)  # ownership moves without an event to tell
    later = send("second")
    seen.want |= later
    seen.wait(lambda: seen.want <= set(seen.counts))
    proved(f"two consumers share four partitions, {sorted(pair[0].owned)} and {sorted(pair[1].owned)}, and read everything")
    for consumer in pair:
        consumer.close()
    return seen.want


def resume(old):
    """A third consumer goes on where the two stopped."""
    new = send("third")
    seen = Seen(new)
    consumer = Consumer("c", seen)
    seen.wait(lambda: new <= set(seen.counts))
    consumer.close()
    same(len(set(seen.counts) & old), 0, "events from before the checkpoints")
    same(max(seen.counts.values()), 1, "times an event was given")
    proved("a new consumer resumes from the checkpoints: nothing lost, nothing twice")


def main():
    ContainerClient.from_connection_string(os.environ["YARD_BLOBS"], CONTAINER).create_container()
    resume(share())


yard.run(main)
