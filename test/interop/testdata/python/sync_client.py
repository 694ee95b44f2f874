"""The official library for Python, with its blocking clients."""

import contextlib
import datetime
import queue
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

from azure.core.credentials import AzureNamedKeyCredential
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage
from azure.eventhub.exceptions import AuthenticationError, ConnectionLostError, EventHubError

import yard
from yard import holds, proved, same


def producer(connection=yard.CONNECTION, **more):
    return EventHubProducerClient.from_connection_string(connection, **yard.options(), **more)


class Reader:
    """A receive_batch() that runs in a thread of its own until it is closed."""

    def __init__(self, partition="0", position="-1", inclusive=False, group="$Default", connection=yard.CONNECTION, **more):
        self.events, self.errors = queue.Queue(), queue.Queue()
        self.client = EventHubConsumerClient.from_connection_string(
            connection, group, load_balancing_strategy="greedy", **yard.options()
        )
        arguments = dict(
            partition_id=partition,
            starting_position=position,
            starting_position_inclusive=inclusive,
            on_error=lambda context, error: self.errors.put(error),
        )
        self.thread = threading.Thread(
            target=self.client.receive_batch, args=(self.on_events,), kwargs=arguments | more, daemon=True
        )
        self.thread.start()

    def on_events(self, context, events):
        for event in events:
            event.context = context
            event.last_enqueued = context.last_enqueued_event_properties
            self.events.put(event)

    def next(self, count):
        return [self.events.get(timeout=yard.LIMIT) for _ in range(count)]

    def error(self):
        return self.errors.get(timeout=yard.LIMIT)

    def close(self):
        self.client.close()
        self.thread.join(yard.LIMIT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def read(count, **arguments):
    with Reader(**arguments) as reader:
        return reader.next(count)


def bodies(events):
    return [event.body_as_str() for event in events]


def sending():
    with producer() as client:
        client.send_event(EventData("single"), partition_id="0")
        client.send_batch([EventData(f"list {i}") for i in range(3)], partition_id="0")
        batch = client.create_batch(partition_id="0")
        for i in range(3):
            batch.add(EventData(f"batch {i}"))
        client.send_batch(batch)
    events = read(7, partition="0")
    same(bodies(events), ["single"] + [f"list {i}" for i in range(3)] + [f"batch {i}" for i in range(3)], "bodies")
    same([event.sequence_number for event in events], list(range(7)), "sequence numbers")
    times = [event.enqueued_time for event in events]
    same(times, sorted(times), "enqueued times")
    proved("single events, lists and batches come back in order, numbered from 0")


def large_batch():
    with producer() as client:
        batch = client.create_batch(partition_id="1")
        count = 0
        with contextlib.suppress(ValueError):
            while True:
                batch.add(EventData(bytes([count]) * 50_000))
                count += 1
        client.send_batch(batch)
    events = read(count, partition="1")
    for i, event in enumerate(events):
        same(b"".join(event.body), bytes([i]) * 50_000, f"event {i}")
    proved(f"a batch of {batch.size_in_bytes} bytes, {count} events, comes back whole")


def too_large():
    with producer() as client:
        try:
            client.send_event(EventData(b"x" * 1_100_000), partition_id="0")
        except EventHubError as error:
            proved(f"an event over the limit is refused: {type(error).__name__}")
        else:
            raise AssertionError("an event of 1,100,000 bytes was taken")
        client.send_event(EventData("after the large one"), partition_id="0")


def keys():
    with producer() as client:
        for key in yard.KEYS:
            client.send_batch([EventData(f"key {key}")], partition_key=key)
            client.send_event(EventData(f"key {key} single"), partition_key=key)
    seen = {}
    with Reader(partition=None, group="readers") as reader:
        while len(seen) < 2 * len(yard.KEYS):
            event = reader.next(1)[0]
            if event.body_as_str()[:4] == "key ":
                seen[event.body_as_str()] = event.context.partition_id, yard.text(event.partition_key)
    for key, partition in yard.KEYS.items():
        same(seen[f"key {key}"], (partition, key), f"batch with key {key}")
        same(seen[f"key {key} single"], (partition, key), f"event with key {key}")
    proved("partition keys choose Azure's partitions and come back")


def positions():
    with producer() as client:
        for i in range(10):
            client.send_event(EventData(f"position {i}"), partition_id="2")
    # Keys may have put others before; ours are the last ten in the partition.
    with producer() as client:
        last = client.get_partition_properties("2")["last_enqueued_sequence_number"]
    everything = read(last + 1, partition="2")
    same(bodies(everything[-10:]), [f"position {i}" for i in range(10)], "from the earliest")
    middle = everything[-6]
    number = middle.sequence_number
    at_that_time = next(event.sequence_number for event in everything if event.enqueued_time >= middle.enqueued_time)
    long_ago = datetime.datetime(2001, 1, 1, tzinfo=datetime.timezone.utc)
    cases = [
        ("after an offset", middle.offset, False, number + 1),
        ("at an offset", middle.offset, True, number),
        ("after a sequence number", number, False, number + 1),
        ("at a sequence number", number, True, number),
        ("after sequence number -1", -1, False, 0),
        ("at a time", middle.enqueued_time, True, at_that_time),
        ("after a time long ago", long_ago, False, 0),
    ]
    with ThreadPoolExecutor(4) as pool:  # of five that a group may have on one partition
        firsts = pool.map(lambda case: read(1, partition="2", position=case[1], inclusive=case[2])[0], cases)
        for (name, _, _, want), first in zip(cases, firsts):
            same(first.sequence_number, want, name)
    with Reader(partition=None, position={"2": number}, group="readers") as reader:
        while (event := reader.next(1)[0]).context.partition_id != "2":
            pass
        same(event.sequence_number, number + 1, "a position for one partition of all")
    proved("reading starts at the earliest, an offset, a sequence number and a time")


def latest():
    """Sends until the reader gets something: whatever it gets was sent after it began."""
    mark = uuid.uuid4().hex
    with producer() as client, Reader(partition="3", position="@latest") as reader:
        for i in range(100):
            client.send_event(EventData(f"{mark} {i}"), partition_id="3")
            with contextlib.suppress(queue.Empty):
                # The library hands events over only once its socket was quiet for up to a second.
                first = reader.events.get(timeout=2)
                break
        holds(first.body_as_str(), mark)
    proved("the latest position gives only what comes after")


def fidelity():
    message_id = uuid.uuid4()
    sent = [
        AmqpAnnotatedMessage(
            data_body=[b"one", b"two", b"\x00\xff"],
            properties={
                "message_id": message_id, "user_id": b"user", "to": "to", "subject": "subject", "reply_to": "reply",
                "correlation_id": "correlation", "content_type": "text/plain", "content_encoding": "utf-8",
                "creation_time": 1_700_000_000_000, "absolute_expiry_time": 1_800_000_000_000,
                "group_id": "group", "group_sequence": 5, "reply_to_group_id": "other",
            },
            application_properties={"int": 7, "text": "text", "yes": True, "float": 1.5, "bytes": b"\x01"},
            annotations={"x-ours": "kept"},
            footer={"foot": "note"},
        ),
        AmqpAnnotatedMessage(sequence_body=[[1, "two", None], [3.5]]),
        AmqpAnnotatedMessage(value_body={"key": ["list", 1], "flag": True}),
        AmqpAnnotatedMessage(value_body=None),
    ]
    with producer() as client:
        start = client.get_partition_properties("3")["last_enqueued_sequence_number"]
        client.send_batch(sent, partition_id="3")
    full, sequence, value, nothing = (event.raw_amqp_message for event in read(4, partition="3", position=start))
    same(list(full.body), [b"one", b"two", b"\x00\xff"], "data sections")
    same(full.properties.message_id, message_id, "message id")
    for name, want in dict(
        user_id=b"user", to=b"to", subject=b"subject", reply_to=b"reply", correlation_id=b"correlation",
        content_type=b"text/plain", content_encoding=b"utf-8", creation_time=1_700_000_000_000,
        absolute_expiry_time=1_800_000_000_000, group_id=b"group", group_sequence=5, reply_to_group_id=b"other",
    ).items():
        got = getattr(full.properties, name)
        same(got.encode() if isinstance(got, str) else got, want, name)
    got = {yard.text(key): value for key, value in full.application_properties.items()}
    same(got, {"int": 7, "text": b"text", "yes": True, "float": 1.5, "bytes": b"\x01"}, "application properties")
    same(full.annotations[b"x-ours"], b"kept", "annotation")
    same({yard.text(k): yard.text(v) for k, v in full.footer.items()}, {"foot": "note"}, "footer")
    same([list(part) for part in sequence.body], [[1, b"two", None], [3.5]], "sequence sections")
    same(value.body, {b"key": [b"list", 1], b"flag": True}, "value")
    same(nothing.body, None, "null value")
    proved("every AMQP section and body type comes back as sent")


def unusual():
    sent = [
        # pyamqp writes the delivery annotations last.
        AmqpAnnotatedMessage(data_body=b"body", delivery_annotations={"hop": 1}, footer={"foot": "note"}),
        # It takes a tuple for a described value, whose descriptor is an int here.
        AmqpAnnotatedMessage(value_body=(5, "described")),
        AmqpAnnotatedMessage(value_body={"inside": [(5, "described")]}),
        AmqpAnnotatedMessage(sequence_body=[[(5, "described"), 1]]),
        AmqpAnnotatedMessage(data_body=[b"", b""]),
        AmqpAnnotatedMessage(data_body=b"after"),
    ]
    with producer() as client:
        start = client.get_partition_properties("3")["last_enqueued_sequence_number"]
        client.send_batch(sent, partition_id="3")
    events = [event.raw_amqp_message for event in read(len(sent), partition="3", position=start)]
    late, described, inside, sequence, empty, after = events
    same(list(late.body), [b"body"], "body before delivery annotations")
    same({yard.text(k): yard.text(v) for k, v in late.footer.items()}, {"foot": "note"}, "footer before delivery annotations")
    # It reads a described value without its descriptor.
    same(described.body, b"described", "described value")
    same(inside.body, {b"inside": [b"described"]}, "described value in a map")
    same([list(part) for part in sequence.body], [[b"described", 1]], "described value in a sequence")
    same(list(empty.body), [b"", b""], "empty data sections")
    same(list(after.body), [b"after"], "event after them")
    proved("delivery annotations behind the body, described values with an int for their descriptor, and empty data are taken")


def epochs():
    """Uses a partition that has events, in a group where nobody else reads."""
    where = dict(partition="0", group="readers")
    with Reader(owner_level=1, **where) as first:
        first.next(1)
        with Reader(owner_level=2, **where) as second:
            second.next(1)
            error = first.error()
            same(type(error), ConnectionLostError, "error of the one that was replaced")
            holds(error, "New receiver 'nil' with higher epoch of '2' is created")
            proved("a higher owner level takes over, and the reader it replaces is told why")
            with Reader(owner_level=0, **where) as third:
                holds(third.error(), "Receiver 'nil' with a higher epoch '2' already exists")
            with Reader(**where) as fourth:
                holds(fourth.error(), "At least one receiver for the endpoint is created with epoch of '2'")
            proved("a lower owner level and a reader without one are refused, naming the existing one")
    read(1, **where)
    proved("once the owner is gone a reader without owner level is let in")


def five_readers():
    where = dict(partition="0", group="readers")
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(Reader(**where)).next(1)
        with Reader(**where) as sixth:
            holds(sixth.error(), "Exceeded the maximum number of allowed receivers per partition in a consumer group which is 5")
    proved("a sixth reader without owner level is refused")


def information():
    with producer() as client:
        properties = client.get_eventhub_properties()
        same(properties["eventhub_name"], yard.hub(), "name")
        same(properties["partition_ids"], ["0", "1", "2", "3"], "partition ids")
        age = datetime.datetime.now(datetime.timezone.utc) - properties["created_at"]
        assert age < datetime.timedelta(hours=1), age
        partition = client.get_partition_properties("0")
        tip = read(1, partition="0", position=partition["last_enqueued_sequence_number"], inclusive=True)[0]
        same(partition["id"], "0", "partition id")
        same(partition["is_empty"], False, "is empty")
        same(partition["beginning_sequence_number"], 0, "first sequence number")
        same(partition["last_enqueued_sequence_number"], tip.sequence_number, "last sequence number")
        same(partition["last_enqueued_offset"], tip.offset, "last offset")
        same(partition["last_enqueued_time_utc"], tip.enqueued_time, "last time")
        try:
            client.get_partition_properties("99")
        except EventHubError as error:
            holds(error, "The specified partition is invalid")
        else:
            raise AssertionError("there is no partition 99")
    with Reader(partition="0", track_last_enqueued_event_properties=True) as reader:
        event = reader.next(1)[0]
        same(event.last_enqueued["sequence_number"], tip.sequence_number, "last number beside a delivery")
        same(event.last_enqueued["offset"], tip.offset, "last offset beside a delivery")
        same(event.last_enqueued["enqueued_time"], tip.enqueued_time, "last time beside a delivery")
        assert event.last_enqueued["retrieval_time"], event.last_enqueued
    proved("runtime information of the hub, a partition, and beside each delivery")


def buffered():
    sent, failed = [], []
    client = producer(
        buffered_mode=True,
        on_success=lambda events, partition: sent.extend(events),
        on_error=lambda events, partition, error: failed.append(error),
        max_wait_time=1,
    )
    with client:
        for i in range(500):
            client.send_event(EventData(f"buffered {i}"))
        client.flush(timeout=yard.LIMIT)
    same((len(sent), failed), (500, []), "buffered events")
    proved("the buffered producer delivers all that it was given")


def refused(part, connection):
    try:
        send_one(connection)
    except EventHubError as error:
        holds(error, part)
        return
    raise AssertionError(f"{part!r} was expected")


def send_one(connection):
    with producer(connection) as client:
        client.send_event(EventData("by right"))


def access():
    send_one(yard.SENDER)
    refused("'Send' claim(s) are required", yard.LISTENER)
    read(1, connection=yard.LISTENER)
    with Reader(connection=yard.SENDER) as reader:
        holds(reader.error(), "'Listen' claim(s) are required")
    for connection in (yard.SENDER, yard.LISTENER):
        with producer(connection) as client:
            same(len(client.get_partition_ids()), 4, "partitions")
    proved("Send sends, Listen receives, each is refused the other's work, and both see the hub's properties")
    refused("authentication failed", yard.changed(yard.CONNECTION, SharedAccessKey="wrong"))
    signed = dict(SharedAccessKeyName=None, SharedAccessKey=None)
    send_one(yard.changed(yard.CONNECTION, SharedAccessSignature=yard.signature(yard.CONNECTION), **signed))
    expired = yard.changed(yard.CONNECTION, SharedAccessSignature=yard.signature(yard.CONNECTION, -60), **signed)
    refused("authentication failed", expired)
    proved("a wrong key and an expired signature are refused; a signature made by hand is taken")
    for part, broken in [("&sig=", "&sig=x"), ("&se=", "&se=x"), ("&skn=", "&other="), ("sr=", "sr=%zz"), ("SharedAccessSignature ", "x")]:
        token = yard.signature(yard.CONNECTION).replace(part, broken)
        try:
            send_one(yard.changed(yard.CONNECTION, SharedAccessSignature=token, **signed))
        except AuthenticationError:
            continue
        raise AssertionError(f"{token!r} was taken")
    proved("a malformed signature is an authentication error, whatever is wrong with it")
    missing = yard.changed(yard.CONNECTION, EntityPath="no-such-hub")
    refused("", missing)  # the library hides what the yard said about it
    proved("an unknown hub is refused, at once")


def rotation():
    """With TLS only: a credential whose key is changed needs the name of a namespace."""
    if not yard.options().get("connection_verify"):
        return
    found = yard.parts(yard.CONNECTION)
    name, key = found["SharedAccessKeyName"], found["SharedAccessKey"]
    credential = AzureNamedKeyCredential(name, key)
    with EventHubProducerClient(found["Endpoint"].removeprefix("sb://"), yard.hub(), credential, **yard.options()) as client:
        same(len(client.get_partition_ids()), 4, "partitions")
        credential.update(name, "wrong")
        try:
            client.get_partition_ids()
        except AuthenticationError:
            credential.update(name, key)
        else:
            raise AssertionError("a question with a wrong key was answered")
        same(len(client.get_partition_ids()), 4, "partitions, with the right key again")
    proved("a key that is changed to a wrong one is refused at the next question, and the right one taken again")


def main():
    for part in yard.chosen([
        sending, large_batch, too_large, keys, positions, latest, fidelity, unusual, epochs, five_readers, information, buffered,
        access, rotation,
    ]):
        part()


yard.run(main)
