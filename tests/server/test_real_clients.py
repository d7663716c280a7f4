"""Mosquitto's clients and paho at each kind of place."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests.support.disk.storage import until
from tests.support.places import Place, open_place
from tests.support.processes.certificates import Authority, Pair
from tests.support.processes.server import HOST
from tests.support.raw_client import SECONDS

V311, V5 = MQTTProtocolVersion.MQTTv311, MQTTProtocolVersion.MQTTv5


@pytest.fixture
async def place(
    request: pytest.FixtureRequest, tmp_path: Path, authority: Authority, server_pair: Pair
) -> AsyncIterator[Place]:
    opened = await open_place(request.param, tmp_path, authority, server_pair)
    yield opened
    await opened.close()


def address(place: Place, authority: Authority) -> list[str]:
    """Return the options with which Mosquitto's clients find the place."""
    settings = place.server.listener.settings
    if settings.path is not None:
        return ["--unix", settings.path]
    options = ["-h", HOST, "-p", str(place.server.port)]
    return [*options, "--cafile", authority.ca_file] if place.kind == "tls" else options


@pytest.mark.uncovered
@pytest.mark.mosquitto_clients
@pytest.mark.parametrize(
    ("place", "version"), [("tcp", "31"), ("tls", "311"), ("unix", "5")], indirect=["place"]
)
async def test_mosquitto_s_clients(place: Place, authority: Authority, version: str) -> None:
    where = [*address(place, authority), "-V", version, "-q", "2", "-t", "a/b"]
    subscriber = await asyncio.create_subprocess_exec(
        "mosquitto_sub", *where, "-i", "s", "-C", "3", "-W", "60", stdout=asyncio.subprocess.PIPE
    )
    await until(lambda: len(place.server.broker.router) == 2)  # beside the test's own
    for number in range(3):
        publisher = await asyncio.create_subprocess_exec(
            "mosquitto_pub", *where, "-i", "p", "-m", f"message {number}"
        )
        assert await publisher.wait() == 0
    output, _ = await subscriber.communicate()
    assert output == b"message 0\nmessage 1\nmessage 2\n"
    await until(lambda: place.server.counters.count("tidegate/connections/open") == 0)


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("place", "version"),
    [("tcp", V311), ("tls", V5), ("websocket", V311), ("wss", V5), ("unix", V5)],
    indirect=["place"],
)
async def test_paho(place: Place, authority: Authority, version: MQTTProtocolVersion) -> None:
    done = await asyncio.to_thread(converse, place, authority, version)
    # in any order: a client has a message of QoS 2 later than what was sent behind it
    assert sorted(done) == sorted(b"%d" % number * 1_000 for number in range(50))
    await until(lambda: place.server.counters.count("tidegate/connections/open") == 0)


def converse(place: Place, authority: Authority, version: MQTTProtocolVersion) -> list[bytes]:
    """Return the payloads of 50 messages that a client sent itself."""
    settings = place.server.listener.settings
    transport = "tcp"
    if settings.websocket:
        transport = "websockets"
    elif settings.path is not None:
        transport = "unix"
    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        "paho",
        protocol=version,
        transport=transport,  # type: ignore[arg-type]  # one of its words
    )
    if settings.tls_certificate is not None:
        client.tls_set_context(ssl.create_default_context(cafile=authority.ca_file))
    subscribed, received = threading.Event(), threading.Event()
    payloads: list[bytes] = []

    def on_message(_client: object, _data: object, message: paho.MQTTMessage) -> None:
        payloads.append(bytes(message.payload))
        if len(payloads) == 50:
            received.set()

    client.on_connect = lambda *_: client.subscribe("a", qos=2) and None
    client.on_subscribe = lambda *_: subscribed.set()
    client.on_message = on_message
    client.connect(settings.path or HOST, place.server.port or 1883)
    client.loop_start()
    assert subscribed.wait(SECONDS), "no SUBACK"
    for number in range(50):
        client.publish("a", b"%d" % number * 1_000, qos=number % 3)
    assert received.wait(SECONDS), f"{len(payloads)} of 50 messages"
    client.disconnect()
    client.loop_stop()
    return payloads
