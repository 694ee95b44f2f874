"""The official Event Grid library for Python, blocking and asyncio: it publishes both schemas and receives
from namespaces; what webhooks get is read with its own classes.  # G9, G11, G12"""

import asyncio
import datetime
import json

import azure.eventgrid
import azure.eventgrid.aio
from azure.core.credentials import AccessToken, AzureKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.core.messaging import CloudEvent
from azure.eventgrid import EventGridEvent, generate_sas

import yard
from grid_hook import TOPICS, webhook, pull
from yard import proved, same

JWT = "eyJhbGciOiJub25lIn0.eyJhdWQiOiJodHRwczovL2V2ZW50Z3JpZC5henVyZS5uZXQifQ."
SOON = datetime.timedelta(hours=1)


class Token:
    """A credential of Azure Identity's kind, for both forms of the library."""

    def __init__(self, asynchronous):
        self.get_token = self._later if asynchronous else self._now

    def _now(self, *scopes, **options):
        same(scopes, ("https://eventgrid.azure.net/.default",), "the scope")
        return AccessToken(JWT, int(datetime.datetime.now().timestamp()) + 3600)

    async def _later(self, *scopes, **options):
        return self._now(*scopes, **options)


class Blocking:
    """Runs the library's blocking form behind the face of the other."""

    name, clients = "blocking", azure.eventgrid
    token = Token(False)

    @staticmethod
    async def do(function, *args, **named):
        return function(*args, **named)

    @staticmethod
    async def close(client):
        client.close()


class Asyncio:
    name, clients = "asyncio", azure.eventgrid.aio
    token = Token(True)

    @staticmethod
    async def do(function, *args, **named):
        return await function(*args, **named)

    @staticmethod
    async def close(client):
        await client.close()


def credentials(form, topic):
    at, keys = topic["secureEndpoint"], topic["keys"]
    until = datetime.datetime.now(datetime.timezone.utc) + SOON
    return {
        "key1": AzureKeyCredential(keys["key1"]),
        "key2": AzureKeyCredential(keys["key2"]),
        "signature": AzureSasCredential(generate_sas(at, keys["key1"], until)),
        "token": form.token,
    }


async def publish(form, topic, credential, events, at="secureEndpoint"):
    client = form.clients.EventGridPublisherClient(topic[at], credential)
    try:
        await form.do(client.send, events)
    finally:
        await form.close(client)


async def grid_events(form):
    topic = TOPICS["grid"]
    hook = webhook(topic["name"], form.name + "-grid", filter={"subjectBeginsWith": form.name})
    sent = {}
    for shown, credential in credentials(form, topic).items():
        event = EventGridEvent(form.name + "/" + shown, "order.placed", {"total": 42, "text": "größe 日本"}, "1.0")
        await publish(form, topic, credential, event)
        sent[str(event.id)] = event
    plain = EventGridEvent(form.name + "/plain", "order.placed", None, "1.0")
    await publish(form, topic, AzureKeyCredential(topic["keys"]["key1"]), [plain], at="endpoint")
    sent[str(plain.id)] = plain
    for _ in range(len(sent)):
        headers, body = hook.take()
        (item,) = json.loads(body)
        back, event = EventGridEvent.from_json(json.dumps(item)), sent.pop(item["id"])
        same((back.subject, back.event_type, back.data, back.data_version), (event.subject, event.event_type, event.data, event.data_version), "the event")
        same((back.topic, back.metadata_version), (topic["resource"], "1"), "what was added")
        same(headers["aeg-event-type"], "Notification", "aeg-event-type")
    proved(f"{form.name}: Event Grid's schema by both keys, a signature and a token, and without TLS")


async def cloud_events(form):
    topic = TOPICS["clouds"]
    hook = webhook(topic["name"], form.name + "-clouds", filter={"includedEventTypes": [form.name]})
    sent = {}
    for shown, credential in credentials(form, topic).items():
        events = [
            CloudEvent("/source", form.name, data={"by": shown}, subject="a", extensions={"mine": "kept"}, dataschema="https://example.test/s"),
            CloudEvent("/source", form.name, data=b"\xff\x00", datacontenttype="image/png"),
            CloudEvent("/source", form.name),
        ]
        await publish(form, topic, credential, events)
        sent |= {str(event.id): event for event in events}
    for _ in range(len(sent)):
        headers, body = hook.take()
        back = CloudEvent.from_json(body)
        event = sent.pop(back.id)
        for name in ("source", "type", "time", "data", "subject", "datacontenttype", "dataschema"):
            same(getattr(back, name), getattr(event, name), name)
        same((back.extensions or {}).get("mine"), (event.extensions or {}).get("mine"), "an attribute of one's own")
        same(headers["Content-Type"], "application/cloudevents+json; charset=utf-8", "the content type")
    proved(f"{form.name}: CloudEvents with objects, bytes and nothing for data")


