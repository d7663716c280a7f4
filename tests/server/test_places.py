"""The same conversations over TCP, TLS, WebSocket, both, and a Unix socket."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from websockets.exceptions import InvalidMessage

from gateway.broker.settings import BrokerSettings
from gateway.config.settings import ListenerConfig
from gateway.mqtt.encode import encode
from gateway.mqtt.packets import (
    MQTT_3_1_1,
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    PingReq,
    PingResp,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    Will,
)
from gateway.mqtt.reason_codes import ReasonCode
from gateway.server import transport as transport_module
from tests.support.certificates import Authority, Pair
from tests.support.clocks import ManualClock
from tests.support.places import KINDS, Place, open_place
from tests.support.raw_client import RawClient
from tests.support.storage import until

Open = Callable[..., Awaitable[Place]]

VERSIONS = (MQTT_3_1_1, MQTT_5)

LARGE = 3 * 1024 * 1024


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "tcp6":
        with socket.socket(socket.AF_INET6) as probe:
            try:
                probe.bind(("::1", 0))
            except OSError:
                pytest.skip("this machine has no IPv6; get it with: sysctl net.ipv6.conf.lo")
    return str(request.param)


@pytest.fixture
async def open_at(
    kind: str, tmp_path: Path, authority: Authority, server_pair: Pair
) -> AsyncIterator[Open]:
    """Give a function that opens a place of this kind, with other settings if need be."""
    places: list[Place] = []

    async def open_at(**settings: object) -> Place:
        opened = await open_place(kind, tmp_path, authority, server_pair, **settings)  # type: ignore[arg-type]  # by name
        places.append(opened)
        return opened

    yield open_at
    for each in places:
        await each.close()


@pytest.fixture
async def place(open_at: Open) -> Place:
    return await open_at()


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_qos_both_ways(place: Place, version: int) -> None:
    subscriber = await place.connect("s", version)
    publisher = await place.connect("p", version)
    await subscriber.subscribe("a/+", 2)
    await publisher.send(Publish("a/0", b"0"))
    assert await subscriber.receive() == Publish("a/0", b"0")
    await publisher.send(Publish("a/1", b"1", 1, packet_id=7))
    assert await publisher.receive() == PubAck(7)
    message = await subscriber.receive()
    assert message == Publish("a/1", b"1", 1, packet_id=1)
    await subscriber.send(PubAck(1))
    await publisher.send(Publish("a/2", b"2", 2, packet_id=8))
    assert await publisher.receive() == PubRec(8)
    await publisher.send(PubRel(8))
    assert await publisher.receive() == PubComp(8)
    assert isinstance(await subscriber.receive(), Publish)


async def test_a_packet_a_byte_at_a_time(place: Place) -> None:
    client = await place.open()
    for byte in encode(Connect("c"), MQTT_5):
        await client.send_bytes(bytes([byte]))
    assert isinstance(await client.receive(), ConnAck)
    for byte in encode(PingReq(), MQTT_5):
        await client.send_bytes(bytes([byte]))
    assert await client.receive() == PingResp()


async def test_many_packets_at_once(place: Place) -> None:
    client = await place.open()
    await client.send(Connect("c"), *[PingReq()] * 2_000)
    assert isinstance(await client.receive(), ConnAck)
    for _ in range(2_000):
        assert await client.receive() == PingResp()


async def test_a_large_message(place: Place) -> None:
    payload = bytes(range(256)) * (LARGE // 256)
    client = await place.connect()
    await client.subscribe("a")
    sending = asyncio.create_task(client.send(Publish("a", payload)))
    assert await client.receive() == Publish("a", payload)
    await sending


async def test_a_will_is_published_when_the_connection_is_lost(place: Place) -> None:
    watcher = await place.connect("watcher")
    await watcher.subscribe("wills/#")
    client = await place.connect("c", will=Will("wills/c", b"gone"))
    await client.close()
    assert await watcher.receive() == Publish("wills/c", b"gone")
    leaving = await place.connect("c", will=Will("wills/c", b"gone"))
    await leaving.send(Disconnect())
    assert not await leaving.until_closed()
    assert not await watcher.waiting()
    await until(lambda: list(place.server.broker.clients) == ["watcher"])


async def test_a_client_is_told_why_its_connection_ends(place: Place) -> None:
    client = await place.connect("c")
    await client.send_bytes(b"\x00\x00")
    (disconnect,) = await client.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.MALFORMED_PACKET
    first = await place.connect("c")
    await place.connect("c")
    (disconnect,) = await first.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.SESSION_TAKEN_OVER


async def test_a_client_that_is_still_sending_is_told_too(place: Place) -> None:
    """The socket is not reset while its peer sends what nobody will read."""
    client = await place.connect("c")
    too_large = encode(Publish("a", bytes(5 * 1024 * 1024)), MQTT_5)
    flood = asyncio.create_task(in_pieces(client, too_large))
    (disconnect,) = await client.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.PACKET_TOO_LARGE
    await asyncio.gather(client.close(), flood, return_exceptions=True)


async def in_pieces(client: RawClient, data: bytes) -> None:
    for start in range(0, len(data), 65_536):
        await client.send_bytes(data[start : start + 65_536])


async def test_a_session_ends_with_its_disconnect_not_with_its_socket(place: Place) -> None:
    """A peer that does not close its side holds up nothing but the socket."""
    watcher = await place.connect("watcher")
    await watcher.subscribe("wills/#")
    client = await place.connect("c", will=Will("wills/c", b"gone"))
    await client.send(Disconnect(ReasonCode.DISCONNECT_WITH_WILL_MESSAGE))
    assert await watcher.receive() == Publish("wills/c", b"gone")
    assert list(place.server.broker.sessions) == ["watcher"]


async def test_clients_are_told_of_a_stop(place: Place) -> None:
    client = await place.connect()
    silent = await place.open()
    stop = asyncio.create_task(place.server.listener.close())
    (disconnect,) = await client.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.SERVER_SHUTTING_DOWN
    assert not await silent.until_closed()
    await stop
    assert not place.server.broker.connections


# --- limits ---------------------------------------------------------------------------------


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


async def test_a_packet_that_trickles_is_no_sign_of_life(open_at: Open) -> None:
    place = await open_at()
    client = await place.connect("c", keep_alive=1)
    dribble = asyncio.create_task(trickle(client, encode(Publish("a", bytes(100)), MQTT_5)))
    (disconnect,) = await client.until_closed()
    assert isinstance(disconnect, Disconnect)
    assert disconnect.reason_code == ReasonCode.KEEP_ALIVE_TIMEOUT
    dribble.cancel()


def with_limits(**limits: object) -> Callable[[ListenerConfig], ListenerConfig]:
    return lambda listener: replace(listener, **limits)  # type: ignore[arg-type]  # by name


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
    connack = await third.receive()
    assert isinstance(connack, ConnAck)
    assert connack.reason_code == code
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


async def test_the_identity_of_publishers_at_one_listener(open_at: Open) -> None:
    place = await open_at(change=with_limits(where_identity=False))
    client = await place.connect("c")
    await client.subscribe("a")
    arrival = place.server.broker.clients["c"].arrival
    assert not arrival.where_identity


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
        publish = await reader.receive()
        assert isinstance(publish, Publish)
        assert publish.payload.startswith(b"%07d" % number)
    connection = place.server.broker.clients["deaf"].connection
    assert connection.congested
    clock.step(2)
    place.server.look_at_the_clock()
    await until(lambda: "deaf" not in place.server.broker.clients)
    await until(lambda: place.server.counters.count("tidegate/connections/open") == 1)
    assert place.server.counters.count("tidegate/connections/aborted") == 1
