"""A generic AMQP 1.0 client, Qpid Proton, that knows nothing of Event Hubs.

It logs in by SASL PLAIN with a policy's name and key.
"""

import os
import sys

from proton import ConnectionException, Disposition, Message, SSLDomain
from proton.reactor import AtLeastOnce, Selector
from proton.utils import BlockingConnection, LinkDetached, SendException

URL = os.environ["YARD_URL"]
USER, PASSWORD = os.environ["YARD_USER"], os.environ["YARD_PASSWORD"]
HUB = os.environ["YARD_HUB"]
LIMIT = 60


def connect(user=USER, password=PASSWORD):
    more = {}
    if os.environ.get("YARD_CA"):
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_trusted_ca_db(os.environ["YARD_CA"])
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        more.update(ssl_domain=domain, virtual_host="localhost")  # it knows no addresses in certificates
    return BlockingConnection(
        URL, timeout=LIMIT, user=user, password=password, allowed_mechs="PLAIN", allow_insecure_mechs=True, **more
    )


def proved(text):
    print("proved:", text, flush=True)


def same(got, want, what):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def receiver(connection, position="amqp.annotation.x-opt-offset > '-1'", partition="1"):
    return connection.create_receiver(
        f"{HUB}/ConsumerGroups/$Default/Partitions/{partition}", credit=100, options=Selector(position, "apache.org:selector-filter:string")
    )


def send_and_receive():
    connection = connect()
    sender = connection.create_sender(f"{HUB}/Partitions/1", options=AtLeastOnce())
    for i in range(50):
        message = Message(
            body={"number": i}, id=i, subject="from proton", durable=True, priority=7,
            properties={"text": "value", "number": i}, content_type="application/map",
        )
        delivery = sender.send(message)
        same(delivery.remote_state, Disposition.ACCEPTED, "outcome")
        same(delivery.settled, True, "settled by the yard")
    sender.send(Message(body=b"x" * 300_000))  # in many frames
    incoming = receiver(connection)
    for i in range(50):
        message = incoming.receive(timeout=LIMIT)
        same((message.body, message.id, message.subject), ({"number": i}, i, "from proton"), f"message {i}")
        same(message.properties, {"text": "value", "number": i}, "properties")
        same((message.durable, message.priority, message.content_type), (True, 7, "application/map"), "header, properties")
        annotations = {str(key): value for key, value in message.annotations.items()}
        same(annotations["x-opt-sequence-number"], i, "sequence number")
        same(isinstance(annotations["x-opt-offset"], str), True, "offset is text")
    same(len(incoming.receive(timeout=LIMIT).body), 300_000, "large body")
    incoming.close()
    incoming = receiver(connection, "amqp.annotation.x-opt-sequence-number >= '49'")
    same(incoming.receive(timeout=LIMIT).body, {"number": 49}, "from a sequence number")
    incoming.close()
    connection.close()
    proved("Proton logs in by PLAIN, sends and receives, also a message of many frames, and filters by position")


def refusals():
    try:
        connect(password="wrong").close()
    except ConnectionException as error:
        proved(f"a wrong password is refused: {str(error)[:80]}")
    else:
        raise AssertionError("a wrong password was taken")
    connection = connect()
    try:
        connection.create_sender("no-such-hub")
    except LinkDetached as error:
        same(error.condition, "amqp:not-found", "condition")
        proved("an unknown hub is amqp:not-found")
    else:
        raise AssertionError("a sender to an unknown hub was let in")
    sender = connection.create_sender(HUB)
    try:
        sender.send(Message(body=b"x" * 1_200_000))
    except SendException as error:
        same(error.state, Disposition.REJECTED, "outcome of a message over the limit")
    else:
        raise AssertionError("a message over the limit was taken")
    same(sender.send(Message(body=b"next")).remote_state, Disposition.ACCEPTED, "outcome of the next")
    connection.close()
    proved("a message over the limit is rejected, and the link goes on")


def only_the_right():
    connection = connect(os.environ["YARD_LISTENER_USER"], os.environ["YARD_LISTENER_PASSWORD"])
    try:
        connection.create_sender(HUB)
    except LinkDetached as error:
        same(error.condition, "amqp:unauthorized-access", "condition")
    else:
        raise AssertionError("Listen sufficed to send")
    receiver(connection).receive(timeout=LIMIT)
    connection.close()
    proved("a policy's rights hold for PLAIN, too")


for part in (send_and_receive, refusals, only_the_right):
    print("---", part.__name__, flush=True)
    part()
sys.exit(0)
