"""What the scripts share: what to send, and the books of what has come back."""

import os
import time

ADDRESS = os.environ["YARD_KAFKA"]
HUB = os.environ["YARD_HUB"]
GROUP = os.environ["YARD_GROUP"]
PROTOCOL = os.environ.get("YARD_PROTOCOL")  # of the group; none: the classic one
CODECS = os.environ["YARD_CODECS"].split()
EACH = int(os.environ["YARD_EACH"])
LARGE = int(os.environ["YARD_LARGE"])
PLANTED = os.environ["YARD_PLANTED"]
TRANSACTIONS = int(os.environ.get("YARD_TRANSACTIONS", 0))  # to write; those with an even number are committed
SIZE = int(os.environ.get("YARD_SIZE", 0))  # records of each
USER = os.environ.get("YARD_USER")
PASSWORD = os.environ.get("YARD_PASSWORD")
CA = os.environ.get("YARD_CA")
MECHANISM = os.environ.get("YARD_MECHANISM", "PLAIN")
TOKEN = os.environ.get("YARD_TOKEN")
CERTIFICATE = os.environ.get("YARD_CERTIFICATE")
KEY = os.environ.get("YARD_KEY")
PARTITIONS = 4
LIMIT = 60  # seconds to wait for what must come; far more than it takes


def records(codec):
    """Keys and values to send with a compression."""
    for i in range(EACH):
        yield f"key-{i}", f"{codec}-{i}"
    if codec == "none":
        yield "large", "x" * LARGE


class Books:
    """What is still to come; each record comes once, with its key and its header."""

    def __init__(self):
        self.missing = {value: (key, codec) for codec in CODECS for key, value in records(codec)}
        self.missing[PLANTED] = (None, None)
        self.end = time.monotonic() + LIMIT

    def open(self):
        if time.monotonic() > self.end:
            raise AssertionError(f"{len(self.missing)} did not come, among them {sorted(self.missing)[:5]!r:.200}")
        return bool(self.missing)

    def take(self, key, value, headers):
        text = value.decode()
        want = self.missing.pop(text, None)
        if want is None:
            raise AssertionError(f"{text!r:.100} came that was not sent, or came twice")
        if text == PLANTED:
            return
        found = (key.decode(), dict(headers or ())["codec"].decode())
        if found != want:
            raise AssertionError(f"{text!r:.100} came with {found}, want {want}")


class Committed:
    """What counts of the transactions, and is still to come; each record comes once."""

    def __init__(self):
        self.missing = {f"{n}-{i}" for n in range(0, TRANSACTIONS, 2) for i in range(SIZE)}
        self.end = time.monotonic() + LIMIT

    def open(self):
        if time.monotonic() > self.end:
            raise AssertionError(f"{len(self.missing)} did not come, among them {sorted(self.missing)[:5]!r:.200}")
        return bool(self.missing)

    def take(self, value):
        if value.decode() not in self.missing:
            raise AssertionError(f"{value!r:.100} came that does not count, or came twice")
        self.missing.remove(value.decode())


def proved(text):
    print("proved:", text, flush=True)
