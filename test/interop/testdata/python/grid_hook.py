"""A webhook for the grid's scripts: it answers the handshakes and keeps what comes."""

import base64
import http.server
import json
import os
import queue
import threading
import urllib.request

import yard

SERVER = os.environ["YARD_SERVER"]
TOPICS = json.loads(os.environ["YARD_TOPICS"])


class Hook(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.daemon_threads = True
        self.got = queue.Queue()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/hook"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take(self):
        """The next delivery: its headers and its body."""
        return self.got.get(timeout=yard.LIMIT)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_OPTIONS(self):
        self.answer(b"", [("WebHook-Allowed-Origin", self.headers["WebHook-Request-Origin"])])

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["aeg-event-type"] == "SubscriptionValidation":
            code = json.loads(body)[0]["data"]["validationCode"]
            self.answer(json.dumps({"validationResponse": code}).encode(), [])
            return
        self.answer(b"", [])
        self.server.got.put((self.headers, body))

    def answer(self, body, headers):
        self.send_response(200)
        for name, value in [("Content-Length", str(len(body))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def subscribe(topic, name, properties):
    """Makes a subscription by the JSON of Azure's resource manager."""
    found = yard.parts(yard.CONNECTION)
    login = base64.b64encode(f"{found['SharedAccessKeyName']}:{found['SharedAccessKey']}".encode()).decode()
    request = urllib.request.Request(
        f"{SERVER}/topics/{topic}/eventSubscriptions/{name}",
        method="PUT",
        data=json.dumps({"properties": properties}).encode(),
        headers={"Authorization": "Basic " + login, "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        made = json.load(answer)
    yard.same(made["properties"]["provisioningState"], "Succeeded", "the subscription's state")


def webhook(topic, name, **more):
    """A webhook that is subscribed to a topic."""
    hook = Hook()
    subscribe(topic, name, {"destination": {"endpointType": "WebHook", "properties": {"endpointUrl": hook.url}}, **more})
    return hook


def pull(topic, name):
    subscribe(
        topic,
        name,
        {
            "deliveryConfiguration": {"deliveryMode": "Queue", "queue": {"receiveLockDurationInSeconds": 60, "maxDeliveryCount": 5}},
            "eventDeliverySchema": "CloudEventSchemaV1_0",
        },
    )
