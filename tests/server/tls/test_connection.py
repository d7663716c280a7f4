"""Connections behind TLS: handshakes that fail or are never finished, and what they share."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.mqtt.codec.packet_codec import encode
from gateway.mqtt.packets import (
    MQTT_5,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    Publish,
    Subscribe,
    SubscriptionRequest,
)
from gateway.server.tls import connection as tls_connection
from gateway.server.tls.connection import TlsConnection
from gateway.server.tls.context import server_context
from tests.support.disk.storage import until
from tests.support.places import Place, open_place
from tests.support.processes.certificates import Authority, Pair
from tests.support.processes.server import HOST
from tests.support.raw_client import SECONDS, RawClient

CONNACK = 0x20
CLIENT_HELLO = bytes.fromhex("160301") + b"\x00\x05\x01\x00\x00\x01\x00"


@pytest.fixture
async def place(tmp_path: Path, authority: Authority, server_pair: Pair) -> AsyncIterator[Place]:
    opened = await open_place("tls", tmp_path, authority, server_pair)
    yield opened
    await opened.close()


def hurry(place: Place) -> None:
    """Wait for a handshake no longer than a second from now on."""
    place.server.listener.stack.connect_timeout = 1


async def plain(place: Place, data: bytes) -> bytes:
    """Return all that a server answers to these bytes until it closes."""
    reader, writer = await asyncio.open_connection(HOST, place.server.port)
    writer.write(data)
    async with asyncio.timeout(60):
        try:
            answer = await reader.read()
        except ConnectionError:
            answer = b""
    writer.close()
    return answer


@pytest.mark.uncovered
@pytest.mark.parametrize(
    "data",
    [
        encode(Connect("c"), MQTT_5),
        b"GET / HTTP/1.1\r\n\r\n",
        CLIENT_HELLO,
        b"\x16\x03\x01\x40\x00" + b"\xff" * 64,
        bytes(100),
    ],
)
async def test_what_is_no_tls_disturbs_nobody(
    place: Place, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    healthy = await place.connect("healthy")
    hurry(place)
    caplog.set_level(logging.INFO)
    caplog.clear()
    assert encode(ConnAck(), MQTT_5)[:1] not in (await plain(place, data))[:1]
    await until(lambda: place.server.counters.count("tidegate/connections/tls_refused") == 1)
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert record.message.startswith("no TLS with 127.0.0.1:")
    assert not await healthy.waiting()
    assert place.server.counters.count("tidegate/connections/open") == 1


async def test_tls_at_a_plain_port_disturbs_nobody(
    tmp_path: Path, authority: Authority, server_pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    place = await open_place("tcp", tmp_path, authority, server_pair)
    healthy = await place.connect("healthy")
    caplog.set_level(logging.INFO)
    caplog.clear()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection(HOST, place.server.port, ssl=place.trust)
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert not await healthy.waiting()
    await place.close()


@pytest.mark.parametrize("slowly", [False, True])
async def test_a_handshake_that_is_not_finished_ends_with_connect_timeout(
    place: Place, *, slowly: bool
) -> None:
    healthy = await place.connect("healthy")
    hurry(place)
    loop = asyncio.get_running_loop()
    begin = loop.time()
    _, writer = await asyncio.open_connection(HOST, place.server.port)
    if slowly:
        writer.write(b"\x16\x03\x01\x10\x00")
    while not place.server.counters.count("tidegate/connections/tls_refused"):
        if slowly:
            writer.write(b"\x01")
        await asyncio.sleep(0.05)
        assert loop.time() - begin < SECONDS
    assert loop.time() - begin > 0.9
    await until(lambda: place.server.counters.count("tidegate/connections/open") == 1)
    assert place.server.counters.count("tidegate/connections/tls_refused") == 1
    assert not await healthy.waiting()
    writer.close()


async def test_a_peer_that_goes_without_a_word_is_no_news(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    _, writer = await asyncio.open_connection(HOST, place.server.port)
    await until(lambda: place.server.counters.count("tidegate/connections/open") == 1)
    writer.close()
    await until(lambda: place.server.counters.count("tidegate/connections/open") == 0)
    assert not caplog.records
    assert not place.server.counters.count("tidegate/connections/tls_refused")


class Tls:
    """A client's TLS in memory, so that a test decides which of its bytes leave, and when."""

    def __init__(self, place: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.core = place.trust.wrap_bio(
            self._incoming, self._outgoing, server_hostname="localhost"
        )
        self._reader = reader
        self.writer = writer

    def records(self) -> bytes:
        """Return what TLS wants to send."""
        return self._outgoing.read()

    async def shake_hands(self) -> None:
        """Bring the handshake to its end, but the last of it not to the server."""
        while True:
            try:
                return self.core.do_handshake()
            except ssl.SSLWantReadError:
                self.writer.write(self.records())
                self._incoming.write(await self._reader.read(65_536))

    async def read(self) -> bytes:
        """Return what the server has to say, b"" at its end."""
        async with asyncio.timeout(SECONDS):
            while True:
                try:
                    return self.core.read(65_536)
                except ssl.SSLZeroReturnError:  # both have said that it is the end
                    return b""
                except ssl.SSLWantReadError:
                    data = await self._reader.read(65_536)
                    if not data:
                        raise ConnectionResetError("no close_notify") from None
                    self._incoming.write(data)

    async def rest(self) -> bytes:
        """Return what comes behind, as it comes, until the socket ends."""
        async with asyncio.timeout(SECONDS):
            return await self._reader.read()


@pytest.fixture
async def tls(place: Place) -> AsyncIterator[Tls]:
    """Give a client whose handshake ends with what it sends next."""
    reader, writer = await asyncio.open_connection(HOST, place.server.port)
    client = Tls(place, reader, writer)
    await client.shake_hands()
    yield client
    writer.close()


async def test_connect_may_come_with_the_end_of_the_handshake(tls: Tls) -> None:
    tls.core.write(encode(Connect("c"), MQTT_5))
    tls.writer.write(tls.records())
    assert (await tls.read())[0] == CONNACK


async def test_records_may_come_in_any_pieces(tls: Tls) -> None:
    subscribe = Subscribe(1, [SubscriptionRequest("a")])
    for packet in (Connect("c"), subscribe, Publish("a", b"x" * 40_000)):
        tls.core.write(encode(packet, MQTT_5))  # the last becomes several records
    data = tls.records()
    for begin in range(0, len(data), 1_021):
        tls.writer.write(data[begin : begin + 1_021])
        await tls.writer.drain()
        await asyncio.sleep(0)
    received = b""
    while len(received) < 40_000:
        received += await tls.read()
    assert received[0] == CONNACK
    assert received.endswith(b"x" * 40_000)


async def test_a_damaged_record_ends_its_connection_alone(place: Place, tls: Tls) -> None:
    healthy = await place.connect("healthy")
    tls.core.write(encode(Connect("c"), MQTT_5))
    tls.writer.write(tls.records())
    await tls.read()
    tls.core.write(encode(Publish("a", b"1"), MQTT_5))
    damaged = bytearray(tls.records())
    damaged[-1] ^= 1
    tls.writer.write(damaged)
    with pytest.raises(ssl.SSLError, match=r"(?i)bad.record.mac"):  # the server's alert
        await tls.read()
    await until(lambda: len(place.server.broker.connections) == 1)
    assert not await healthy.waiting()


async def test_the_end_of_tls_is_answered_behind_what_was_sent_before(
    place: Place, tls: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_connection, "CLOSE_TIMEOUT", 0.2)
    tls.core.write(encode(Connect("c"), MQTT_5))
    with pytest.raises(ssl.SSLWantReadError):
        tls.core.unwrap()
    tls.writer.write(tls.records())
    assert (await tls.read())[0] == CONNACK
    assert await tls.read() == b""  # close_notify
    await until(lambda: not place.server.broker.connections)
    tls.writer.write_eof()
    assert await tls.rest() == b""


async def test_a_peer_that_does_not_close_is_waited_for_only_so_long(
    place: Place, tls: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_connection, "CLOSE_TIMEOUT", 0.2)
    tls.core.write(encode(Connect("c"), MQTT_5) + encode(Disconnect(), MQTT_5))
    tls.writer.write(tls.records())
    assert (await tls.read())[0] == CONNACK
    begin = asyncio.get_running_loop().time()
    assert await tls.read() == b""
    tls.writer.write(bytes(100))  # is not looked at
    with contextlib.suppress(ConnectionResetError):
        await tls.rest()
    assert asyncio.get_running_loop().time() - begin >= 0.15
    await until(lambda: place.server.counters.count("tidegate/connections/open") == 0)


async def test_a_stop_does_not_wait_for_handshakes(place: Place) -> None:
    reader, writer = await asyncio.open_connection(HOST, place.server.port)
    await until(lambda: place.server.counters.count("tidegate/connections/open") == 1)
    await place.server.listener.close()
    assert await reader.read() == b""
    writer.close()


async def test_records_of_several_connections_come_at_the_same_time(place: Place) -> None:
    first = await place.connect("first")
    second = await place.connect("second")
    transports = [each._transport for each in place.server.listener.connections.clients]
    assert all(isinstance(each, TlsConnection) for each in transports)

    async def to_itself(client: RawClient, payload: bytes) -> Packet:
        topic = payload[:1].decode()
        await client.send(Subscribe(1, [SubscriptionRequest(topic)]), Publish(topic, payload))
        await client.receive()
        return await client.receive()

    payloads = [b"1" * 300_000, b"2" * 300_000]  # many records that come at the same time
    clients = (first, second)
    came = await asyncio.gather(*map(to_itself, clients, payloads))
    assert [publish.payload for publish in came if isinstance(publish, Publish)] == payloads


async def test_a_new_certificate_serves_those_who_come_from_now_on(
    place: Place, tmp_path: Path, authority: Authority
) -> None:
    before = await place.connect("before")
    listener = place.server.listener
    folder = tmp_path / "new"
    folder.mkdir()
    other = Authority(folder, "other")
    pair = other.issue("localhost")
    changed = replace(listener.settings, tls_certificate=pair.certificate, tls_key=pair.key)
    listener.stack.tls = server_context(changed, "test", 0)
    with pytest.raises(ssl.SSLCertVerificationError):
        await place.open()
    place.trust = ssl.create_default_context(cafile=other.ca_file)
    after = await place.connect("after")
    for client in (before, after):
        assert not await client.waiting()
