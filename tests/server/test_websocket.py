"""MQTT over WebSocket, byte by byte: handshakes, frames, and what is wrong with them."""

import asyncio
import base64
import logging
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import InvalidStatus

from gateway.broker.settings import BrokerSettings
from gateway.mqtt.encode import encode
from gateway.mqtt.framing import Framer
from gateway.mqtt.packets import (
    MQTT_5,
    Connect,
    Packet,
    PingReq,
    Publish,
    Subscribe,
    SubscriptionRequest,
)
from gateway.server.frame_transport import FrameTransport
from gateway.server.transport import ClientTransport
from gateway.server.websocket import WebSocketConnection
from tests.support.certificates import Authority, Pair
from tests.support.places import Place, open_place, open_websocket
from tests.support.raw_client import SECONDS
from tests.support.server import HOST
from tests.support.storage import until

BINARY, TEXT, CONTINUATION, CLOSE, PING, PONG = 0x2, 0x1, 0x0, 0x8, 0x9, 0xA
KEY = base64.b64encode(bytes(range(16))).decode()

FIELDS = {
    "Host": "localhost",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": KEY,
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Protocol": "mqtt",
}

CONNECT = encode(Connect("c"), MQTT_5)
PING_REQUEST = encode(PingReq(), MQTT_5)
PING_RESPONSE = b"\xd0\x00"


def request(path: str = "/mqtt", method: str = "GET", **changes: str | None) -> bytes:
    """Return a handshake; a field whose change is None is left out."""
    fields = FIELDS | {name.replace("_", "-"): value for name, value in changes.items()}
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()


def frame(
    opcode: int, data: bytes = b"", *, last: bool = True, mask: bytes | None = b"\x01\x02\x03\x04"
) -> bytes:
    """Return a frame as a client sends it; unmasked, which is forbidden, if `mask` is None."""
    head = bytes([(0x80 if last else 0) | opcode])
    masked = 0 if mask is None else 0x80
    if len(data) < 126:
        head += bytes([masked | len(data)])
    elif len(data) < 65_536:
        head += bytes([masked | 126]) + struct.pack("!H", len(data))
    else:
        head += bytes([masked | 127]) + struct.pack("!Q", len(data))
    if mask is None:
        return head + data
    return head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))


