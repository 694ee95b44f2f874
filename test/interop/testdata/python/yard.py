"""What the scripts share: where the yard is, and how they say what they proved."""

import base64
import hashlib
import hmac
import os
import sys
import time
import traceback
import urllib.parse

# Seconds to wait for what must come; far more than any of it takes.
LIMIT = 60
START = time.monotonic()

CONNECTION = os.environ["YARD_CONNECTION"]
LISTENER = os.environ["YARD_LISTENER"]
SENDER = os.environ["YARD_SENDER"]
PARTITIONS = 4

# Keys and the partition of four that Azure's hash puts them in.
KEYS = {"7": "3", "131": "2", "FWfAT": "1", "$0cb": "1", "!c*_!I@1^c": "0", "abcdefghijkl": "1", "日本語": "1"}


def options():
    """Arguments that every client of the run gets."""
    from azure.eventhub import TransportType

    # With retries the library keeps some refusals to itself and asks for ever.
    found = {"retry_total": 0, "logging_enable": bool(os.environ.get("YARD_TRACE"))}
    if os.environ.get("YARD_WEBSOCKET"):
        found["transport_type"] = TransportType.AmqpOverWebsocket
    if os.environ.get("YARD_ENDPOINT"):
        found["custom_endpoint_address"] = os.environ["YARD_ENDPOINT"]
    if os.environ.get("YARD_CA"):
        found["connection_verify"] = os.environ["YARD_CA"]
    return found


def parts(connection):
    return dict(part.split("=", 1) for part in connection.split(";") if part)


def hub():
    return parts(CONNECTION)["EntityPath"]


def changed(connection, **changes):
    """The connection string with some of its parts changed; None leaves one out."""
    found = parts(connection) | changes
    return ";".join(f"{key}={value}" for key, value in found.items() if value is not None)


def signature(connection, seconds=600):
    """A shared-access signature for the hub, as anybody would make it by hand."""
    found = parts(connection)
    resource = urllib.parse.quote_plus(found["Endpoint"].rstrip("/") + "/" + found["EntityPath"])
    until = str(int(time.time()) + seconds)
    mac = hmac.new(found["SharedAccessKey"].encode(), (resource + "\n" + until).encode(), hashlib.sha256)
    text = urllib.parse.quote_plus(base64.b64encode(mac.digest()))
    return f"SharedAccessSignature sr={resource}&sig={text}&se={until}&skn={found['SharedAccessKeyName']}"


def proved(text):
    print("proved:", text, flush=True)


def same(got, want, what):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def holds(text, part):
    if part not in str(text):
        raise AssertionError(f"{part!r} is not in {text!r}")


def chosen(parts):
    """The parts named on the command line, in their order; all of them if none is."""
    for part in parts:
        if len(sys.argv) == 1 or part.__name__ in sys.argv[1:]:
            print(f"--- {part.__name__} ({time.monotonic() - START:.1f} s)", flush=True)
            yield part


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def finish(code):
    """Ends the script at once, threads of the library or not."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run(main):
    if os.environ.get("YARD_TRACE"):
        import logging

        logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format="%(asctime)s %(threadName)s %(message)s")
    try:
        main()
    except BaseException:
        traceback.print_exc()
        finish(1)
    finish(0)
