"""What the scripts of members share: what a member says, and when it is to end."""

import os
import sys
import threading

ADDRESS = os.environ["YARD_KAFKA"]
HUB = os.environ["YARD_HUB"]
GROUP = os.environ["YARD_GROUP"]
SESSION = int(os.environ["YARD_SESSION"])
INSTANCE = os.environ.get("YARD_INSTANCE")
PROTOCOL = os.environ.get("YARD_PROTOCOL")
COOPERATIVE = "YARD_COOPERATIVE" in os.environ

ended = threading.Event()


def _await_end():
    while os.read(0, 1):  # not by sys.stdin, whose lock a thread that waits would hold at the end
        pass
    ended.set()


threading.Thread(target=_await_end, daemon=True).start()


def say(*words):
    print(*words, flush=True)


class Story:
    """What a member has, as it was said last."""

    def __init__(self):
        self.had = None

    def has(self, partitions):
        partitions = sorted(partitions)
        if partitions != self.had:
            say("has", *partitions)
            self.had = partitions


def read(records):
    """Says what was read: (partition, offset, value) of each. What is to be committed, by partition."""
    first, after = {}, {}
    for partition, offset, value in records:
        if value.decode() != str(offset):
            raise AssertionError(f"partition {partition} has {value!r:.100} at {offset}")
        first.setdefault(partition, offset)
        after[partition] = offset + 1
    for partition, offset in first.items():
        say("read", partition, offset, after[partition] - 1)
    return after


def committed(after):
    for partition, offset in after.items():
        say("committed", partition, offset)