@dataclass(slots=True)
class Socket:
    """A TCP connection on which the test says every byte."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *parts: bytes) -> None:
        self.writer.write(b"".join(parts))
        await self.writer.drain()

    async def response(self) -> tuple[int, bytes]:
        """Return status and header fields of the answer to a handshake."""
        async with asyncio.timeout(SECONDS):
            head = await self.reader.readuntil(b"\r\n\r\n")
        return int(head.split(b" ", 2)[1]), head

    async def frame(self) -> tuple[int, bytes]:
        """Return first byte and payload of the next frame."""
        async with asyncio.timeout(SECONDS):
            first, length = await self.reader.readexactly(2)
            if length == 126:
                (length,) = struct.unpack("!H", await self.reader.readexactly(2))
            elif length == 127:
                (length,) = struct.unpack("!Q", await self.reader.readexactly(8))
            return first, await self.reader.readexactly(length)

    async def rest(self) -> bytes:
        """Return all that comes until the server closes."""
        async with asyncio.timeout(SECONDS):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def upgrade(self) -> None:
        await self.send(request())
        status, _ = await self.response()
        assert status == 101

    async def connect(self, client_id: str) -> None:
        """Shake hands and connect."""
        await self.upgrade()
        await self.send(frame(BINARY, encode(Connect(client_id), MQTT_5)))
        first, connack = await self.frame()
        assert (first, connack[0]) == (0x80 | BINARY, 0x20)


class Sockets:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.counters = place.server.counters
        self._opened: list[Socket] = []

    async def open(self) -> Socket:
        opened = Socket(*await asyncio.open_connection(HOST, self.place.server.port))
        self._opened.append(opened)
        return opened

    async def connect(self, client_id: str = "c") -> Socket:
        opened = await self.open()
        await opened.connect(client_id)
        return opened

    async def close(self) -> None:
        for each in self._opened:
            each.writer.close()
        await self.place.close()


@pytest.fixture
async def sockets(
    tmp_path: Path, authority: Authority, server_pair: Pair
) -> AsyncIterator[Sockets]:
    opened = Sockets(await open_place("websocket", tmp_path, authority, server_pair))
    yield opened
    await opened.close()


# --- handshakes -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/mqtt", "/", "/mqtt?client=1"])
@pytest.mark.parametrize("offered", ["mqtt", "chat, mqtt", "mqttv3.1"])
async def test_a_handshake_is_answered(sockets: Sockets, path: str, offered: str) -> None:
    socket = await sockets.open()
    await socket.send(request(path, Sec_WebSocket_Protocol=offered))
    status, fields = await socket.response()
    assert status == 101
    chosen = offered.rpartition(" ")[2]
    assert f"Sec-WebSocket-Protocol: {chosen}\r\n".encode() in fields  # [MQTT-6.0.0-4]
    assert b"Sec-WebSocket-Extensions" not in fields
    await socket.send(frame(BINARY, CONNECT))
    _, connack = await socket.frame()
    assert connack[0] == 0x20


async def test_other_fields_may_hold_what_they_like(sockets: Sockets) -> None:
    socket = await sockets.open()
    await socket.send(request()[:-2] + b"Cookie: k\xc3\xa4se=\xff\r\n\r\n")
    status, _ = await socket.response()
    assert status == 101


async def test_a_handshake_a_byte_at_a_time(sockets: Sockets) -> None:
    socket = await sockets.open()
    for byte in request() + frame(BINARY, CONNECT):
        await socket.send(bytes([byte]))
        await asyncio.sleep(0)
    status, _ = await socket.response()
    assert status == 101


BAD_REQUESTS = [
    ("another path", request("/metrics"), 404),
    ("no upgrade", request(Upgrade=None, Connection="close"), 426),
    ("another upgrade", request(Upgrade="h2c"), 426),
    ("no subprotocol", request(Sec_WebSocket_Protocol=None), 400),  # [MQTT-6.0.0-3]
    ("another subprotocol", request(Sec_WebSocket_Protocol="chat"), 400),
    ("no key", request(Sec_WebSocket_Key=None), 400),
    ("a bad key", request(Sec_WebSocket_Key="AAAA"), 400),
    ("an old version", request(Sec_WebSocket_Version="8"), 400),
    ("another method", request(method="POST"), 400),
    ("a body", request(Content_Length="5") + b"hello", 400),
    ("chunks", request(Transfer_Encoding="chunked"), 400),
    ("an old HTTP", request().replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
    ("an upgrade not in ASCII", request().replace(b": websocket", b": \x80websocket"), 400),
    ("a key not in ASCII", request().replace(KEY.encode(), b"\x80" + KEY[1:].encode()), 400),
    ("no HTTP", b"hello\r\n\r\n", 400),
    ("MQTT", CONNECT + b"\r\n", 400),
    ("TLS", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\n", 400),
    ("a line without end", b"GET /" + b"a" * 9_000, 400),
    ("many fields", request(**{f"X-{n}": "a" for n in range(130)}), 400),
    ("long fields", request(**{f"X-{n}": "a" * 4_000 for n in range(5)}), 431),
    ("fields without end", request()[:-2] + (b"X: " + b"a" * 4_000 + b"\r\n") * 5, 431),
    ("a frame too early", request() + frame(BINARY, CONNECT), 400),
    ("a ping too early", request() + frame(PING, b"x"), 400),
    ("a close too early", request() + frame(CLOSE), 400),
    ("garbage too early", request() + b"\xff" * 10, 400),
]


@pytest.mark.parametrize(
    ("data", "status"),
    [(data, status) for _, data, status in BAD_REQUESTS],
    ids=[name for name, _, _ in BAD_REQUESTS],
)
async def test_a_bad_handshake_is_answered_and_disturbs_nobody(
    sockets: Sockets, caplog: pytest.LogCaptureFixture, data: bytes, status: int
) -> None:
    healthy = await sockets.connect("healthy")
    caplog.set_level(logging.INFO)
    caplog.clear()
    socket = await sockets.open()
    await socket.send(data)
    answer, _ = await socket.response()
    assert answer == status
    rest = await socket.rest()
    assert b"HTTP/1.1" not in rest, "one answer"
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert str(status) in record.message
    assert sockets.counters.count("tidegate/connections/websocket_refused") == 1
    await until(lambda: sockets.counters.count("tidegate/connections/open") == 1)
    await healthy.send(frame(BINARY, PING_REQUEST))
    assert await healthy.frame() == (0x80 | BINARY, PING_RESPONSE)


@pytest.mark.parametrize("slowly", [False, True])
async def test_a_handshake_that_is_not_finished_ends_with_connect_timeout(
    tmp_path: Path, authority: Authority, server_pair: Pair, *, slowly: bool
) -> None:
    place = await open_place(
        "websocket", tmp_path, authority, server_pair, settings=BrokerSettings(connect_timeout=1)
    )
    sockets = Sockets(place)
    socket = await sockets.open()
    ended = asyncio.create_task(socket.rest())
    for byte in request():
        if ended.done():
            break
        if slowly:
            socket.writer.write(bytes([byte]))
        await asyncio.sleep(0.05)
    assert await ended == b""
    assert sockets.counters.count("tidegate/connections/connect_timeouts") == 1
    await sockets.close()


async def test_a_peer_that_says_nothing_and_goes_is_no_news(
    sockets: Sockets, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    socket = await sockets.open()
    socket.writer.close()
    await until(lambda: sockets.counters.values.get("tidegate/connections/open") == 0)
    assert not caplog.records


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [(None, True), ("https://panel.example", True), ("https://evil.example", False)],
)
async def test_pages_from_elsewhere_are_refused_if_origins_are_named(
    tmp_path: Path, authority: Authority, server_pair: Pair, origin: str | None, allowed: bool
) -> None:
    place = await open_place(
        "websocket",
        tmp_path,
        authority,
        server_pair,
        change=lambda listener: replace(listener, websocket_origins=("https://panel.example",)),
    )
    uri = f"ws://localhost:{place.server.port}/mqtt"
    if allowed:
        await (await open_websocket(uri, origin=origin)).close()
    else:
        with pytest.raises(InvalidStatus, match="403"):
            await open_websocket(uri, origin=origin)
    await place.close()


# --- frames ---------------------------------------------------------------------------------


async def test_a_frame_may_hold_several_packets_and_a_packet_several_frames(
    sockets: Sockets,
) -> None:  # [MQTT-6.0.0-2]
    socket = await sockets.connect()
    await socket.send(frame(BINARY, PING_REQUEST * 3))
    assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE * 3)
    await socket.send(frame(BINARY, PING_REQUEST[:1]), frame(BINARY, PING_REQUEST[1:]))
    assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE)
    await socket.send(
        frame(BINARY, PING_REQUEST[:1], last=False),
        frame(PING, b"in between"),
        frame(CONTINUATION, b"", last=False),
        frame(CONTINUATION, PING_REQUEST[1:]),
    )
    assert await socket.frame() == (0x80 | PONG, b"in between")
    assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE)
    await socket.send(frame(BINARY), frame(PONG, b"unasked"), frame(BINARY, PING_REQUEST))
    assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE)


async def test_the_output_of_a_turn_is_one_frame(sockets: Sockets) -> None:
    socket = await sockets.connect()
    subscribe = Subscribe(1, [SubscriptionRequest("a")])
    packets: list[Packet] = [subscribe, *[Publish("a", b"x" * 100)] * 100, PingReq()]
    await socket.send(frame(BINARY, b"".join(encode(packet, MQTT_5) for packet in packets)))
    _, data = await socket.frame()
    framer = Framer(0xFFFFFFFF)
    framer.feed(data)
    count = 0
    while framer.next_frame() is not None:
        count += 1
    assert count == 102


async def test_a_message_without_end_is_a_stream(sockets: Sockets) -> None:
    """One WebSocket message in ever new fragments: nothing piles up."""
    socket = await sockets.connect()
    await socket.send(frame(BINARY, PING_REQUEST, last=False))
    for _ in range(200):
        assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE)
        await socket.send(frame(CONTINUATION, PING_REQUEST, last=False))
    assert await socket.frame() == (0x80 | BINARY, PING_RESPONSE)


BAD_FRAMES = [
    ("text", frame(TEXT, b"hello"), 1003),  # [MQTT-6.0.0-1]
    ("text in fragments", frame(TEXT, b"hel", last=False), 1003),
    ("text behind MQTT", frame(BINARY, PING_REQUEST) + frame(TEXT, b"hello"), 1003),
    ("text before a close", frame(TEXT, b"hello") + frame(CLOSE), None),
    ("unmasked", frame(BINARY, PING_REQUEST, mask=None), 1002),
    ("reserved bit", bytes([0xC2]) + frame(BINARY, b"x")[1:], 1002),
    ("unknown opcode", frame(0x3, b"x"), 1002),
    ("continuation of nothing", frame(CONTINUATION, b"x"), 1002),
    ("new message in the middle", frame(BINARY, b"\xc0", last=False) + frame(BINARY, b"\0"), 1002),
    ("fragmented ping", frame(PING, b"x", last=False), 1002),
    ("long ping", frame(PING, b"x" * 126), 1002),
    ("close of one byte", frame(CLOSE, b"x"), 1002),
    ("close with bad UTF-8", frame(CLOSE, b"\x03\xe8\xff"), 1007),
    ("too large", frame(BINARY, bytes(4 * 1024 * 1024 + 1)), 1009),
    ("far too large", b"\x82\xff" + b"\xff" * 8 + b"\x01\x02\x03\x04", 1009),
]


@pytest.mark.parametrize(
    ("data", "code"),
    [(data, code) for _, data, code in BAD_FRAMES],
    ids=[name for name, _, _ in BAD_FRAMES],
)
async def test_a_bad_frame_ends_its_connection_alone(
    sockets: Sockets, caplog: pytest.LogCaptureFixture, data: bytes, code: int | None
) -> None:
    healthy = await sockets.connect("healthy")
    caplog.set_level(logging.INFO)
    socket = await sockets.connect()
    caplog.clear()
    sending = asyncio.create_task(socket.send(data))
    try:
        while (received := await socket.frame())[0] != 0x80 | CLOSE:
            assert received == (0x80 | BINARY, PING_RESPONSE)
    except ConnectionError:
        assert len(data) > 65_536, "only one that still sends may miss the answer"
    else:
        assert received[1][:2] == (b"" if code is None else struct.pack("!H", code))
    await asyncio.gather(sending, return_exceptions=True)
    await socket.rest()
    messages = [record for record in caplog.records if record.levelno > logging.INFO]
    assert not messages
    assert sockets.counters.count("tidegate/connections/websocket_errors") == 1
    await until(lambda: sockets.counters.count("tidegate/connections/open") == 1)
    await healthy.send(frame(BINARY, PING_REQUEST))
    assert await healthy.frame() == (0x80 | BINARY, PING_RESPONSE)


# --- closing --------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\x03\xe8", b"\x03\xe9bye"])
async def test_a_close_is_answered(sockets: Sockets, data: bytes) -> None:
    socket = await sockets.connect()
    await socket.send(frame(CLOSE, data))
    assert await socket.frame() == (0x80 | CLOSE, data)
    assert await socket.rest() == b""
    await until(lambda: not sockets.place.server.broker.clients)


async def test_we_close_with_a_close_frame_and_wait_for_its_answer(sockets: Sockets) -> None:
    socket = await sockets.connect()
    await socket.send(frame(BINARY, b"\x00\x00"))
    first, disconnect = await socket.frame()
    assert (first, disconnect[0]) == (0x80 | BINARY, 0xE0)
    assert await socket.frame() == (0x80 | CLOSE, b"\x03\xe8")
    assert not sockets.place.server.broker.clients
    await socket.send(frame(BINARY, PING_REQUEST), frame(CLOSE, b"\x03\xe8"))
    assert await socket.rest() == b""


async def test_what_comes_behind_a_close_is_not_read(sockets: Sockets) -> None:
    socket = await sockets.connect()
    await socket.send(frame(CLOSE), frame(TEXT, b"x"), bytes(100))
    assert await socket.frame() == (0x80 | CLOSE, b"")
    assert await socket.rest() == b""
    assert sockets.counters.count("tidegate/connections/websocket_errors") == 0


async def test_of_pings_whose_answers_nobody_reads_the_last_is_answered(
    sockets: Sockets, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = await sockets.connect()
    (transport,) = sockets.place.server.listener.reception.clients
    below = transport._transport
    assert below is not None
    below.set_write_buffer_limits(high=1_024)
    flood = frame(PING, b"x" * 125) * 100
    written = 0
    while not transport._paused:
        await socket.send(flood)
        written += 100
        await asyncio.sleep(0)
        assert written < 1_000_000
    for _ in range(20):
        await socket.send(flood)
    await socket.send(frame(PING, b"last"))
    await until(lambda: answer_held_back(transport).endswith(b"last"))
    held = below.get_write_buffer_size()
    assert held < 300_000
    pongs = 0
    while (received := await socket.frame()) != (0x80 | PONG, b"last"):
        assert received == (0x80 | PONG, b"x" * 125)
        pongs += 1
    assert pongs <= written + 2_000


def answer_held_back(transport: ClientTransport) -> bytes:
    frames = cast("FrameTransport", transport._transport)._frames
    return cast("WebSocketConnection", frames)._pong


# --- whatever the cuts ----------------------------------------------------------------------


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
async def test_wherever_the_stream_is_cut_the_answers_are_the_same(
    sockets: Sockets, data: st.DataObject
) -> None:
    packets = PING_REQUEST * 20
    cuts = sorted(data.draw(st.lists(st.integers(0, len(packets)), max_size=8)))
    edges = [0, *cuts, len(packets)]
    frames = b"".join(frame(BINARY, packets[start:end]) for start, end in pairwise(edges))
    writes = sorted(data.draw(st.lists(st.integers(0, len(frames)), max_size=8)))
    edges = [0, *writes, len(frames)]
    socket = await sockets.connect()
    for start, end in pairwise(edges):
        await socket.send(frames[start:end])
        await asyncio.sleep(0)
    answers = b""
    while len(answers) < 40:
        first, part = await socket.frame()
        assert first == 0x80 | BINARY
        answers += part
    assert answers == PING_RESPONSE * 20
    socket.writer.close()
