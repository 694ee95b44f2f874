"""The official library for Python, with its asyncio clients."""

import asyncio
import contextlib
import uuid

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.exceptions import ConnectionLostError, EventHubError

import yard
from yard import holds, proved, same


def producer(connection=yard.CONNECTION):
    return EventHubProducerClient.from_connection_string(connection, **yard.options())


class Reader:
    """A receive() that runs as a task of its own until it is closed."""

    def __init__(self, partition="0", position="-1", inclusive=False, group="$Default", **more):
        self.events, self.errors = asyncio.Queue(), asyncio.Queue()
        self.client = EventHubConsumerClient.from_connection_string(
            yard.CONNECTION, group, load_balancing_strategy="greedy", **yard.options()
        )
        self.task = asyncio.create_task(
            self.client.receive(
                self.on_event,
                partition_id=partition,
                starting_position=position,
                starting_position_inclusive=inclusive,
                on_error=self.on_error,
                **more,
            )
        )

    async def on_event(self, context, event):
        event.context = context
        await self.events.put(event)

    async def on_error(self, context, error):
        await self.errors.put(error)

    async def next(self, count):
        return [await asyncio.wait_for(self.events.get(), yard.LIMIT) for _ in range(count)]

    async def error(self):
        return await asyncio.wait_for(self.errors.get(), yard.LIMIT)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.client.close()
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task


async def read(count, **arguments):
    async with Reader(**arguments) as reader:
        return await reader.next(count)


async def sending():
    mark = uuid.uuid4().hex
    async with producer() as client:
        start = (await client.get_partition_properties("1"))["last_enqueued_sequence_number"]
        await client.send_event(EventData(f"{mark} single"), partition_id="1")
        batch = await client.create_batch(partition_id="1")
        for i in range(100):
            batch.add(EventData(f"{mark} {i}"))
        await client.send_batch(batch)
    events = await read(101, partition="1", position=start)
    same([event.body_as_str() for event in events], [f"{mark} single"] + [f"{mark} {i}" for i in range(100)], "bodies")
    middle = events[50]
    cases = [
        (middle.offset, False, 51), (middle.offset, True, 50),
        (middle.sequence_number, False, 51), (middle.sequence_number, True, 50),
    ]
    firsts = await asyncio.gather(*(read(1, partition="1", position=position, inclusive=inclusive) for position, inclusive, _ in cases))
    for (position, inclusive, want), first in zip(cases, firsts):
        same(first[0].sequence_number, events[want].sequence_number, f"position {position!r}, inclusive {inclusive}")
    at = (await read(1, partition="1", position=middle.enqueued_time, inclusive=True))[0]
    assert at.enqueued_time >= middle.enqueued_time and at.sequence_number <= middle.sequence_number, at
    proved("asyncio: single events and batches come back from every kind of position")


async def keys():
    mark = uuid.uuid4().hex
    async with producer() as client:
        for key in yard.KEYS:
            await client.send_batch([EventData(f"{mark} {key}")], partition_key=key)
    seen = {}
    async with Reader(partition=None, group="readers") as reader:
        while len(seen) < len(yard.KEYS):
            event = (await reader.next(1))[0]
            if event.body_as_str().startswith(mark):
                seen[yard.text(event.partition_key)] = event.context.partition_id
    same(seen, yard.KEYS, "partitions by key")
    proved("asyncio: partition keys choose Azure's partitions")


async def latest():
    mark = uuid.uuid4().hex
    async with producer() as client, Reader(partition="2", position="@latest") as reader:
        for i in range(100):
            await client.send_event(EventData(f"{mark} {i}"), partition_id="2")
            with contextlib.suppress(asyncio.TimeoutError):
                first = await asyncio.wait_for(reader.events.get(), 2)
                break
        holds(first.body_as_str(), mark)
    proved("asyncio: the latest position gives only what comes after")


async def epochs():
    where = dict(partition="1", group="readers")
    async with Reader(owner_level=3, **where) as first:
        await first.next(1)
        async with Reader(owner_level=3, **where) as second:
            await second.next(1)
            error = await first.error()
            same(type(error), ConnectionLostError, "error of the one that was replaced")
            holds(error, "New receiver")
            proved("asyncio: an equal owner level takes over")
    async with Reader(owner_level=9, **where) as owner:
        await owner.next(1)
        async with Reader(owner_level=8, **where) as lower:
            holds(await lower.error(), "with a higher epoch '9' already exists")
        proved("asyncio: a lower owner level is refused")


async def information():
    async with producer() as client:
        properties = await client.get_eventhub_properties()
        same((properties["eventhub_name"], properties["partition_ids"]), (yard.hub(), ["0", "1", "2", "3"]), "properties")
        partition = await client.get_partition_properties("1")
        same((partition["id"], partition["is_empty"]), ("1", False), "partition properties")
    try:
        async with producer(yard.LISTENER) as client:
            await client.send_event(EventData("without right"))
    except EventHubError as error:
        holds(error, "'Send' claim(s) are required")
    else:
        raise AssertionError("Listen sufficed to send")
    proved("asyncio: runtime information, and no sending without the right")


async def many():
    """Ten senders at once, and readers of every partition, on one event loop."""
    mark, each = uuid.uuid4().hex, 40

    async def send(i):
        async with producer() as client:
            for n in range(each):
                await client.send_batch([EventData(f"{mark} {i}/{n}")])

    seen = set()
    async with Reader(partition=None) as reader:
        sending = asyncio.gather(*(send(i) for i in range(10)))
        while len(seen) < 10 * each:
            body = (await reader.next(1))[0].body_as_str()
            if body.startswith(mark):
                assert body not in seen, body
                seen.add(body)
        await sending
    proved(f"asyncio: {len(seen)} events of ten clients at once, each once")


async def main():
    for part in yard.chosen([sending, keys, latest, epochs, information, many]):
        await part()


yard.run(lambda: asyncio.run(main()))
