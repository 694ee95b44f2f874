"""How confluent-kafka logs in."""

import time

import task


def settings(**more):
    found = {"bootstrap.servers": task.ADDRESS, **more}
    if task.CA:
        found |= {"security.protocol": "SASL_SSL" if task.USER else "SSL", "ssl.ca.location": task.CA}
    if task.CERTIFICATE:
        found |= {"ssl.certificate.location": task.CERTIFICATE, "ssl.key.location": task.KEY}
    if task.MECHANISM == "OAUTHBEARER":
        found |= {"sasl.mechanism": task.MECHANISM, "oauth_cb": lambda _: (task.TOKEN, time.time() + 3600)}
    elif task.USER:
        found |= {"sasl.mechanism": task.MECHANISM, "sasl.username": task.USER, "sasl.password": task.PASSWORD}
    return found
