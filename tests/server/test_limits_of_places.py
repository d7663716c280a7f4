"""What a listener sets bounds to, at each kind of place."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from websockets.exceptions import InvalidMessage

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import MQTT_3_1_1, MQTT_5, ConnAck, Connect, Disconnect, Publish
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server import transport as transport_module
from gateway.settings.broker import BrokerSettings
from gateway.settings.listener import ListenerSettings
from tests.support.clocks import ManualClock
from tests.support.disk.storage import until
from tests.support.places import Open
from tests.support.raw_client import RawClient


@pytest.fixture(params=("tcp", "wss", "unix"))
def kind(request: pytest.FixtureRequest) -> str:
    """Give kinds of places that have each way to the broker between them."""
    return str(request.param)


@pytest.mark.uncovered
async def test_connect_is_awaited_no_longer_than_connect_timeout(open_at: Open) -> None:
    clock = ManualClock()
    place = await open_at(settings=BrokerSettings(connect_timeout=10), clock=clock)
    healthy = await place.connect("healthy")
    silent, slow = await place.open(), await place.open()
    dribble = asyncio.create_task(trickle(slow, encode(Connect("x" * 200), MQTT_5)))
    await until(lambda: len(place.server.broker.connections) == 3)
    clock.step(9.9)
    place.server.look_at_the_clock()
    assert len(place.server.broker.connections) == 3
    clock.step(0.2)
    place.server.look_at_the_clock()
    assert not await silent.until_closed()
    assert not await slow.until_closed()
    dribble.cancel()
    assert not await healthy.waiting()
    assert place.server.counters.count("tidegate/connections/connect_timeouts") == 2


async def trickle(client: RawClient, data: bytes) -> None:
    for byte in data:
        try:
            await client.send_bytes(bytes([byte]))
        except ConnectionError:
            return
        await asyncio.sleep(0.1)


def with_limits(**limits: object) -> Callable[[ListenerSettings], ListenerSettings]:
    return lambda listener: replace(listener, **limits)  # type: ignore[arg-type]  # by name


@pytest.mark.uncovered
@pytest.mark.parametrize(
    ("version", "code"),
    [(MQTT_3_1_1, ReasonCode.SERVER_UNAVAILABLE), (MQTT_5, ReasonCode.QUOTA_EXCEEDED)],
)
async def test_who_finds_the_listener_full_is_told(
    open_at: Open, version: int, code: ReasonCode
) -> None:
    place = await open_at(change=with_limits(maximum_connections=2))
    first, second = await place.connect("1"), await place.connect("2")
    third = await place.open(version)
    await third.send(Connect("3", version))
    assert (await third.take(ConnAck)).reason_code == code
    assert not await third.until_closed()
    assert not await second.waiting()
    assert place.server.counters.count("tidegate/connections/over_maximum") == 1
    await first.close()
    await third.close()
    await until(lambda: place.server.counters.count("tidegate/connections/open") == 1)
    await place.connect("4")


async def test_who_comes_too_fast_is_closed(open_at: Open) -> None:
    place = await open_at(change=with_limits(connection_rate=0.01, connection_burst=2))
    first, second = await place.connect("1"), await place.connect("2")
    with pytest.raises((ConnectionError, EOFError, InvalidMessage)):
        await place.connect("3")
    for client in (first, second):
        assert not await client.waiting()
    assert place.server.counters.count("tidegate/connections/over_rate") == 1
    assert place.server.counters.count("tidegate/connections/tls_refused") == 0


@pytest.mark.uncovered
async def test_a_packet_size_of_one_listener(open_at: Open) -> None:
    place = await open_at(change=with_limits(maximum_packet_size=1_024))
    client = await place.connect()
    assert client.connack.properties.maximum_packet_size == 1_024
    await client.send(*[Publish("a", bytes(1_000))] * 60)  # several of them in one frame
    assert not await client.waiting()
    await client.send(Publish("a", bytes(1_024)))
    (disconnect,) = await client.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.PACKET_TOO_LARGE


@pytest.mark.uncovered
async def test_a_keep_alive_of_one_listener(open_at: Open) -> None:
    place = await open_at(change=with_limits(maximum_keep_alive=1))
    client = await place.connect("c", keep_alive=600)
    assert client.connack.properties.server_keep_alive == 1
    (disconnect,) = await client.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.KEEP_ALIVE_TIMEOUT


async def test_the_durability_class_of_one_listener(open_at: Open) -> None:
    place = await open_at(change=with_limits(durability="batch(50)"))
    await place.connect("c")
    session = place.server.broker.sessions["c"]
    assert session.durability_class.commit_within == 0.05


@pytest.mark.uncovered
async def test_the_identity_of_publishers_at_one_listener(open_at: Open) -> None:
    place = await open_at(change=with_limits(where_identity=False))
    client = await place.connect("c")
    await client.subscribe("a")
    info = place.server.broker.clients["c"].info
    assert not info.where_identity


@pytest.mark.uncovered
async def test_a_peer_that_neither_reads_nor_closes_is_cut_off(
    open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "CLOSE_TIMEOUT", 0.2)
    clock = ManualClock()
    place = await open_at(clock=clock)
    reader = await place.connect("reader")
    await reader.subscribe("a")
    deaf = await place.connect("deaf", keep_alive=1)
    await deaf.subscribe("a")
    for number in range(300):
        await reader.send(Publish("a", b"%07d" % number * 10_000))
        publish = await reader.take(Publish)
        assert publish.payload.startswith(b"%07d" % number)
    connection = place.server.broker.clients["deaf"].connection
    assert connection.congested
    clock.step(2)
    place.server.look_at_the_clock()
    await until(lambda: "deaf" not in place.server.broker.clients)
    await until(lambda: place.server.counters.count("tidegate/connections/open") == 1)
    assert place.server.counters.count("tidegate/connections/aborted") == 1
