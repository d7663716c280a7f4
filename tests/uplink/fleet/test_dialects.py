"""Which MQTT is tried with a fleet's broker that knows less than MQTT 5."""

import asyncio
from collections.abc import Callable

import pytest

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_3_1_1, ConnAck
from tests.support.disk.storage import Store, until
from tests.support.fleet.reconnecting import reconnect_after
from tests.support.fleet.uplinks import connected, running, uplink_settings
from tests.support.ports import free_port

NEW, BRIDGE, OLD = 5, 0x84, MQTT_3_1_1
REFUSED = b"\x20\x02\x00\x01"
"""CONNACK: unacceptable protocol version."""


def _closes(version: int) -> bytes:
    return encode(ConnAck(), MQTT_3_1_1) if version == OLD else b""


def _refuses(version: int) -> bytes:
    return encode(ConnAck(), MQTT_3_1_1) if version == OLD else REFUSED


def _knows_bridges(version: int) -> bytes:
    return REFUSED if version == NEW else encode(ConnAck(), MQTT_3_1_1)


async def _broker(answer: Callable[[int], bytes]) -> tuple[asyncio.Server, int, list[int]]:
    """Return a broker that answers CONNECT so, its port, and the versions it is asked for."""
    versions: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        versions.append((await reader.read(65_536))[8])
        writer.write(answer(versions[-1]))
        while answer(versions[-1]) not in (b"", REFUSED) and await reader.read(65_536):
            pass
        writer.close()

    port = free_port()
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    return server, port, versions


@pytest.fixture(autouse=True)
def reconnect_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    reconnect_after(monkeypatch, 0.05)


@pytest.mark.parametrize(
    ("answer", "down", "tried"),
    [
        (_closes, False, [NEW, NEW, OLD]),
        (_closes, True, [NEW, NEW, BRIDGE, BRIDGE, OLD]),
        (_refuses, False, [NEW, OLD]),
        (_refuses, True, [NEW, BRIDGE, OLD]),
        (_knows_bridges, True, [NEW, BRIDGE]),
    ],
)
async def test_an_older_mqtt_is_tried(
    store: Store, answer: Callable[[int], bytes], down: bool, tried: list[int]
) -> None:
    server, port, versions = await _broker(answer)
    async with running(store, uplink_settings(port, plain=True, down=down)) as up:
        await until(lambda: len(versions) == len(tried), 30)
        await connected(up)
    server.close()
    assert versions == tried


@pytest.mark.parametrize(
    ("mqtt", "down", "answer", "tried", "state"),
    [
        ("5", False, _closes, [NEW] * 4, "offline"),
        ("5", True, _refuses, [NEW], "does not speak MQTT 5; [uplink] mqtt = "),
        ("3.1.1", False, _closes, [OLD], "connected"),
        ("3.1.1", True, _refuses, [BRIDGE, OLD], "connected"),
        ("auto", False, _refuses, [NEW, OLD], "connected"),
    ],
)
async def test_one_mqtt_is_asked_for(
    store: Store,
    mqtt: str,
    down: bool,
    answer: Callable[[int], bytes],
    tried: list[int],
    state: str,
) -> None:
    server, port, versions = await _broker(answer)
    async with running(store, uplink_settings(port, plain=True, mqtt=mqtt, down=down)) as up:
        await until(lambda: len(versions) >= len(tried), 30)
        if state == "connected":
            await connected(up)
        elif "MQTT" in state:
            await until(lambda: state in str(store.counters.values.get("tidegate/uplink/error")))
    server.close()
    assert versions[: len(tried)] == tried
    assert len(versions) == len(tried) or set(versions) == {NEW}


async def test_messages_that_need_mqtt_5_try_nothing_else(store: Store) -> None:
    versions: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        versions.append((await reader.read(65_536))[8])
        writer.close()

    port = free_port()
    server = await asyncio.start_server(serve, "127.0.0.1", port)
    async with running(store, uplink_settings(port)):
        await until(lambda: len(versions) == 4, 30)
    server.close()
    assert set(versions) == {NEW}
