"""The same conversations over TCP, TLS, WebSocket, both, and a Unix socket."""

import asyncio

import pytest

from gateway.mqtt.codec.packet_codec import encode
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
from tests.support.disk.storage import until
from tests.support.places import Place
from tests.support.raw_client import RawClient

VERSIONS = (MQTT_3_1_1, MQTT_5)

LARGE = 3 * 1024 * 1024


@pytest.mark.uncovered
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


@pytest.mark.uncovered
async def test_a_packet_a_byte_at_a_time(place: Place) -> None:
    client = await place.open()
    for byte in encode(Connect("c"), MQTT_5):
        await client.send_bytes(bytes([byte]))
    assert isinstance(await client.receive(), ConnAck)
    for byte in encode(PingReq(), MQTT_5):
        await client.send_bytes(bytes([byte]))
    assert await client.receive() == PingResp()


@pytest.mark.uncovered
async def test_many_packets_at_once(place: Place) -> None:
    client = await place.open()
    await client.send(Connect("c"), *[PingReq()] * 2_000)
    assert isinstance(await client.receive(), ConnAck)
    for _ in range(2_000):
        assert await client.receive() == PingResp()


@pytest.mark.uncovered
async def test_a_large_message(place: Place) -> None:
    payload = bytes(range(256)) * (LARGE // 256)
    client = await place.connect()
    await client.subscribe("a")
    sending = asyncio.create_task(client.send(Publish("a", payload)))
    assert await client.receive() == Publish("a", payload)
    await sending


@pytest.mark.uncovered
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


@pytest.mark.uncovered
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


@pytest.mark.uncovered
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


@pytest.mark.uncovered
async def test_a_session_ends_with_its_disconnect_not_with_its_socket(place: Place) -> None:
    """A peer that does not close its side holds up nothing but the socket."""
    watcher = await place.connect("watcher")
    await watcher.subscribe("wills/#")
    client = await place.connect("c", will=Will("wills/c", b"gone"))
    await client.send(Disconnect(ReasonCode.DISCONNECT_WITH_WILL_MESSAGE))
    assert await watcher.receive() == Publish("wills/c", b"gone")
    assert list(place.server.broker.sessions) == ["watcher"]


@pytest.mark.uncovered
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
