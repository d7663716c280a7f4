"""Something that a command asks of a running gateway: a message below `$CONTROL/tidegate/`."""

import threading
from typing import Any

import paho.mqtt.client as paho

from gateway.cli.local_broker import LocalBroker
from gateway.errors import TidegateError

CONTROL = "$CONTROL/tidegate/"
PATIENCE = 10.0
"""Seconds to wait for the gateway's answer."""


def ask_gateway(broker: LocalBroker, part: str, payload: str, refused: str) -> None:
    """Publish a request and wait until it is taken; raise TidegateError with `refused` and why."""
    answered = threading.Event()
    problems = []

    def on_connect(client: paho.Client, _data: Any, _flags: Any, code: Any, _more: Any) -> None:
        if code.is_failure:
            on_publish(client, _data, 0, code, _more)
        else:
            client.publish(CONTROL + part, payload, qos=1)

    def on_publish(_client: paho.Client, _data: Any, _mid: int, code: Any, _more: Any) -> None:
        if code.is_failure:
            problems.append(str(code))
        answered.set()

    client = broker.connect()
    client.on_connect = on_connect
    client.on_publish = on_publish
    client.loop_start()
    if not answered.wait(PATIENCE):
        problems.append(f"no answer within {PATIENCE:.0f} s")
    client.disconnect()
    client.loop_stop()
    if problems:
        raise TidegateError(f"the gateway at {broker.name} {refused}: {problems[0]}")