async def refusals(form):
    topic, other = TOPICS["grid"], TOPICS["clouds"]
    event = EventGridEvent("s", "t", {}, "1")
    late = datetime.datetime.now(datetime.timezone.utc) - SOON
    for what, credential in {
        "the key of another topic": AzureKeyCredential(other["keys"]["key1"]),
        "a signature that is over": AzureSasCredential(generate_sas(topic["secureEndpoint"], topic["keys"]["key1"], late)),
        "a signature for another topic": AzureSasCredential(generate_sas(other["secureEndpoint"], topic["keys"]["key1"], late + 2 * SOON)),
    }.items():
        try:
            await publish(form, topic, credential, event)
        except ClientAuthenticationError as refused:
            same(refused.status_code, 401, what)
        else:
            raise AssertionError(what + " was let in")
    good = AzureKeyCredential(topic["keys"]["key1"])
    for what, status, events, kind in (
        ("too much", 413, EventGridEvent("s", "t", "x" * (1 << 20) + "y" * 4096, "1"), HttpResponseError),
        ("a CloudEvent for a topic of another schema", 415, CloudEvent("s", "t"), HttpResponseError),
    ):
        try:
            await publish(form, topic, good, events)
        except kind as refused:
            same(refused.status_code, status, what)
        else:
            raise AssertionError(what + " was taken")
    try:
        await publish(form, topic | {"secureEndpoint": topic["secureEndpoint"].replace(topic["name"], "nothing-here")}, good, event)
    except ClientAuthenticationError as refused:  # as for any other name: topics cannot be probed
        same(refused.status_code, 401, "a topic that is not there")
    else:
        raise AssertionError("a topic that is not there took an event")
    proved(f"{form.name}: refusals are of the kinds that the library has for them")


async def namespaces(form):
    topic = TOPICS["pulled-" + form.name]
    at = topic["secureEndpoint"].split("/topics/")[0]
    pull(topic["name"], "worker")
    key = AzureKeyCredential(topic["keys"]["key1"])
    publisher = form.clients.EventGridPublisherClient(at, key, namespace_topic=topic["name"])
    consumer = form.clients.EventGridConsumerClient(at, key, namespace_topic=topic["name"], subscription="worker")
    by_token = form.clients.EventGridConsumerClient(at, form.token, namespace_topic=topic["name"], subscription="worker")
    await form.do(publisher.send, CloudEvent("/source", "acknowledged", data={"n": 1}, extensions={"mine": "kept"}))
    await form.do(publisher.send, [CloudEvent("/source", kind, data=b"\xff") for kind in ("released", "rejected", "kept")])
    held = {}
    while len(held) < 4:
        received = await form.do(consumer.receive, max_events=10, max_wait_time=10)
        if not received:
            raise AssertionError(f"nothing came within ten seconds; so far {list(held)}")
        for detail in received:
            same(detail.broker_properties.delivery_count, 1, "the delivery count")
            held[detail.event.type] = detail
    same((held["acknowledged"].event.data, held["acknowledged"].event.extensions), ({"n": 1}, {"mine": "kept"}), "the event")
    same(held["kept"].event.data, b"\xff", "the bytes")
    tokens = {kind: [detail.broker_properties.lock_token] for kind, detail in held.items()}
    for kind, work, more in (
        ("kept", consumer.renew_locks, {}),
        ("acknowledged", consumer.acknowledge, {}),
        ("released", consumer.release, {"release_delay": 0}),
        ("rejected", consumer.reject, {}),
    ):
        done = await form.do(work, lock_tokens=tokens[kind] + ["no token of ours"], **more)
        same(done.succeeded_lock_tokens, tokens[kind], kind)
        (failed,) = done.failed_lock_tokens
        same(failed.lock_token, "no token of ours", kind)
    (again,) = await form.do(by_token.receive, max_events=10, max_wait_time=10)
    same((again.event.type, again.broker_properties.delivery_count), ("released", 2), "what came again")
    same((await form.do(by_token.acknowledge, lock_tokens=[again.broker_properties.lock_token])).failed_lock_tokens, [], "what failed")
    for client in (publisher, consumer, by_token):
        await form.close(client)
    proved(f"{form.name}: a namespace's topic: publish, receive, renew, acknowledge, release, reject")


def parts_of(form):
    async def part():
        for step in (grid_events, cloud_events, refusals, namespaces):
            await step(form)

    part.__name__ = form.name
    return part


def main():
    for part in yard.chosen([parts_of(Blocking), parts_of(Asyncio)]):
        asyncio.run(part())


yard.run(main)
